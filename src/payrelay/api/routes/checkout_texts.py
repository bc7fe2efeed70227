"""The texts and numbers of a hosted payment's form: what is checked of each, and how JSON Schema has it.

The gateway shows a customer an error page for a form that it doesn't like; here the caller is told before that.
"""

import re
from collections.abc import Callable
from datetime import date
from decimal import Decimal
from typing import Final

from payrelay.api.requests.body import CheckedValue
from payrelay.core.money import AMOUNT_MINOR_MAX, MINOR_PER_UNIT, AmountError, minor_units

FORM_TEXT_LENGTH_MAX: Final = 255
FORM_TITLE_LENGTH_MAX: Final = 1000
RETRIES_MAX: Final = 100
EXPIRES_IN_S_MIN: Final = 60
EXPIRES_IN_S_MAX: Final = 86_400
"""A day: whoever wants to pay later is given a new page, with an amount that is still right."""
EXPIRES_IN_S_USUAL: Final = 1_800

# What there is of Unicode's first plane without control characters, angle brackets, marks that turn the direction of
# what is read, and pictures: the gateway takes no emoji in any field. Written so that every reader of JSON Schema
# understands it alike.
_FORM_TEXT: Final = (
    r"^(?=.*\S)[ -;=?-~\u00a0-\u2027\u202f-\u2065\u206a-\u25ff\u27c0-\u2aff\u2c00-\ud7ff\uf900-\ufe0e\ufe10-\ufefe"
    r"\uff00-\uffef]+$"
)
_form_text_match: Final = re.compile(_FORM_TEXT).fullmatch
_EMAIL: Final = r"^[A-Za-z0-9.!#$%&'*+/=?^_`{|}~-]{1,64}@[A-Za-z0-9-]{1,63}(?:\.[A-Za-z0-9-]{1,63})+$"
_email_match: Final = re.compile(_EMAIL).fullmatch
_PHONE: Final = r"^\+?[0-9][0-9 ()-]{4,22}[0-9]$"
_phone_match: Final = re.compile(_PHONE).fullmatch
_PERIOD: Final = r"^[1-9][0-9]{0,2} (?:Week|Month|Year)$"
_period_match: Final = re.compile(_PERIOD).fullmatch
_DURATION: Final = r"^(?:Forever|[1-9][0-9]{0,2} (?:Week|Month|Year))$"
_duration_match: Final = re.compile(_DURATION).fullmatch
_DAY: Final = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}$"
_day_match: Final = re.compile(_DAY).fullmatch
_LINK: Final = r"^[A-Za-z][A-Za-z0-9+.-]*://[!-~]*$"
_link_match: Final = re.compile(_LINK).fullmatch
_LINK_LENGTH_MAX: Final = 1000


_FEE_MAX: Final = AMOUNT_MINOR_MAX / MINOR_PER_UNIT


def _text(value: object, longest: int) -> str:
    if not isinstance(value, str):
        raise ValueError("must be a string")  # noqa: TRY004 - what is wrong with a value is a ValueError here
    if not value.strip():
        raise ValueError("must not be empty")
    if len(value) > longest:
        raise ValueError(f"must have at most {longest} characters")
    if _form_text_match(value) is None:
        raise ValueError("must have no line breaks or other control characters, no < or >, and no emoji")
    return value


def _form_text(value: object) -> str:
    return _text(value, FORM_TEXT_LENGTH_MAX)


def _form_title(value: object) -> str:
    return _text(value, FORM_TITLE_LENGTH_MAX)


def _fitting(value: object, match: Callable[[str], object], words: str) -> str:
    if not isinstance(value, str) or len(value) > FORM_TEXT_LENGTH_MAX or not match(value):
        raise ValueError(words)
    return value


def _email(value: object) -> str:
    return _fitting(value, _email_match, "must be an e-mail address such as saman@example.com")


def _phone(value: object) -> str:
    return _fitting(value, _phone_match, "must be a telephone number such as +94771234567")


def _period(value: object) -> str:
    return _fitting(value, _period_match, "must be a number of Week, Month or Year, such as 1 Month")


def _duration(value: object) -> str:
    return _fitting(value, _duration_match, "must be Forever, or a number of Week, Month or Year")


def _day(value: object) -> str:
    words = "must be a day such as 2026-12-24"
    text = _fitting(value, _day_match, words)
    try:
        date.fromisoformat(text)
    except ValueError:
        raise ValueError(words) from None
    return text


def _app_link(value: object) -> str:
    if not isinstance(value, str) or len(value) > _LINK_LENGTH_MAX or not _link_match(value):
        raise ValueError(f"must be a link such as myshop://paid, of at most {_LINK_LENGTH_MAX} characters")
    return value


def _startup_fee(value: object) -> int:
    if type(value) is not int and type(value) is not Decimal:
        raise ValueError("must be a number, written without an exponent")
    if value == 0:
        raise ValueError("must not be 0: leave it out")
    try:
        return minor_units(value) if value > 0 else -minor_units(-value)
    except AmountError as error:
        raise ValueError(str(error)) from None


def _whole(value: object, least: int, most: int) -> int:
    if type(value) is Decimal and abs(value) <= most and value == value.to_integral_value():
        value = int(value)
    if type(value) is not int or not least <= value <= most:
        raise ValueError(f"must be a whole number from {least} to {most}")
    return value


def _retries(value: object) -> int:
    return _whole(value, 0, RETRIES_MAX)


def _expires_in(value: object) -> int:
    return _whole(value, EXPIRES_IN_S_MIN, EXPIRES_IN_S_MAX)


def _pattern(pattern: str, longest: int = FORM_TEXT_LENGTH_MAX) -> dict[str, object]:
    return {"type": "string", "minLength": 1, "maxLength": longest, "pattern": pattern}


class FormText(CheckedValue, str, check=_form_text, schema=_pattern(_FORM_TEXT)):
    """A text that stands in a form: no control characters, no angle brackets, no emoji."""

    __slots__ = ()


class FormTitle(CheckedValue, str, check=_form_title, schema=_pattern(_FORM_TEXT, FORM_TITLE_LENGTH_MAX)):
    """A text of a form that is long enough for the title of what is bought."""

    __slots__ = ()


class Email(CheckedValue, str, check=_email, schema=_pattern(_EMAIL)):
    """An e-mail address."""

    __slots__ = ()


class Phone(CheckedValue, str, check=_phone, schema=_pattern(_PHONE)):
    """A telephone number."""

    __slots__ = ()


class Period(CheckedValue, str, check=_period, schema=_pattern(_PERIOD)):
    """How often: ``1 Month``."""

    __slots__ = ()


class Duration(CheckedValue, str, check=_duration, schema=_pattern(_DURATION)):
    """For how long: ``1 Year`` or ``Forever``."""

    __slots__ = ()


class Day(CheckedValue, str, check=_day, schema={"type": "string", "format": "date", "pattern": _DAY}):
    """A day: ``2026-12-24``."""

    __slots__ = ()


class AppLink(
    CheckedValue,
    str,
    check=_app_link,
    schema={
        **_pattern(_LINK, _LINK_LENGTH_MAX),
        "description": "A link of your own app, as `PAYRELAY_RETURN_LINKS` allows it.",
    },
):
    """A link of the caller's own app; which ones are taken is a setting."""

    __slots__ = ()


class StartupFee(
    CheckedValue,
    int,
    check=_startup_fee,
    schema={
        "type": "number",
        "minimum": -_FEE_MAX,
        "maximum": _FEE_MAX,
        "not": {"const": 0},
        "description": "Added to the first payment; below 0 taken off it.",
        "x-decimals-max": 2,
    },
):
    """What is added to a first payment, or below 0 taken off it, in hundredths."""


class Retries(CheckedValue, int, check=_retries, schema={"type": "integer", "minimum": 0, "maximum": RETRIES_MAX}):
    """How often a failed installment is tried again."""


class ExpiresIn(
    CheckedValue,
    int,
    check=_expires_in,
    schema={
        "type": "integer",
        "minimum": EXPIRES_IN_S_MIN,
        "maximum": EXPIRES_IN_S_MAX,
        "default": EXPIRES_IN_S_USUAL,
        "description": "Seconds for which the page sends a customer to the gateway.",
    },
):
    """How long a page takes customers, in seconds."""
