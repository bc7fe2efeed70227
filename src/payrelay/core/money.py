"""Amounts: exact decimals in requests and answers, integers of minor units inside, never a float.

Every currency of the gateway has two decimals, so the minor unit is a hundredth.
"""

import re
from decimal import Context, Decimal
from typing import Final

import msgspec

MINOR_PER_UNIT: Final = 100
AMOUNT_MINOR_MAX: Final = 99_999_999_999_999
"""The largest amount, 999,999,999,999.99: far above any card limit, and it fits every database's 64-bit integer."""
_FLOAT_DIGITS_MAX: Final = 20
"""A binary fraction of 64 bits is written with 17 digits."""
_NOISE_LEAST: Final = Decimal("1e-4")
_NOISE_MAX: Final = Decimal("0.2")
_NOISE_PART: Final = Decimal("1e-12")
"""How far calculating with binary fractions leads away from whole hundredths, in hundredths."""
_AMOUNT_MAX: Final = Decimal(AMOUNT_MINOR_MAX).scaleb(-2)
_HUNDREDTH: Final = Decimal("0.01")
_EXACT: Final = Context(prec=28)
"""Has room for twice the digits of the largest amount; the thread's own context may have less."""
_is_typed: Final = re.compile(r"(?:[0-9]{1,15}|[1-9][0-9]{0,2}(?:,[0-9]{3}){1,4})(?:\.[0-9]{1,2})?").fullmatch
_CURRENCY_LETTERS: Final = 3


class AmountError(ValueError):
    """The number can't be an amount; the text says why and fits behind the field's name."""


def is_currency(text: str) -> bool:
    """Tells whether a text is three capital letters, as currencies are."""
    return len(text) == _CURRENCY_LETTERS and text.isascii() and text.isalpha() and text.isupper()


def minor_units(amount: Decimal | int) -> int:
    """Gives the amount in hundredths.

    The decimals are counted by value: 1.500 is 1.5. Raises AmountError for anything that is not a number greater
    than 0 with at most two decimals and at most AMOUNT_MINOR_MAX.
    """
    if isinstance(amount, bool):
        raise AmountError("must be a number")
    if isinstance(amount, Decimal) and not amount.is_finite():
        raise AmountError("must be a finite number")
    if amount <= 0:
        raise AmountError("must be greater than 0")
    # Compared, not multiplied: a huge exponent would overflow the decimal context, a long tail be rounded by it.
    if amount > _AMOUNT_MAX:
        raise AmountError(f"must be at most {decimal_text(AMOUNT_MINOR_MAX)}")
    if isinstance(amount, int):
        return amount * MINOR_PER_UNIT
    return _hundredths(amount)


def typed_minor(text: str, *, may_be_0: bool = False) -> int:
    """Gives an amount as people and files write it, in hundredths: ``1250``, ``1250.5``, ``1250.50`` or ``1,250.50``.

    Spaces around it don't matter. Commas stand between groups of three digits, and nowhere else. What could be a comma
    before decimals, or a point between thousands, is refused. Raises AmountError for any other text, and as
    ``minor_units`` does.
    """
    plain = text.strip()
    if _is_typed(plain) is None:
        raise AmountError("must be written like 1250, 1250.50 or 1,250.50")
    amount = Decimal(plain.replace(",", ""))
    return 0 if may_be_0 and not amount else minor_units(amount)


def _hundredths(amount: Decimal) -> int:
    """Rounds to whole hundredths, and accepts the amount only where that has changed nothing.

    The comparison is exact, however long the amount's tail is. The amount is at most _AMOUNT_MAX here.
    """
    rounded = amount.quantize(_HUNDREDTH, context=_EXACT)
    if rounded != amount:
        meant = _meant(amount)
        hint = "" if meant is None else f"; probably {decimal_text(meant)} was meant"
        raise AmountError(f"must have at most 2 decimals{hint}")
    return int(rounded.scaleb(2, context=_EXACT))


def _meant(amount: Decimal) -> int | None:
    """Gives the hundredths beside an amount that binary fractions have made of them; None where there are none.

    10.1 times 3 is 30.299999999999997 in most languages. It is not accepted: who calculates so may be wrong by more.
    """
    if len(amount.as_tuple().digits) > _FLOAT_DIGITS_MAX:
        return None
    scaled = amount.scaleb(2)
    nearest = scaled.to_integral_value()
    is_noise = abs(scaled - nearest) <= min(_NOISE_MAX, max(_NOISE_LEAST, scaled * _NOISE_PART))
    return int(nearest) if is_noise and nearest > 0 else None


def amount_json(amount_minor: int | None) -> msgspec.Raw:
    """Writes hundredths as a JSON number with two decimals, and None as null; a float would lose digits."""
    return msgspec.Raw(b"null" if amount_minor is None else decimal_text(amount_minor).encode())


def decimal_text(amount_minor: int) -> str:
    """Writes hundredths as a decimal with two digits after the point: 34567 is ``345.67``, -50 is ``-0.50``."""
    units, hundredths = divmod(abs(amount_minor), MINOR_PER_UNIT)
    return f"{'-' if amount_minor < 0 else ''}{units}.{hundredths:02d}"


def money_text(amount_minor: int | None, currency: str | None) -> str:
    """Writes an amount for people, such as ``LKR 1,250.00``; empty where none is known."""
    if amount_minor is None:
        return ""
    units, hundredths = divmod(abs(amount_minor), MINOR_PER_UNIT)
    amount = f"{'-' if amount_minor < 0 else ''}{units:,}.{hundredths:02d}"
    return amount if currency is None else f"{currency} {amount}"
