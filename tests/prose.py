"""Counts the sentences of prose, in pages of Markdown and in docstrings: where each begins, and how many words it has.

Code blocks, tables, headings and comments are no prose, and neither is the target of a link. A sentence ends at ``.``,
``!`` or ``?`` before a space, or with its paragraph or list item.

``python -m tests.prose`` prints a line for each page; behind it, only for pages whose paths have a text in them.
"""

import ast
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parent.parent
WORDS_MAX: Final = 40
"""No sentence has more: whoever reads in a second language loses its beginning."""
AVERAGE_MAX: Final = 18
"""Words of a sentence, over all pages."""
PAGE_AVERAGE_MAX: Final = 20
"""Words of a sentence on any one page."""

_COMMENT: Final = re.compile(r"<!--.*?-->", re.DOTALL)
_CODE: Final = re.compile(r"(?<!`)(`+)(?!`)(.+?)(?<!`)\1(?!`)", re.DOTALL)
_IMAGE: Final = re.compile(r"!\[[^\]]*\](\([^)]*\))?")
_LINK: Final = re.compile(r"\[([^\]]*)\](\([^)]*\)|\[[^\]]*\])")
_TAG: Final = re.compile(r"</?[A-Za-z][^>]*>")
_FENCE: Final = re.compile(r"\s*(`{3,}|~{3,})")
_HEADING: Final = re.compile(r" {0,3}#{1,6}(\s|$)")
_RULE: Final = re.compile(r"\s*([-=*_])(\s*\1){2,}\s*$")
_DEFINITION: Final = re.compile(r" {0,3}\[[^\]]+\]:\s")
_ITEM: Final = re.compile(r"(\s*)([-*+]|\d{1,9}[.)])(\s+)")
_QUOTE: Final = re.compile(r"^\s*>\s?")
_STOP: Final = re.compile(r"[.!?][)\]\"'\u201d\u2019*_]*(?=\s|$)")

_CODE_INDENT: Final = 4
_ABBREVIATION_MAX: Final = 12
"""Characters before a stop that are looked at; the longest abbreviation is shorter."""
_OPENERS: Final = "([\"'\u201c\u2018*_`"
_NEVER_LAST: Final = frozenset({"e.g", "i.e", "cf", "vs", "approx", "incl", "mr", "mrs", "dr"})
_BEFORE_A_NUMBER: Final = frozenset({"no", "nos", "fig", "p", "pp", "sec"})
_INITIALS: Final = re.compile(r"([a-z]\.)+[a-z]")

_MARKS: Final = ".!?[]()<>"
_HIDE: Final = {ord(mark): 0xE000 + number for number, mark in enumerate(_MARKS)}
_SHOW: Final = {0xE000 + number: mark for number, mark in enumerate(_MARKS)}
"""Marks in code are no punctuation: they are put out of sight while a text is split."""


@dataclass(frozen=True)
class Sentence:
    """A sentence, the page that it stands on and the line on which it begins."""

    page: str
    line: int
    text: str

    @property
    def words(self) -> int:
        """How many words it has; a dash between spaces is none."""
        return sum(any(character.isalnum() for character in word) for word in self.text.split())

    def __str__(self) -> str:
        return f"{self.page}:{self.line} ({self.words} words) {' '.join(self.text.split())}"


def sentences_of_page(page: Path) -> list[Sentence]:
    """Gives the sentences of a page in Markdown."""
    return sentences(page.read_text(encoding="utf-8"), str(page.relative_to(ROOT)))


def sentences(text: str, page: str = "", first_line: int = 1) -> list[Sentence]:
    """Gives the sentences of a text in Markdown, whose first line has the number ``first_line``."""
    return [
        Sentence(page, first_line + index, sentence)
        for line, block in _blocks(_COMMENT.sub(lambda comment: "\n" * comment[0].count("\n"), text))
        for index, sentence in _split(line, _plain(block))
    ]


def average(counted: list[Sentence]) -> float:
    """Gives how many words a sentence has, on average."""
    return sum(each.words for each in counted) / len(counted)


def _blocks(text: str) -> Iterator[tuple[int, str]]:
    """Gives each paragraph and each list item, with the number of lines before it."""
    block: list[str] = []
    begins, fence, item_indent = 0, "", None
    for number, line in enumerate([*text.splitlines(), ""]):
        if fence:
            fence = "" if line.strip().startswith(fence) and not line.strip(" `~") else fence
            continue
        item = _ITEM.match(line)
        indent = len(line) - len(line.lstrip())
        if not block and line.strip() and not item and indent == 0:
            item_indent = None
        is_code = not block and indent >= _CODE_INDENT + (item_indent or 0) and not (item and item_indent is not None)
        opened = _FENCE.match(line)
        if opened or item or is_code or not _is_prose(line):
            if block and not (
                _RULE.match(line) and item_indent is None
            ):  # a rule makes a heading of what it underlines
                yield begins, "\n".join(block)
            block = []
        if opened:
            fence = opened[1]
        elif item and not is_code and not _RULE.match(line):
            item_indent = item.end()
            begins, block = number, [line[item.end() :]]
        elif not is_code and _is_prose(line):
            begins = begins if block else number
            block.append(_QUOTE.sub("", line, count=1))


def _is_prose(line: str) -> bool:
    """True for a line that is no blank, heading, table, rule or definition of a link."""
    if not line.strip() or line.lstrip().startswith("|"):
        return False
    return not (_HEADING.match(line) or _RULE.match(line) or _DEFINITION.match(line))


def _plain(block: str) -> str:
    """Gives what is read of a block: code without meaning, links without targets, no images and no tags."""
    text = _CODE.sub(lambda code: code[0].translate(_HIDE), block)
    text = _IMAGE.sub(_only_lines, text)
    text = _LINK.sub(lambda link: link[1] + _only_lines(link, group=2), text)
    return _TAG.sub(_only_lines, text)


def _only_lines(match: re.Match[str], *, group: int = 0) -> str:
    """Gives the ends of lines in what was left out, so that the lines after it keep their numbers."""
    return "\n" * match[group].count("\n")


def _split(line: int, text: str) -> Iterator[tuple[int, str]]:
    """Gives the sentences of a block that begins at a line, and the line of each."""
    start = 0
    ends = [stop.end() for stop in _STOP.finditer(text) if _is_end(text, stop)]
    for end in [*ends, len(text)]:
        piece = text[start:end]
        if any(character.isalnum() for character in piece):
            blank = len(piece) - len(piece.lstrip())
            yield line + text.count("\n", 0, start + blank), piece.strip().translate(_SHOW)
        start = end


def _is_end(text: str, stop: re.Match[str]) -> bool:
    """True where a stop ends its sentence, and is not that of an abbreviation."""
    if not stop[0].startswith("."):
        return True
    words = text[max(0, stop.start() - _ABBREVIATION_MAX) : stop.start()].split()
    word = words[-1].lstrip(_OPENERS).lower() if words else ""
    after = text[stop.end() :].lstrip().lstrip(_OPENERS)
    if word in _NEVER_LAST:
        return not after
    if word in _BEFORE_A_NUMBER:
        return not after[:1].isdigit()
    if word == "etc" or word.endswith("..") or _INITIALS.fullmatch(word):
        return not after[:1].islower()
    return True


@dataclass(frozen=True)
class Docstring:
    """A text in the code that says what a module, a class, a function, a constant or a member promises."""

    path: Path
    line: int
    text: str

    @property
    def where(self) -> str:
        """Its file and line."""
        return f"{self.path.relative_to(ROOT)}:{self.line}"

    def sentences(self) -> list[Sentence]:
        """Gives its sentences; the lines are those of its file."""
        return sentences(self.text, str(self.path.relative_to(ROOT)), self.line)


def docstrings(path: Path) -> Iterator[Docstring]:
    """Gives every docstring of a file, also those behind constants and members of enums."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            # Cleaned as `inspect.getdoc` does, or what is indented with its function would be taken for code.
            first, _, rest = node.value.value.partition("\n")
            margin = min((len(line) - len(line.lstrip()) for line in rest.splitlines() if line.strip()), default=0)
            lines = [first.lstrip(), *(line[margin:] for line in rest.splitlines())]
            yield Docstring(path, node.lineno, "\n".join(lines))


def user_pages() -> list[Path]:
    """Gives the pages for those who use Payrelay."""
    return [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


def developer_pages() -> list[Path]:
    """Gives the pages for those who change it."""
    return [ROOT / "ARCHITECTURE.md", ROOT / "CONTRIBUTING.md"]


def report(wanted: list[str]) -> Iterator[str]:
    """Gives a line for each page whose path has one of the texts in it, and one for each sentence that is too long."""
    everything: list[Sentence] = []
    for page in (*user_pages(), *developer_pages()):
        if wanted and not any(text in str(page.relative_to(ROOT)) for text in wanted):
            continue
        counted = sentences_of_page(page)
        everything += counted
        long = [each for each in counted if each.words > WORDS_MAX]
        yield f"{average(counted):5.1f}  {len(counted):4} sentences, {len(long)} too long  {page.relative_to(ROOT)}"
        yield from (f"       {each}" for each in long)
    yield f"{average(everything):5.1f}  {len(everything):4} sentences  altogether"


if __name__ == "__main__":
    print("\n".join(report(sys.argv[1:])))  # noqa: T201
