"""Reads the rows of laravel-payhere's tables in a dump of MySQL or MariaDB, piece by piece, whatever its size.

Rules:

1. Only ``CREATE TABLE`` and ``INSERT INTO`` (or ``REPLACE INTO``) are read. Everything else is passed over, as far as
   its end: nothing in a text of a row is taken for a statement.
2. Texts are read as MySQL writes them, with backslashes. A dump that says it has none is refused.
3. A row that has another number of values than its table has columns is refused. What can't be read at all ends the
   reading, with the line: behind it nobody could tell texts from statements.
"""

import re
from collections.abc import Iterable, Iterator, Sized
from typing import Final

from payrelay.imports.rules.items import ImportUnreadableError, NoItem, SourceRow
from payrelay_tools.laravel.rows import is_of_laravel

TOKEN_MAX: Final = 1_000_000
"""Characters of one value: nothing in these tables is longer, and a text without an end must not fill the memory."""
COLUMNS_MAX: Final = 1_000
"""Columns of a table, and values of a row."""
_TOLD_MAX: Final = 20
"""Characters of the text that an error shows."""
_NO_BACKSLASHES: Final = "NO_BACKSLASH_ESCAPES"

_TOKEN: Final = re.compile(
    r"""
    (?P<space>\s+)
    | (?P<comment>--(?=\s)[^\n]*(?:\n|\Z) | \#[^\n]*(?:\n|\Z) | /\*(?!!).*?\*/)
    | (?P<open>/\*!\d*)
    | (?P<close>\*/)
    | (?P<text>'(?:[^'\\]++|\\.|'')*+')
    | (?P<quoted>`(?:[^`]++|``)*+` | "(?:[^"\\]++|\\.|"")*+")
    | (?P<hex>0x[0-9A-Fa-f]+)(?![0-9A-Za-z_])
    | (?P<word>[A-Za-z_@$][A-Za-z0-9_@$]*)
    | (?P<number>[-+]?\d+(?:\.\d*)?(?:[eE][-+]?\d+)?)
    | (?P<mark>(?!--\s|/\*)[-(),;=.+*/:<>!%&|^~?\[\]{}])
    """,
    re.VERBOSE | re.DOTALL,
)
_ESCAPED: Final = re.compile(r"\\(.)|''", re.DOTALL)
_ESCAPES: Final = {"0": "\0", "b": "\b", "n": "\n", "r": "\r", "t": "\t", "Z": "\x1a"}
_CONSTRAINTS: Final = frozenset(
    {"PRIMARY", "UNIQUE", "KEY", "INDEX", "CONSTRAINT", "FULLTEXT", "SPATIAL", "FOREIGN", "CHECK"}
)

_WORDS: Final[dict[str, str | None]] = {"NULL": None, "TRUE": "1", "FALSE": "0"}
_Token = tuple[str, str]
"""A kind, and its characters."""


def dump_rows(pieces: Iterable[str]) -> Iterator[SourceRow | NoItem]:
    """Gives the rows of laravel-payhere's tables in a dump. Raises ImportUnreadableError."""
    yield from _Reader(pieces).rows()


class _Reader:
    """Cuts a text into tokens, and reads the statements that it is made for."""

    def __init__(self, pieces: Iterable[str]) -> None:
        self._pieces = iter(pieces)
        self._text = ""
        self._at = 0
        self._line = 1
        self._is_ended = False
        self._columns: dict[str, list[str]] = {}

    def rows(self) -> Iterator[SourceRow | NoItem]:
        """Reads statement by statement."""
        while True:
            token = self._next()
            if token is None:
                return
            word = _word(token)
            if word == "CREATE":
                self._create()
            elif word in {"INSERT", "REPLACE"}:
                yield from self._insert()
            elif token != ("mark", ";"):
                self._pass_over()

    def _create(self) -> None:
        token = self._next()
        if _word(token) != "TABLE":
            self._pass_over(token)
            return
        name, token = self._name()
        if token != ("mark", "("):
            self._pass_over(token)
            return
        columns: list[str] = []
        depth, is_first = 1, True
        while depth:
            token = self._required()
            if is_first and depth == 1 and token[0] in {"quoted", "word"} and _word(token) not in _CONSTRAINTS:
                columns.append(_unquoted(token).lower())
            is_first = token == ("mark", ",") and depth == 1
            depth += {"(": 1, ")": -1}.get(token[1], 0) if token[0] == "mark" else 0
            self._require_few(columns, "a table", "columns")
        self._columns[name] = columns
        self._pass_over()

    def _insert(self) -> Iterator[SourceRow | NoItem]:
        name, token = self._name()
        columns = self._columns.get(name, [])
        if token == ("mark", "("):
            columns = []
            while token != ("mark", ")"):
                token = self._required()
                if token[0] in {"quoted", "word"}:
                    columns.append(_unquoted(token).lower())
                self._require_few(columns, "an INSERT", "columns")
            token = self._next()
        if not is_of_laravel(frozenset(columns)):
            self._pass_over(token)
            return
        if _word(token) not in {"VALUES", "VALUE"}:
            raise self._unreadable(f"the rows of {name} don't follow VALUES")
        number = 0
        while True:
            token = self._required()
            if token == ("mark", ";"):
                return
            if token == ("mark", ","):
                continue
            if token != ("mark", "("):  # such as ON DUPLICATE KEY UPDATE
                self._pass_over(token)
                return
            number += 1
            line = self._line
            yield self._row(name, columns, self._values(), line)

    def _row(self, name: str, columns: list[str], values: list[str | None], line: int) -> SourceRow | NoItem:
        place = f"line {line}, {name}"
        if len(values) != len(columns):
            reason = f"it has {len(values)} values, and the table has {len(columns)} columns"
            return NoItem(place=place, reason=reason)
        row = dict(zip(columns, values, strict=True))
        if row.get("id"):
            place = f"{place} {row['id']}"
        return SourceRow(table=name, place=place, values=row)

    def _values(self) -> list[str | None]:
        values: list[str | None] = []
        value: str | None = None
        while True:
            token = self._required()
            if token in {("mark", ","), ("mark", ")")}:
                values.append(value)
                self._require_few(values, "a row", "values")
                value = None
                if token == ("mark", ")"):
                    return values
            elif token[0] == "text":
                value = _plain(token[1])
            elif token[0] == "hex":
                value = _of_hex(token[1][2:])
            elif token[0] == "number":
                value = token[1]
            elif token[0] == "word" and _word(token) in _WORDS:
                value = _WORDS[_word(token)]
            elif not (token[0] == "word" and token[1].startswith("_")):  # such as _binary, which a text follows
                raise self._unreadable(f"{token[1][:_TOLD_MAX]!r} is no value that can be read")

    def _name(self) -> tuple[str, _Token | None]:
        """Reads up to a table's name, and gives it with the token behind it."""
        token = self._required()
        while _word(token) in {"INTO", "IGNORE", "IF", "NOT", "EXISTS", "DELAYED", "LOW_PRIORITY"}:
            token = self._required()
        name = _unquoted(token)
        token = self._required()
        while token == ("mark", "."):  # the name of the database stood before it
            name = _unquoted(self._required())
            token = self._required()
        return name, token

    def _pass_over(self, token: _Token | None = None) -> None:
        """Passes over the rest of a statement."""
        while token != ("mark", ";"):
            token = self._next()
            if token is None:
                return
            if token[0] == "text" and _NO_BACKSLASHES in token[1]:
                raise self._unreadable(f"the dump was made with {_NO_BACKSLASHES}, which can't be read")

    def _required(self) -> _Token:
        token = self._next()
        if token is None:
            raise self._unreadable("the file ends in the midst of a statement")
        return token

    def _next(self) -> _Token | None:
        """Gives the next token that counts; None at the end."""
        while True:
            match = self._match()
            if match is None:
                return None
            kind, token = match.lastgroup or "", match[0]
            self._at = match.end()
            self._line += token.count("\n")
            if kind not in {"space", "comment", "open", "close"}:
                return kind, token

    def _match(self) -> "re.Match[str] | None":
        while True:
            if self._at > TOKEN_MAX:
                self._text, self._at = self._text[self._at :], 0
            match = _TOKEN.match(self._text, self._at)
            # A token at the very end may go on in the next piece.
            if match is not None and (match.end() < len(self._text) - 1 or self._is_ended):
                return match
            if self._is_ended:
                if self._at >= len(self._text):
                    return None
                raise self._unreadable(f"{self._text[self._at : self._at + _TOLD_MAX]!r} can't be read")
            if len(self._text) - self._at > TOKEN_MAX:
                raise self._unreadable(f"a value has more than {TOKEN_MAX} characters, or no end")
            self._read()

    def _read(self) -> None:
        """Reads on, and as much again as there is of a token: each time it is looked at from its beginning."""
        parts = [self._text[self._at :]]
        left = min(len(parts[0]), TOKEN_MAX + 1 - len(parts[0]))
        while (piece := next(self._pieces, None)) is not None:
            parts.append(piece)
            left -= len(piece)
            if left <= 0:
                break
        else:
            self._is_ended = True
        self._text, self._at = "".join(parts), 0

    def _require_few(self, found: Sized, where: str, what: str) -> None:
        if len(found) > COLUMNS_MAX:
            raise self._unreadable(f"{where} has more than {COLUMNS_MAX} {what}")

    def _unreadable(self, why: str) -> ImportUnreadableError:
        return ImportUnreadableError(f"line {self._line}: {why}")


def _word(token: _Token | None) -> str:
    return token[1].upper() if token is not None and token[0] == "word" else ""


def _of_hex(digits: str) -> str:
    return bytes.fromhex(digits.zfill(len(digits) + len(digits) % 2)).decode(errors="surrogateescape")


def _unquoted(token: _Token) -> str:
    kind, text = token
    return text[1:-1].replace(text[0] * 2, text[0]) if kind == "quoted" else text


def _plain(text: str) -> str:
    return _ESCAPED.sub(lambda match: "'" if match[1] is None else _ESCAPES.get(match[1], match[1]), text[1:-1])
