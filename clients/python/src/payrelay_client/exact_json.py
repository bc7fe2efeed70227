"""JSON with exact numbers: no amount becomes a binary floating-point number, on the way out or in."""

import json
from collections.abc import Mapping, Sequence
from decimal import ROUND_DOWN, Decimal
from typing import Final, NoReturn

from payrelay_client.errors import InvalidAmount

_CENT: Final = Decimal("0.01")

Amount = Decimal | int | str
"""What a call takes for money: ``Decimal("345.67")``, ``"345.67"``, ``1000``. Never a float."""


def amount_of(value: Amount, name: str = "amount") -> Decimal:
    """Gives money as an exact decimal.

    Raises InvalidAmount for a float, a bool, a text that is no plain decimal, and what isn't finite.
    """
    if isinstance(value, bool) or not isinstance(value, Decimal | int | str):
        raise InvalidAmount(f'{name} must be an exact decimal, such as Decimal("345.67"), and not {value!r}')
    if isinstance(value, str) and not _is_plain(value):
        raise InvalidAmount(f'{name} must be digits with a point, such as "345.67", and not {value!r}')
    decimal = Decimal(value)
    if not decimal.is_finite():
        raise InvalidAmount(f"{name} must be a number, and not {value!r}")
    if decimal != decimal.quantize(_CENT, rounding=ROUND_DOWN):
        raise InvalidAmount(f"{name} has more than two decimals: {value}")
    return decimal


def minor_units(value: Amount) -> int:
    """Gives an amount in hundredths: 34567 for ``"345.67"``. Raises InvalidAmount for parts of a hundredth."""
    hundredths = amount_of(value).scaleb(2)
    if hundredths != hundredths.to_integral_value():
        raise InvalidAmount(f"amount must have at most two decimals, and not {value!r}")
    return int(hundredths)


def amount_of_minor_units(hundredths: int) -> Decimal:
    """Gives the amount of so many hundredths: ``Decimal("345.67")`` for 34567."""
    return Decimal(hundredths).scaleb(-2)


def encode(value: object) -> bytes:
    """Writes a value as JSON in UTF-8; a Decimal becomes a number with its own digits.

    Raises InvalidAmount for a float, and TypeError for what JSON has no form of.
    """
    return _written(value).encode()


def decode(text: bytes) -> object:
    """Reads JSON: whole numbers as int, others as Decimal. Raises ValueError for what is no strict JSON."""
    try:
        return json.loads(text.decode(), parse_float=Decimal, parse_constant=_refuse_constant)
    except RecursionError as error:
        raise ValueError("the text is nested too deep") from error


def _written(value: object) -> str:
    match value:
        case Decimal():
            return format(amount_of(value), "f")
        case float():
            raise InvalidAmount(f"numbers must be exact: write Decimal or a text, and not the float {value!r}")
        case None | bool() | int() | str():
            return json.dumps(value)
        case Mapping():
            return "{" + ",".join(f"{_name(name)}:{_written(each)}" for name, each in value.items()) + "}"
        case Sequence():
            return "[" + ",".join(_written(each) for each in value) + "]"
        case _:
            raise TypeError(f"JSON has no form for {type(value).__name__}")


def _name(name: object) -> str:
    if not isinstance(name, str):
        raise TypeError("the names of an object must be texts")
    return json.dumps(name)


def _is_plain(text: str) -> bool:
    whole, point, part = text.removeprefix("-").partition(".")
    digits = whole + part
    return text.isascii() and digits.isdigit() and bool(whole) and bool(part) == bool(point)


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON")
