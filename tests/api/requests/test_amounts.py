from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.api.bodies import CAPTURE, CHARGE, written, wrong

from payrelay.api.requests.amounts import whole
from payrelay.api.requests.body import Body, parse_body
from payrelay.api.requests.payment_bodies import CaptureBody, ChargeBody
from payrelay.core.money import decimal_text

FORMS = 'must be a number, or a text with two decimals such as "100.50"'


@given(st.integers(1, 99_999_999_999_999), st.integers(0, 9))
def test_an_amount_arrives_to_the_last_digit(amount_minor: int, zeros: int) -> None:
    """Whatever the amount and however many zeros it carries, not a cent is lost or made."""
    text = decimal_text(amount_minor) + "0" * zeros
    body = written(CHARGE, amount=0).replace(b'"amount": 0', b'"amount": ' + text.encode())
    assert parse_body(body, ChargeBody).call().amount_minor == amount_minor


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("0", "must be greater than 0"),
        ("0.00", "must be greater than 0"),
        ("-1", "must be greater than 0"),
        ("-0", "must be greater than 0"),
        ("0.001", "must have at most 2 decimals"),
        ("1.005", "must have at most 2 decimals"),
        ("0." + "0" * 30_000 + "1", "must have at most 2 decimals"),
        ("1005E-3", "must have at most 2 decimals"),
        ("1e999", "must be at most 999999999999.99"),
        ("1e1000", "has too many digits, or too large an exponent"),
        ("1000000000000", "must be at most 999999999999.99"),
        ("9" * 5000, "must be at most 999999999999.99"),
        ('"345.6"', FORMS),
        ("true", FORMS),
        ("null", FORMS),
        ("[1]", FORMS),
        ("{}", FORMS),
    ],
)
@pytest.mark.parametrize(("members", "kind"), [(CHARGE, ChargeBody), (CAPTURE, CaptureBody)])
def test_a_wrong_amount_is_refused_in_words(text: str, words: str, members: dict[str, Any], kind: type[Body]) -> None:
    """Only a number with at most two decimals, or its text, is money; everything else is told apart."""
    body = written(members, amount=0).replace(b'"amount": 0', b'"amount": ' + text.encode())
    assert wrong(body, kind) == {"amount": words}


@pytest.mark.parametrize("currency", ["LK", "LKRR", "lkr", "LK1", "LKR\n", "", 7, None])
def test_a_currency_is_three_capital_letters(currency: object) -> None:
    """A code that is nearly right must not reach the gateway as another one."""
    assert set(wrong(written(CHARGE, currency=currency), ChargeBody)) == {"currency"}


@pytest.mark.parametrize(
    "quantity",
    ["0", "-1", "1.5", "true", '"1"', "1e-1", "1e9", "1e9999", "1000000000", "null", "0.0", "-2.0", "-" + "9" * 5000],
)
def test_a_quantity_is_a_whole_number(quantity: str) -> None:
    """Half an item and none of an item are mistakes."""
    item = f'"name":"a","number":"1","unit_amount":0,"quantity":{quantity}'
    body = written(CHARGE)[:-1] + b',"itemList":[{' + item.encode() + b"}]}"
    assert set(wrong(body, ChargeBody)) == {"itemList[0].quantity"}


@pytest.mark.parametrize("text", ["7", "7.0", "-7.00", "0.0", "7E+0", "70e-1"])
def test_a_whole_number_may_have_a_point(text: str) -> None:
    """7.0 is an integer to JSON Schema, and some languages write no other."""
    number = whole(Decimal(text), 7)
    assert number == Decimal(text)
    assert type(number) is int


@pytest.mark.parametrize(
    "value", [Decimal("7.5"), Decimal(8), Decimal(-8), Decimal("-" + "9" * 5000), Decimal("1E+999"), 8, True, "7"]
)
def test_any_other_value_is_left_to_its_check(value: object) -> None:
    """What is far out of range is not worth the long work of making an integer of it."""
    assert whole(value, 7) is value


def test_an_amount_is_no_float_on_its_way() -> None:
    """0.1 + 0.2 is the classic; here a sum of cents that floats can't hold."""
    body = written(CHARGE, amount=0).replace(b'"amount": 0', b'"amount": 999999999999.99')
    assert parse_body(body, ChargeBody).call().amount_minor == int(Decimal("999999999999.99") * 100)
