"""Reads a statement's file by a profile: each line as one of ours, or refused with its number and the reason.

Rules:

1. A refused line is never guessed at, and never keeps another line from being read. So is one that has more fields
   than the header, or fewer: what stands in it may be of another column.
2. A line without a name of its own is known by its day, its amount, and how many equal ones came before it in the
   file. So a file that is fed again has the same lines, and two equal lines of one file are two.
3. The file is read line by line: nothing grows with it but what rule 2 counts.
4. A word that the profile lacks is no guess: a kind of line is refused then, and a state is kept as ``OTHER``, with the
   word.
"""

import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from datetime import date
from typing import Final, NamedTuple

import msgspec

from payrelay.core.money import AmountError, is_currency
from payrelay.core.payments.payment import payment_number
from payrelay.core.text.table_text import TIME_MARKS, TableError, folded, moment_in, rows_of
from payrelay.reconciliation.rules.entries import LineState, Movement, StatementLine, Zone
from payrelay.reconciliation.rules.files.amounts import AmountReader, is_negative
from payrelay.reconciliation.rules.files.profiles import NEEDED, Profile
from payrelay.reconciliation.rules.files.summary import PassedOver, Read, RefusedLine, TotalLine

LENGTH_MAX: Final = 250
"""Characters of an id, or of a word for a state or a kind of line, in a statement."""
_ID_DIGITS: Final = 16
_GIVEN_BACK: Final = frozenset({Movement.REFUND, Movement.CHARGEBACK})
HEADER_WITHIN: Final = 30
"""Rows in which the header must be: banks write the account and the period above it."""
_OTHER_DELIMITERS: Final = ";,\t|"


class StatementUnreadableError(ValueError):
    """Nothing of the file can be read; the text says why, with the line."""


def read_statement(
    text: Iterable[str], profile: Profile, *, zone: Zone, gateway_zone: str, until_ms: int
) -> Iterator[Read]:
    """Reads a file line by line; ``text`` gives its lines with their ends. Raises StatementUnreadableError.

    ``zone`` decides the day of a line with a time. Dates without a zone are in the profile's, or ``gateway_zone``. A
    line that is dated at ``until_ms`` or later is refused.
    """
    reader: _Reader | None = None
    above: list[tuple[int, list[str]]] = []
    try:
        for number, row in rows_of(text, delimiter=profile.delimiter):
            if reader is not None:
                yield reader.read(number, row)
            elif _missing(row, profile):
                above.append((number, row))
                if len(above) == HEADER_WITHIN:
                    break
            else:
                header = _Header(_places(row, number, profile), len(row))
                reader = _Reader(profile, header, zone, profile.timezone or gateway_zone, until_ms)
    except TableError as error:
        raise StatementUnreadableError(str(error)) from None
    if reader is None:
        raise StatementUnreadableError(_why_no_header(above, profile) if above else "the file is empty")


def _missing(row: list[str], profile: Profile) -> list[str]:
    names = list(map(folded, row))
    return [name for name in profile.columns.named().values() if name not in names]


def _why_no_header(rows: list[tuple[int, list[str]]], profile: Profile) -> str:
    """Says what the likeliest header lacks: the row that names most of the columns, of equal ones the first."""
    wanted = profile.columns.named().values()
    number, row = max(rows, key=lambda each: sum(name in folded(" ".join(each[1])) for name in wanted))
    why = f"line {number}: the header lacks {', '.join(_missing(row, profile))}; it has {', '.join(row).casefold()}"
    others = [mark for mark in _OTHER_DELIMITERS if mark != profile.delimiter and mark in row[0]]
    return f"{why}; is its delimiter {others[0]!r}?" if len(row) == 1 and others else why


def _places(header: list[str], number: int, profile: Profile) -> dict[str, int]:
    names = list(map(folded, header))
    wanted = profile.columns.named()
    twice = sorted({name for name in wanted.values() if names.count(name) > 1})
    if twice:
        raise StatementUnreadableError(f"line {number}: the header has {', '.join(twice)} twice")
    return {ours: names.index(theirs) for ours, theirs in wanted.items()}


class _Header(NamedTuple):
    """The header of a file: where each column is, by our word for it, and how many fields each row must have."""

    places: dict[str, int]
    width: int


class _Reader:
    """Reads the rows of one file."""

    def __init__(self, profile: Profile, header: _Header, zone: Zone, timezone: str, until_ms: int) -> None:
        self._profile = profile
        self._header = header
        self._zone = zone
        self._timezone = timezone
        self._until_ms = until_ms
        self._equal: Counter[str] = Counter()
        self._amounts = AmountReader(profile.thousands, profile.decimal)
        self._states = {folded(word): state for word, state in profile.states.items()}
        self._movements = {folded(word): movement for word, movement in profile.movements.items()}
        self._skipped = frozenset(map(folded, profile.skipped))
        self._total = None if profile.total is None else folded(profile.total)
        self._only = None if profile.only is None else folded(profile.only)

    def read(self, number: int, row: list[str]) -> Read:
        """Reads one row."""
        first = folded(next(filter(None, row)))
        if first == self._total:
            return self._total_line(number, row)
        if first in self._skipped:
            return PassedOver(number)
        if len(row) != self._header.width:
            return RefusedLine(number, self._why_other_width(row))
        fields = {name: row[place] for name, place in self._header.places.items()}
        if self._only is not None and self._only not in folded(fields["text"]):
            return PassedOver(number)
        if folded(fields.get("movement", "")) in self._skipped:
            return PassedOver(number)
        try:
            return self._line(number, self._movement(fields), fields)
        except _FieldError as error:
            return RefusedLine(number, str(error))

    def _why_other_width(self, row: list[str]) -> str:
        why = f"has {len(row)} fields, and the header has {self._header.width}"
        is_longer = len(row) > self._header.width
        return f"{why}: is an amount with a mark of thousands, or a text, not in quotes?" if is_longer else why

    def _total_line(self, number: int, row: list[str]) -> Read:
        """Reads the sum, which may have fewer fields behind it than the header has; with more it may be cut apart."""
        place = self._header.places["amount"]
        if len(row) > self._header.width:
            return RefusedLine(number, f"the sum: {self._why_other_width(row)}")
        try:
            total = self._amount("amount", row[place] if place < len(row) else "", may_be_0=True)
        except _FieldError as error:
            return RefusedLine(number, f"the sum: {error}")
        return RefusedLine(number, "the sum: amount: is missing") if total is None else TotalLine(number, total)

    def _movement(self, fields: Mapping[str, str]) -> Movement:
        if "movement" not in fields:
            return self._profile.movement
        word = _word("movement", fields["movement"])
        movement = self._movements.get(folded(word))
        if movement is None:
            told = f'"{word}" is no word' if word else "is empty, which is no word"
            raise _FieldError(f"movement: {told} that the profile knows; it belongs into movements, or into skipped")
        return movement

    def _line(self, number: int, movement: Movement, fields: Mapping[str, str]) -> StatementLine:
        profile = self._profile
        for name in (*NEEDED[movement], "date", "amount"):
            if not fields[name]:
                raise _FieldError(f"{name}: is missing")
        currency = fields.get("currency") or profile.currency or ""
        if not is_currency(currency):
            raise _FieldError("currency: must be three capital letters, such as LKR")
        amount_minor = self._amount("amount", fields["amount"]) or 0
        if movement not in _GIVEN_BACK and is_negative(fields["amount"]):
            raise _FieldError(f"amount: is negative, and no {movement} is; the profile must say what such a line is")
        day, at_ms = self._moment(fields["date"])
        state, word = self._state(fields)
        ids = {name: _id(name, fields.get(name, "")) for name in ("payment_id", "order_id", "payout_id", "reference")}
        line = StatementLine(
            movement=movement,
            identity="",
            currency=currency,
            amount_minor=amount_minor,
            day=day,
            state=state,
            at_ms=at_ms,
            fee_minor=self._amount("fee", fields.get("fee", ""), may_be_0=True),
            net_minor=self._amount("net", fields.get("net", ""), may_be_0=True),
            expected_fee_minor=self._expected_fee(movement, amount_minor),
            order_id=ids["order_id"],
            payment_id=ids["payment_id"],
            payout_id=ids["payout_id"],
            place=f"line {number}",
            word=word,
        )
        return msgspec.structs.replace(line, identity=self._identity(line, ids["reference"], fields.get("text", "")))

    def _moment(self, text: str) -> tuple[date, int | None]:
        date_format = self._profile.date_format
        at_ms = moment_in(text, self._timezone, date_format)
        if at_ms is None:
            raise _FieldError(f"date: must be in {date_format or 'ISO 8601, such as 2026-11-22 09:41:00'}")
        if at_ms >= self._until_ms:
            raise _FieldError(f"date: {text} is later than tomorrow")
        has_time = (
            len(text) > len("2026-11-22") if date_format is None else any(mark in date_format for mark in TIME_MARKS)
        )
        return (self._zone.day(at_ms), at_ms) if has_time else (Zone(self._timezone).day(at_ms), None)

    def _state(self, fields: Mapping[str, str]) -> tuple[LineState, str | None]:
        """Gives our word for a state, and the file's."""
        if "state" not in fields:
            return LineState.TAKEN, None
        word = _word("state", fields["state"])
        return self._states.get(folded(word), LineState.OTHER), word

    def _expected_fee(self, movement: Movement, amount_minor: int) -> int | None:
        fees = self._profile.fees
        return None if fees is None or movement is not Movement.PAYMENT else fees.of(amount_minor)

    def _amount(self, name: str, text: str, *, may_be_0: bool = False) -> int | None:
        """Reads an amount without its sign, in hundredths; None for an empty text."""
        try:
            return self._amounts.minor(text, may_be_0=may_be_0) if text else None
        except AmountError as error:
            raise _FieldError(f"{name}: {error}") from None

    def _identity(self, line: StatementLine, reference: str | None, text: str) -> str:
        if line.movement is Movement.PAYMENT and line.payment_id is not None:
            return line.payment_id
        if line.movement is Movement.PAYOUT and line.payout_id is not None:
            return line.payout_id
        if line.movement is Movement.CHARGEBACK and line.payment_id is not None:
            return line.payment_id
        if reference is not None:
            return reference
        what = f"{line.payment_id}/{line.currency}/{line.amount_minor}/{line.at_ms or line.day}/{text}"
        self._equal[what] += 1
        digest = hashlib.sha256(f"{what}/{self._equal[what]}".encode()).hexdigest()[:_ID_DIGITS]
        return f"{line.day}/{digest}"


class _FieldError(ValueError):
    """A field of a line can't be read; the text names it."""


def _word(name: str, text: str) -> str:
    if len(text) > LENGTH_MAX or not text.isprintable():
        raise _FieldError(f"{name}: must be printable, with at most {LENGTH_MAX} characters")
    return text


def _id(name: str, text: str) -> str | None:
    if not text:
        return None
    _word(name, text)
    if name != "payment_id":
        return text
    number = payment_number(text)
    if number is None:
        raise _FieldError("payment_id: must have 1 to 19 digits")
    return number
