import re
from collections.abc import Callable
from decimal import Decimal

import jsonschema_rs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from payrelay.api.requests.amounts import StartupFee
from payrelay.api.requests.body import CheckedValue
from payrelay.api.routes.checkout_texts import (
    AppLink,
    Day,
    Duration,
    Email,
    ExpiresIn,
    FormText,
    FormTitle,
    Period,
    Phone,
    Retries,
)

GOOD: list[tuple[type[CheckedValue], object]] = [
    (FormText, "Saman"),
    (FormText, "No. 1, Galle Road #3 (flat), 50% & more"),
    (FormText, "ශ්‍රී ලංකාව"),
    (FormText, "இலங்கை"),
    (FormText, "x" * 255),
    (FormTitle, "x" * 1000),
    (Email, "saman.perera+tag@mail.example.lk"),
    (Phone, "+94771234567"),
    (Phone, "077 123-4567"),
    (Period, "2 Week"),
    (Period, "999 Year"),
    (Duration, "Forever"),
    (Duration, "6 Month"),
    (Day, "2028-02-29"),
    (AppLink, "myshop://paid"),
    (StartupFee, Decimal("-100.50")),
    (StartupFee, 100),
    (StartupFee, Decimal("1E+2")),
    (StartupFee, "100.50"),
    (StartupFee, "-0.01"),
    (Retries, 0),
    (Retries, Decimal("3.0")),
    (ExpiresIn, 60),
]
BAD: list[tuple[type[CheckedValue], object, str]] = [
    (FormText, "", "must not be empty"),
    (FormText, "  ", "must not be empty"),
    (FormText, 3, "must be a string"),
    (FormText, "x" * 256, "must have at most 255 characters"),
    (FormText, "<script>", "no < or >"),
    (FormText, "a\nb", "no line breaks"),
    (FormText, "a\0b", "no line breaks"),
    (FormText, "a\x85b", "control characters"),
    (FormText, "thanks 😀", "no emoji"),
    (FormText, "thanks ❤", "no emoji"),
    (FormText, "a\u202eb", "control characters"),
    (FormTitle, "x" * 1001, "must have at most 1000 characters"),
    (Email, "saman", "must be an e-mail address"),
    (Email, "saman@localhost", "must be an e-mail address"),
    (Email, "a b@example.com", "must be an e-mail address"),
    (Email, "saman@example.com\n", "must be an e-mail address"),
    (Email, "x" * 300 + "@example.com", "must be an e-mail address"),
    (Email, None, "must be an e-mail address"),
    (Phone, "12", "must be a telephone number"),
    (Phone, "077-CALL-ME", "must be a telephone number"),
    (Period, "1 Day", "must be a number of Week, Month or Year"),
    (Period, "0 Month", "must be a number of Week, Month or Year"),
    (Period, "1 Months", "must be a number of Week, Month or Year"),
    (Period, "Forever", "must be a number of Week, Month or Year"),
    (Duration, "forever", "must be Forever"),
    (Day, "2027-02-29", "must be a day"),
    (Day, "24.12.2026", "must be a day"),
    (AppLink, "paid", "must be a link"),
    (AppLink, "myshop://a b", "must be a link"),
    (AppLink, 1, "must be a link"),
    (StartupFee, 0, "must not be 0"),
    (StartupFee, "0.00", "must not be 0"),
    (StartupFee, "-0.00", "must not be 0"),
    (StartupFee, "1000000000000.00", "must be a number"),
    (StartupFee, "1", "must be a number"),
    (StartupFee, True, "must be a number"),
    (StartupFee, Decimal("0.001"), "must have at most 2 decimals"),
    (StartupFee, 10**15, "must be at most"),
    (Retries, -1, "must be a whole number from 0 to 100"),
    (Retries, 101, "must be a whole number from 0 to 100"),
    (Retries, Decimal("1.5"), "must be a whole number from 0 to 100"),
    (Retries, True, "must be a whole number from 0 to 100"),
    (ExpiresIn, 59, "must be a whole number from 60 to 86400"),
    (ExpiresIn, 86_401, "must be a whole number from 60 to 86400"),
    (ExpiresIn, "60", "must be a whole number from 60 to 86400"),
]


def fits(kind: type[CheckedValue], value: object) -> bool:
    """Holds a value against the schema of its type."""
    shown = float(value) if isinstance(value, Decimal) else value
    return bool(jsonschema_rs.validator_for(kind.SCHEMA, validate_formats=True).is_valid(shown))


@pytest.mark.parametrize(("kind", "value"), GOOD)
def test_what_the_gateway_accepts_is_accepted(kind: type[CheckedValue], value: object) -> None:
    """As it was written, and the description says so too."""
    read = kind.read(value)
    expected = int(Decimal(str(value)) * 100) if kind is StartupFee else value

    assert read == expected
    assert isinstance(read, kind)
    assert fits(kind, value)


@pytest.mark.parametrize(("kind", "value", "words"), BAD)
def test_what_it_would_show_an_error_page_for_is_refused(kind: type[CheckedValue], value: object, words: str) -> None:
    """The caller is told which field, and why; a customer would only be told that something went wrong."""
    with pytest.raises(ValueError, match=re.escape(words)):
        kind.read(value)
    is_said_by_schema = value != Decimal("0.001")  # JSON Schema has no way to count decimals
    assert fits(kind, value) is not is_said_by_schema


TEXTS: list[type[CheckedValue]] = [FormText, Email, Phone, Period, Duration, Day, AppLink]


@pytest.mark.parametrize("kind", TEXTS)
@given(text=st.text(max_size=20))
def test_schema_and_check_agree_on_every_text(kind: type[CheckedValue], text: str) -> None:
    """A generated client must not send what is refused, nor hold back what is taken."""
    read: Callable[[object], object] = kind.read
    try:
        read(text)
        is_taken = True
    except ValueError:
        is_taken = False

    assert fits(kind, text) is is_taken
