"""Amounts of money and quantities in a body: the check of each, and its JSON Schema.

Every amount of every call is read by ``amount_in``: a JSON number, with or without an exponent, or a text with exactly
two decimals. All spellings of one amount are one value, so that a repeat may be spelled otherwise.
"""

import re
from decimal import Decimal
from typing import Annotated, Final

from msgspec import Meta

from payrelay.api.http.json_text import OversizeNumber
from payrelay.api.requests.body import CheckedValue
from payrelay.core.money import AMOUNT_MINOR_MAX, MINOR_PER_UNIT, AmountError, minor_units

ITEM_LIST_LENGTH_MAX: Final = 100
"""The entries of a receipt; with 64 KiB for the whole body, more would hardly fit."""
QUANTITY_MAX: Final = 999_999_999
"""Fits every 32-bit integer on the way to the gateway."""

AMOUNT_FORMS: Final = 'must be a number, or a text with two decimals such as "100.50"'
_OVERSIZE: Final = "has too many digits, or too large an exponent"
_written: Final = re.compile(r"[0-9]{1,12}\.[0-9]{2}")
_written_with_sign: Final = re.compile(r"-?[0-9]{1,12}\.[0-9]{2}")
_NUMBER_WORDS: Final = "A number with at most two decimals."
_TEXT_WORDS: Final = "The same as a text with exactly two decimals, such as `100.50`."


def _number_schema(least: float, **more: object) -> dict[str, object]:
    return {
        "type": "number",
        "minimum": least,
        "maximum": AMOUNT_MINOR_MAX / MINOR_PER_UNIT,
        "description": _NUMBER_WORDS,
        "x-decimals-max": 2,
        **more,
    }


def _text_schema(pattern: str, **more: object) -> dict[str, object]:
    return {"type": "string", "pattern": pattern, "description": _TEXT_WORDS, **more}


AMOUNT_SCHEMAS: Final[tuple[dict[str, object], ...]] = (
    _number_schema(1 / MINOR_PER_UNIT),
    _text_schema(r"^(?:[0-9]+\.(?:0[1-9]|[1-9][0-9])|0*[1-9][0-9]*\.00)$", maxLength=len("999999999999.99")),
)
"""The two forms of an amount greater than 0."""

Currency = Annotated[str, Meta(min_length=3, max_length=3, pattern="^[A-Z]{3}$")]


def amount_in(value: object, *, text: re.Pattern[str] = _written) -> int | Decimal:
    """Gives the amount that a member of a body says, exactly; it may be 0 or less.

    Raises ValueError, with words that fit behind a field's name, for what is neither a number nor such a text.
    """
    if isinstance(value, str) and text.fullmatch(value) is not None:
        return Decimal(value)
    # By type, not isinstance: to Python, True is an int.
    if type(value) is int or type(value) is Decimal:
        return value
    raise ValueError(_OVERSIZE if isinstance(value, OversizeNumber) else AMOUNT_FORMS)


def positive_minor(value: object) -> int:
    """Gives an amount greater than 0, in hundredths; raises ValueError with words that fit behind a field's name."""
    return minor_units(amount_in(value))


def _unit_amount(value: object) -> int:
    number = amount_in(value)
    try:
        return 0 if number == 0 else minor_units(number)
    except AmountError as error:
        raise ValueError(str(error).replace("greater than 0", "0 or greater")) from None


def startup_fee_minor(value: object) -> int:
    """Gives an amount in hundredths that is below 0 where it is subtracted; raises ValueError as ``positive_minor``."""
    number = amount_in(value, text=_written_with_sign)
    if number == 0:
        raise ValueError("must not be 0: leave it out")
    try:
        # Without its sign, not negated: to negate rounds to the context's digits.
        minor = minor_units(number.copy_abs() if isinstance(number, Decimal) else abs(number))
    except AmountError as error:
        words = str(error)
        raise ValueError(words if number > 0 else words.replace("probably ", "probably -")) from None
    return minor if number > 0 else -minor


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
    raise ValueError(_OVERSIZE if isinstance(value, OversizeNumber) else "must be a whole number")


class Amount(
    CheckedValue, int, check=positive_minor, schema={"anyOf": [*AMOUNT_SCHEMAS], "description": "An amount of money."}
):
    """An amount of money greater than 0, in hundredths."""


class UnitAmount(
    CheckedValue,
    int,
    check=_unit_amount,
    schema={
        "anyOf": [_number_schema(0), _text_schema(r"^[0-9]{1,12}\.[0-9]{2}$")],
        "description": "The price of one item.",
    },
):
    """The price of one item, which may be 0, in hundredths."""


class StartupFee(
    CheckedValue,
    int,
    check=startup_fee_minor,
    schema={
        "anyOf": [
            _number_schema(-AMOUNT_MINOR_MAX / MINOR_PER_UNIT, **{"not": {"const": 0}}),
            _text_schema(r"^-?[0-9]{1,12}\.[0-9]{2}$", **{"not": {"type": "string", "pattern": r"^-?0+\.00$"}}),
        ],
        "description": "Added to the first payment; below 0, subtracted from it.",
    },
):
    """The amount added to a first payment, or subtracted from it where it is below 0, in hundredths."""


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
