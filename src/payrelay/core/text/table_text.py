"""Tables in text, as people export them: rows with their line numbers, and the fields that all such files share."""

import csv
import re
import unicodedata
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

ROW_LINES_MAX = 1_000
"""Lines of one row, whose texts in quotes may have several: a file of quotes must not fill the memory."""
TIME_MARKS = ("%H", "%I", "%c", "%X")
"""What names an hour in a form of dates."""
_SOME_TIME = datetime(2026, 11, 22, 21, 43, tzinfo=UTC)
"""Another day and another hour than those that are taken where a form names none."""


class TableError(ValueError):
    """The text is no table; the text of the error names the line."""


def rows_of(lines: Iterable[str], *, delimiter: str = ",") -> Iterator[tuple[int, list[str]]]:
    """Gives each row that isn't empty, without spaces around its fields, and the number of its last line.

    Reads no further than it is asked. Raises TableError.
    """
    read_to = 0

    def of_one_row() -> Iterator[str]:
        for number, line in enumerate(lines, start=1):
            if number > read_to + ROW_LINES_MAX:
                begun = f"line {read_to + 1}: a row has more than {ROW_LINES_MAX} lines"
                raise TableError(f"{begun}: is a quote not closed?")
            yield line

    reader = csv.reader(of_one_row(), strict=True, delimiter=delimiter)
    try:
        for row in reader:
            read_to = reader.line_num
            fields = [each.strip() for each in row]
            if any(fields):
                yield reader.line_num, fields
    except csv.Error as error:
        begun, last = read_to + 1, reader.line_num
        told = f"the row of the lines {begun} to {last}" if last > begun else f"line {last}"
        raise TableError(f"{told}: is not CSV: {error}{'; is a quote not closed?' if last > begun else ''}") from None


def folded(text: str) -> str:
    """Gives a word as words are compared: without regard to case, to width and other forms of letters, and to spaces.

    The forms are those that Unicode's NFKC makes equal.
    """
    if not text.isascii():
        text = unicodedata.normalize("NFKC", text)
    text = text.casefold()
    return " ".join((text if text.isascii() else unicodedata.normalize("NFKC", text)).split())


def is_timezone(name: str) -> bool:
    """Tells whether a time zone is known."""
    try:
        ZoneInfo(name)
    except (OSError, ValueError, ZoneInfoNotFoundError):
        return False
    return True


def is_date_format(date_format: str) -> bool:
    """Tells whether a form of dates, as for ``strptime``, names a day, and an hour where it names a time."""
    try:
        text = _SOME_TIME.strftime(date_format)
        read = datetime.strptime(text, date_format)  # noqa: DTZ007  only its day and its hour are compared
    except (ValueError, re.error):
        return False
    has_time = any(mark in date_format for mark in TIME_MARKS)
    return read.date() == _SOME_TIME.date() and (not has_time or read.hour == _SOME_TIME.hour)


def moment_in(text: str, timezone: str, date_format: str | None = None) -> int | None:
    """Reads a date, in a zone where it names none; None where it is none, or before 1970."""
    try:
        at = datetime.fromisoformat(text) if date_format is None else datetime.strptime(text, date_format)  # noqa: DTZ007
        at = at if at.tzinfo is not None else at.replace(tzinfo=ZoneInfo(timezone))
        at_ms = round(at.timestamp() * 1000)
    except (ValueError, OverflowError):
        return None
    return at_ms if at_ms >= 0 else None
