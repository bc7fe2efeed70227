"""Reads amounts as files and people write them, with marks of thousands and a decimal mark."""

import re
from decimal import Decimal
from typing import Final

from payrelay.core.money import AmountError, minor_units

_DIGITS: Final = re.compile(r"\d+", re.ASCII)
_DECIMALS_MAX: Final = 2
_GROUPED: Final = r"\d{{1,3}}(?:{marks}\d{{2,3}})*{marks}\d{{3}}"
"""Digits with marks between them: the last group has three, and those before have two in some countries. Anything else
may be a decimal mark that the profile takes for one of thousands, and so a hundred times the amount."""


class AmountReader:
    """Reads amounts with these marks; each character of ``thousands`` is one."""

    def __init__(self, thousands: str = ",", decimal: str = ".") -> None:
        self._decimal = decimal
        marks = f"[{re.escape(thousands)}]" if thousands else "(?!)"
        self._marks = re.compile(marks)
        self._grouped = re.compile(_GROUPED.format(marks=marks), re.ASCII)

    def minor(self, text: str, *, may_be_0: bool = False) -> int:
        """Reads an amount without its sign, in hundredths; a minus may stand before it, or brackets around it.

        Only these marks may stand between digits, and at most two digits behind the decimal mark: 1.250 may be a
        thousand times 1.25. Raises AmountError.
        """
        plain = _without_sign(text)
        whole, mark, rest = plain.partition(self._decimal)
        whole = self._marks.sub("", whole) if self._grouped.fullmatch(whole) else whole
        if not all(map(_DIGITS.fullmatch, (whole, rest) if mark else (whole,))):
            raise AmountError(f"must be a number, such as 2510{self._decimal}00")
        if len(rest) > _DECIMALS_MAX:
            raise AmountError(f"must have at most 2 decimals, and {self._decimal!r} is the decimal mark")
        amount = Decimal(f"{whole}.{rest}" if mark else whole)
        return 0 if may_be_0 and amount == 0 else minor_units(amount)


def is_negative(text: str) -> bool:
    """Tells whether an amount is written as a negative one."""
    return text.startswith(("-", "("))


def _without_sign(text: str) -> str:
    if text.startswith("(") and text.endswith(")"):
        return text[1:-1].strip()
    return text[1:].strip() if text.startswith(("-", "+")) else text
