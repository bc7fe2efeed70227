from decimal import Decimal

import pytest

from payrelay_simulator.errors import RefusalError
from payrelay_simulator.fields import Fields, identifier_of, parse_json


def test_decimals_are_read_to_the_last_digit() -> None:
    """An amount is never a float on its way in."""
    assert parse_json("application/json; charset=utf-8", b'{"amount": 0.1}').raw("amount") == Decimal("0.1")


@pytest.mark.parametrize(
    ("content_type", "body", "http_status"),
    [
        ("text/plain", b"{}", 415),
        ("", b"{}", 415),
        ("application/json", b"", 400),
        ("application/json", b"{", 400),
        ("application/json", b"\xff", 400),
        ("application/json", b"[" * 100_000, 400),
        ("application/json", b"[]", 400),
        ("application/json", b'{"a":NaN}', 400),
    ],
)
def test_what_is_no_json_object_is_refused(content_type: str, body: bytes, http_status: int) -> None:
    """Whatever a client sends, it gets an answer that says what is wrong."""
    with pytest.raises(RefusalError) as refusal:
        parse_json(content_type, body)

    assert refusal.value.reply.http_status == http_status


@pytest.mark.parametrize("value", [None, "", 5, []])
def test_text_must_be_a_text(value: object) -> None:
    """A missing text and one of another type are both refused by name."""
    with pytest.raises(RefusalError, match="order_id"):
        Fields({"order_id": value}).text("order_id")


@pytest.mark.parametrize("value", [420075032251, "420075032251"])
def test_identifier_is_taken_as_number_and_as_text(value: object) -> None:
    """The documents show numbers and clients send texts."""
    assert Fields({"subscription_id": value}).identifier("subscription_id") == 420075032251


@pytest.mark.parametrize("value", [True, -1, "x", "1.0", "٣", "9" * 20, 10**30, [], {}])
def test_what_is_no_identifier_is_refused(value: object) -> None:
    """Nothing odd is looked up, however long it is."""
    with pytest.raises(RefusalError):
        identifier_of(value, "id")


def test_number_too_long_to_print_is_refused() -> None:
    """A number of thousands of digits is not even turned into a text."""
    with pytest.raises(RefusalError):
        identifier_of(10**5000, "id")
