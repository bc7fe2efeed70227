"""Writes tables that a spreadsheet opens, and in which nothing is a formula, whoever chose the text."""

import csv
import io
from collections.abc import Iterable, Sequence
from typing import Final

_BEGINNINGS: Final = frozenset("=+-@\t\r\n|\uff1d\uff0b\uff0d\uff20")
"""By these a spreadsheet recognises a formula, or a program may; also in their full width."""


def csv_text(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Writes a table with a line of names; each field is quoted."""
    written = io.StringIO()
    writer = csv.writer(written, quoting=csv.QUOTE_ALL, lineterminator="\r\n")
    writer.writerow(columns)
    writer.writerows([plain(field) for field in row] for row in rows)
    return written.getvalue()


def plain(text: str) -> str:
    """Puts an apostrophe before what a spreadsheet would take for a formula, also behind spaces."""
    begins = text.lstrip(" \u00a0\ufeff")[:1]
    return f"'{text}" if begins in _BEGINNINGS and begins else text
