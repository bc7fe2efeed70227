"""Reads a CSV file as rows: one in Payrelay's own form, or an export of one of laravel-payhere's tables."""

from collections.abc import Iterable, Iterator

from payrelay.core.text.table_text import TableError, rows_of
from payrelay.imports.rules.items import ImportUnreadableError, NoItem, SourceRow
from payrelay.imports.rules.laravel_rows import is_of_laravel
from payrelay.imports.rules.own_rows import kind_of

LARAVEL = "laravel-payhere"
"""In the place of a kind, for an export of one of its tables."""


def csv_rows(lines: Iterable[str]) -> Iterator[SourceRow | NoItem]:
    """Gives the rows of a file, line by line; one with too many or too few fields is refused, and the others are read.

    Raises ImportUnreadableError where the head is none, or the text is no CSV from some line on.
    """
    try:
        rows = rows_of(lines)
        number, header = next(rows, (1, []))
        names = [each.removeprefix("\ufeff").strip().lower() for each in header]
        if len(set(names)) < len(names) or not all(names):
            raise ImportUnreadableError(f"line {number}: the head has an empty name, or one twice")
        columns = frozenset(names)
        table = LARAVEL if is_of_laravel(columns) else kind_of(columns)
        for number, fields in rows:
            place = f"line {number}"
            if len(fields) != len(names):
                yield NoItem(place=place, reason=f"it has {len(fields)} fields, and the head has {len(names)}")
                continue
            values: dict[str, str | None] = dict(zip(names, fields, strict=True))
            yield SourceRow(table=table, place=place, values=values)
    except TableError as error:
        raise ImportUnreadableError(str(error)) from None
