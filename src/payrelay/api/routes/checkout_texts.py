"""The texts and numbers of a hosted payment's form: the check of each, and its JSON Schema.

For a form that the gateway rejects, it shows the customer an error page; these checks tell the client before that.
"""

import re
from datetime import date
from typing import Final

from payrelay.api.requests.amounts import WholeNumber
from payrelay.api.requests.body import Check, CheckedValue, MatchingText, matching

FORM_TEXT_LENGTH_MAX: Final = 255
FORM_TITLE_LENGTH_MAX: Final = 1000
RETRIES_MAX: Final = 100
EXPIRES_IN_S_MIN: Final = 60
EXPIRES_IN_S_MAX: Final = 86_400
"""A day: a customer who pays later gets a new page, with an amount that is still right."""
EXPIRES_IN_S_USUAL: Final = 1_800

# Unicode's first plane without control characters, angle brackets, marks that change the direction of text, and
# pictures: the gateway accepts no emoji in any field. One character at least is no space. That is said without a look
# ahead: not every reader of JSON Schema can do that, and a fuzzer throws away most texts that it makes so.
_FORM_SPACES: Final = r"[ \u00a0\u1680\u2000-\u200a\u202f\u205f\u3000]"
_FORM_LETTER: Final = (
    r"[!-;=?-~\u00a1-\u167f\u1681-\u1fff\u200b-\u2027\u2030-\u205e\u2060-\u2065\u206a-\u25ff\u27c0-\u2aff\u2c00-\u2fff"
    r"\u3001-\ud7ff\uf900-\ufe0e\ufe10-\ufefe\uff00-\uffef]"
)
_FORM_CHARACTER: Final = (
    r"[ -;=?-~\u00a0-\u2027\u202f-\u2065\u206a-\u25ff\u27c0-\u2aff\u2c00-\ud7ff\uf900-\ufe0e\ufe10-\ufefe\uff00-\uffef]"
)
_FORM_TEXT: Final = f"^{_FORM_SPACES}*{_FORM_LETTER}{_FORM_CHARACTER}*$"
_CUSTOM: Final = f"^$|{_FORM_TEXT}"
_EMAIL: Final = r"^[A-Za-z0-9.!#$%&'*+/=?^_`{|}~-]{1,64}@[A-Za-z0-9-]{1,63}(?:\.[A-Za-z0-9-]{1,63})+$"
_PHONE: Final = r"^\+?[0-9][0-9 ()-]{4,22}[0-9]$"
_PERIOD: Final = r"^[1-9][0-9]{0,2} (?:Week|Month|Year)$"
_DURATION: Final = r"^(?:Forever|[1-9][0-9]{0,2} (?:Week|Month|Year))$"
_DAY: Final = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}$"
_LINK: Final = r"^[A-Za-z][A-Za-z0-9+.-]*://[!-~]*$"
_LINK_LENGTH_MAX: Final = 1000
_DAY_WORDS: Final = "must be a day such as 2026-12-24"


def _form_text(longest: int) -> Check:
    match = re.compile(_FORM_TEXT).fullmatch

    def check(value: object) -> str:
        if not isinstance(value, str):
            raise ValueError("must be a string")  # noqa: TRY004 - what is wrong with a value is a ValueError here
        if not value.strip():
            raise ValueError("must not be empty")
        if len(value) > longest:
            raise ValueError(f"must have at most {longest} characters")
        if match(value) is None:
            raise ValueError("must have no line breaks or other control characters, no < or >, and no emoji")
        return value

    return check


_day_text: Final = matching(_DAY, _DAY_WORDS)


def _day(value: object) -> object:
    text = _day_text(value)
    try:
        date.fromisoformat(str(text))
    except ValueError:
        raise ValueError(_DAY_WORDS) from None
    return text


def _pattern(pattern: str, longest: int = FORM_TEXT_LENGTH_MAX) -> dict[str, object]:
    return {"type": "string", "minLength": 1, "maxLength": longest, "pattern": pattern}


class FormText(CheckedValue, str, check=_form_text(FORM_TEXT_LENGTH_MAX), schema=_pattern(_FORM_TEXT)):
    """A text of a form: no control characters, no angle brackets, no emoji."""

    __slots__ = ()


class CustomText(
    CheckedValue,
    str,
    check=lambda value: value if value == "" else _form_text(FORM_TEXT_LENGTH_MAX)(value),
    schema={**_pattern(_CUSTOM), "minLength": 0, "description": "An empty one counts as none."},
):
    """A custom parameter: a text of a form, or nothing."""

    __slots__ = ()


class FormTitle(
    CheckedValue,
    str,
    check=_form_text(FORM_TITLE_LENGTH_MAX),
    schema=_pattern(_FORM_TEXT, FORM_TITLE_LENGTH_MAX),
):
    """A text of a form, long enough for the title of a purchase."""

    __slots__ = ()


class Email(MatchingText, pattern=_EMAIL, words="must be an e-mail address such as saman@example.com"):
    """An e-mail address."""

    __slots__ = ()


class Phone(MatchingText, pattern=_PHONE, words="must be a telephone number such as +94771234567"):
    """A telephone number."""

    __slots__ = ()


class Period(MatchingText, pattern=_PERIOD, words="must be a number of Week, Month or Year, such as 1 Month"):
    """How often: ``1 Month``."""

    __slots__ = ()


class Duration(MatchingText, pattern=_DURATION, words="must be Forever, or a number of Week, Month or Year"):
    """For how long: ``1 Year`` or ``Forever``."""

    __slots__ = ()


class Day(CheckedValue, str, check=_day, schema={"type": "string", "format": "date", "pattern": _DAY}):
    """A day: ``2026-12-24``."""

    __slots__ = ()


class AppLink(
    MatchingText,
    pattern=_LINK,
    words=f"must be a link such as myshop://paid, of at most {_LINK_LENGTH_MAX} characters",
    longest=_LINK_LENGTH_MAX,
    description="A link of your own app, as `PAYRELAY_RETURN_LINKS` allows it.",
):
    """A link of the client's own app; a setting says which links are allowed."""

    __slots__ = ()


class Retries(WholeNumber, least=0, most=RETRIES_MAX, words=f"must be a whole number from 0 to {RETRIES_MAX}"):
    """How many times the gateway retries a failed installment."""


class ExpiresIn(
    WholeNumber,
    least=EXPIRES_IN_S_MIN,
    most=EXPIRES_IN_S_MAX,
    words=f"must be a whole number from {EXPIRES_IN_S_MIN} to {EXPIRES_IN_S_MAX}",
    default=EXPIRES_IN_S_USUAL,
    description="Seconds for which the page sends customers to the gateway.",
):
    """How long a page sends customers to the gateway, in seconds."""
