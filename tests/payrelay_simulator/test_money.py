from decimal import Decimal

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from payrelay_simulator.money import AMOUNT_CENTS_MAX, cents_of, double_of, fee_of, text_of

CENTS = st.integers(min_value=1, max_value=AMOUNT_CENTS_MAX)


@given(CENTS)
def test_every_amount_survives_its_text(cents: int) -> None:
    """What is signed is what was charged, to the cent."""
    assert cents_of(text_of(cents)) == cents


@given(CENTS)
def test_every_amount_survives_the_gateways_double(cents: int) -> None:
    """Doubles on the wire lose no cent up to the largest amount, for readers that parse decimals."""
    decoded = msgspec.json.decode(msgspec.json.encode(double_of(cents)), type=Decimal)

    assert cents_of(decoded) == cents


@pytest.mark.parametrize(
    ("given_amount", "cents"),
    [(50, 5000), (Decimal("345.67"), 34567), ("100.5", 10050), (Decimal("1E+2"), 10000), ("100.500", 10050)],
)
def test_numbers_and_texts_are_taken(given_amount: object, cents: int) -> None:
    """The gateway's own clients send both, so both must work."""
    assert cents_of(given_amount) == cents


@pytest.mark.parametrize(
    "given_amount",
    [
        0,
        -1,
        True,
        None,
        [],
        "",
        ".",
        "1,000.00",
        "1e3",
        " 5",
        "-5",
        "٣",
        Decimal("0.001"),
        Decimal("NaN"),
        Decimal("Infinity"),
        Decimal("1E+999999"),
        Decimal("1E-999999"),
        AMOUNT_CENTS_MAX,
    ],
)
def test_what_is_no_amount_is_none(given_amount: object) -> None:
    """Nothing odd becomes money, and a short text that names an endless number costs nothing."""
    assert cents_of(given_amount) is None


def test_negative_cents_keep_their_sign_in_text() -> None:
    """A discount is written with its sign before the whole number."""
    assert text_of(-5) == "-0.05"


def test_fee_is_the_observed_share() -> None:
    """A thousand rupees cost thirty-three, as seen at the gateway."""
    assert fee_of(100_000) == 3_300
