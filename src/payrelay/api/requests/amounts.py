"""Amounts of money and quantities in a body: the check of each, and its JSON Schema."""

from decimal import Decimal
from typing import Annotated, Final

from msgspec import Meta

from payrelay.api.http.json_text import ExponentNumber
from payrelay.api.requests.body import CheckedValue
from payrelay.core.money import AMOUNT_MINOR_MAX, MINOR_PER_UNIT, AmountError, minor_units

ITEM_LIST_LENGTH_MAX: Final = 100
"""The entries of a receipt; with 64 KiB for the whole body, more would hardly fit."""
QUANTITY_MAX: Final = 999_999_999
"""Fits every 32-bit integer on the way to the gateway."""

AMOUNT_SCHEMA: Final[dict[str, object]] = {
    "type": "number",
    "minimum": 1 / MINOR_PER_UNIT,
    "maximum": AMOUNT_MINOR_MAX / MINOR_PER_UNIT,
    "description": "A number without an exponent, with at most two decimals.",
    "x-decimals-max": 2,
}

Currency = Annotated[str, Meta(min_length=3, max_length=3, pattern="^[A-Z]{3}$")]


def positive_minor(value: object) -> int:
    """Gives an amount greater than 0, in hundredths; raises ValueError with words that fit behind a field's name."""
    # By type, not isinstance: to Python, True is an int.
    if type(value) is not int and type(value) is not Decimal:
        raise ValueError(_not_a_number(value))
    return minor_units(value)


def _unit_amount(value: object) -> int:
    if type(value) in {int, Decimal} and value == 0:
        return 0
    try:
        return positive_minor(value)
    except AmountError as error:
        raise ValueError(str(error).replace("greater than 0", "0 or greater")) from None


def whole(value: object, most: int) -> object:
    """Gives 7.0 as the integer 7, as JSON Schema has it; anything else, and what is beyond ``most``, as it is.

    A number that is far below 0 is beyond it too: to make an integer of it takes time with the square of its digits.
    """
    if type(value) is Decimal and -most <= value <= most and value == value.to_integral_value():
        return int(value)
    return value


def _quantity(value: object) -> int:
    number = whole(value, QUANTITY_MAX)
    if type(number) is int and 1 <= number <= QUANTITY_MAX:
        return number
    if type(number) is int or (type(number) is Decimal and number == number.to_integral_value()):
        raise ValueError(f"must be 1 to {QUANTITY_MAX}")
    raise ValueError("must be a whole number" if not isinstance(value, ExponentNumber) else _not_a_number(value))


def _not_a_number(value: object) -> str:
    return "must be written without an exponent" if isinstance(value, ExponentNumber) else "must be a number"


class Amount(CheckedValue, int, check=positive_minor, schema=AMOUNT_SCHEMA):
    """An amount of money greater than 0, in hundredths."""


class UnitAmount(CheckedValue, int, check=_unit_amount, schema={**AMOUNT_SCHEMA, "minimum": 0}):
    """The price of one item, which may be 0, in hundredths."""


class Quantity(CheckedValue, int, check=_quantity, schema={"type": "integer", "minimum": 1, "maximum": QUANTITY_MAX}):
    """How many of an item."""


class WholeNumber(CheckedValue, int, check=lambda value: value, schema={}):
    """The base of whole numbers in a range, each declared with that and with words for any other value."""

    def __init_subclass__(cls, *, least: int, most: int, words: str, **schema: object) -> None:
        def check(value: object) -> int:
            value = whole(value, most)
            if type(value) is not int or not least <= value <= most:
                raise ValueError(words)
            return value

        super().__init_subclass__(check=check, schema={"type": "integer", "minimum": least, "maximum": most, **schema})
