"""Writes tables that a spreadsheet opens, and in which nothing is a formula, whoever chose the text.

A spreadsheet decides by its country, or by a choice of its user's, what separates cells. So a text may begin a cell
behind each usual separator in it, and not only where it begins itself.
"""

import re
from collections.abc import Iterable, Sequence
from typing import Final

_SEPARATORS: Final = r",;|\t\n\v\f\r\x1c-\x1e\x85\u2028\u2029"
_UNSEEN: Final = (
    r"\x00-\x20\x7f-\xa0\xad\u034f\u0600-\u0605\u061c\u06dd\u070f\u0890\u0891\u08e2\u115f\u1160\u1680\u17b4\u17b5"
    r"\u180b-\u180f\u2000-\u200f\u2028-\u202f\u205f-\u206f\u2800\u3000\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb"
    r"\U000110bd\U000110cd\U00013430-\U0001345f\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
)
"""Spaces, controls, and what else has no shape: a program may pass over them before it reads a cell."""
_BEGINNINGS: Final = (
    r"=+\-@|\u207a-\u207c\u208a-\u208c\u2212\u2795\u2796\ufe62\ufe63\ufe66\ufe6b\uff0b\uff0d\uff1d\uff20"
)
"""By these a spreadsheet recognises a formula, or a program may; also in other widths and heights."""
_FORMULA: Final = re.compile(rf'(?:\A|(?<=[{_SEPARATORS}]))(?=(?:(?![{_SEPARATORS}])["{_UNSEEN}])*[{_BEGINNINGS}])')

_needs_quotes: Final = re.compile(r'[",\r\n]').search


def csv_text(columns: Sequence[str], rows: Iterable[Iterable[str]]) -> str:
    """Writes a table with a line of names."""
    return "".join(f"{csv_line(row)}\r\n" for row in (columns, *rows))


def csv_line(fields: Iterable[str]) -> str:
    """Writes a line of a table, without its end."""
    return ",".join(_quoted(plain(field)) for field in fields)


def plain(text: str) -> str:
    """Puts an apostrophe before whatever would be a formula in a spreadsheet, wherever a cell may begin in a text."""
    return _FORMULA.sub("'", text)


def _quoted(field: str) -> str:
    return '"' + field.replace('"', '""') + '"' if _needs_quotes(field) else field
