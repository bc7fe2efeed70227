from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from payrelay.core.money import (
    AMOUNT_MINOR_MAX,
    AmountError,
    amount_json,
    decimal_text,
    minor_units,
    money_text,
    typed_minor,
)

amounts_minor = st.integers(1, AMOUNT_MINOR_MAX)


@given(amounts_minor)
def test_writing_and_reading_an_amount_gives_the_same_hundredths(amount_minor: int) -> None:
    """What goes out to the gateway is what came in, to the last digit."""
    assert minor_units(Decimal(decimal_text(amount_minor))) == amount_minor


@given(amounts_minor, st.integers(0, 60))
def test_zeros_at_the_end_change_nothing(amount_minor: int, zeros: int) -> None:
    """1.5 and 1.500 are equal amounts, even with more digits than a decimal context holds."""
    assert minor_units(Decimal(decimal_text(amount_minor) + "0" * zeros)) == amount_minor


@given(amounts_minor, st.integers(0, 60))
def test_a_third_decimal_is_refused_wherever_it_stands(amount_minor: int, zeros: int) -> None:
    """Nothing is rounded away: a request for a tenth of a cent is refused."""
    with pytest.raises(AmountError, match=r"2 decimals|at most"):
        minor_units(Decimal(decimal_text(amount_minor) + "0" * zeros + "1"))


@given(st.integers(1, 10**12), st.integers(1, 200))
def test_what_binary_fractions_made_of_an_amount_is_refused_with_what_was_meant(minor: int, count: int) -> None:
    """0.1 added ten times is 0.9999999999999999: the developer is told, and nobody is charged by a guess."""
    sum_ = Decimal(repr(sum([minor / 100 / count] * count)))
    if -int(sum_.as_tuple().exponent) <= 2:
        assert minor_units(sum_) == minor
    else:
        with pytest.raises(AmountError, match=f"; probably {decimal_text(minor)} was meant$"):
            minor_units(sum_)


@pytest.mark.parametrize("text", ["10.155", "10.101", "0.001", "0.0000000001", "1.0000000000000000000001"])
def test_nothing_is_guessed_of_an_amount_that_no_calculation_made(text: str) -> None:
    """A third decimal is a mistake of another kind, and there may be no amount beside it."""
    with pytest.raises(AmountError, match=r"2 decimals$"):
        minor_units(Decimal(text))


@pytest.mark.parametrize("amount", [0, -1, Decimal(0), Decimal("-0.00"), Decimal("-1E+999999999")])
def test_an_amount_is_greater_than_zero(amount: Decimal | int) -> None:
    """A charge of nothing or less is a mistake, and must not reach the gateway."""
    with pytest.raises(AmountError, match="greater than 0"):
        minor_units(amount)


@pytest.mark.parametrize("text", ["NaN", "sNaN", "Infinity", "-Infinity"])
def test_what_is_not_finite_is_refused(text: str) -> None:
    """Python's decimals know more than money does."""
    with pytest.raises(AmountError, match="finite"):
        minor_units(Decimal(text))


@pytest.mark.parametrize("amount", [True, False])
def test_a_truth_value_is_not_an_amount(amount: bool) -> None:  # noqa: FBT001 - the type is the point
    """In Python true is 1; in a payment it is not."""
    with pytest.raises(AmountError, match="must be a number"):
        minor_units(amount)


@pytest.mark.parametrize("amount", [10**12, 10**400, Decimal(10**12), Decimal("1E+999999"), Decimal("9E+999999999")])
def test_an_amount_over_the_largest_is_refused_however_large(amount: Decimal | int) -> None:
    """A number with a huge exponent must be an error of the field, not one of arithmetic."""
    with pytest.raises(AmountError, match=r"at most 999999999999\.99"):
        minor_units(amount)


@pytest.mark.parametrize("text", ["1E-999999", "1E-999999999", "12.3456789E-40"])
def test_a_tiny_number_is_refused_without_computing_its_power(text: str) -> None:
    """Ten to the millionth would keep the processor busy for one request."""
    with pytest.raises(AmountError, match="2 decimals"):
        minor_units(Decimal(text))


def test_the_largest_amount_is_accepted_in_both_forms() -> None:
    """The limit itself belongs to what is allowed."""
    assert minor_units(Decimal("999999999999.99")) == AMOUNT_MINOR_MAX
    assert minor_units(999_999_999_999) == 99_999_999_999_900


@given(st.integers(1, 999_999_999_999))
def test_a_whole_number_means_the_same_as_an_integer_or_a_decimal(units: int) -> None:
    """1000 and 1000.0 are written by different clients and mean the same."""
    assert minor_units(units) == minor_units(Decimal(units)) == units * 100


def test_an_exponent_is_read_by_value() -> None:
    """Some libraries write 1000 so."""
    assert minor_units(Decimal("1E+3")) == 100_000


@pytest.mark.parametrize(
    ("amount", "words"),
    [
        (True, "must be a number"),
        (Decimal("NaN"), "must be a finite number"),
        (0, "must be greater than 0"),
        (Decimal("1.001"), "must have at most 2 decimals"),
        (10**12, "must be at most 999999999999.99"),
    ],
)
def test_what_is_wrong_with_an_amount_is_said_in_words(amount: Decimal | int, words: str) -> None:
    """They stand behind the field's name in the answer."""
    with pytest.raises(AmountError) as caught:
        minor_units(amount)
    assert str(caught.value) == words


@pytest.mark.parametrize(("text", "amount_minor"), [("1E+2", 10_000), ("12E-2", 12), ("120E-3", 12), ("1000E-3", 100)])
def test_digits_and_exponent_together_are_the_amount(text: str, amount_minor: int) -> None:
    """On each side of the two decimals."""
    assert minor_units(Decimal(text)) == amount_minor


def test_an_amount_is_a_number_of_json_with_both_decimals() -> None:
    """What was asked for is shown to the last digit; what isn't known is null, and no 0."""
    assert [bytes(amount_json(amount_minor)) for amount_minor in (34_567, 100_000, None)] == [
        b"345.67",
        b"1000.00",
        b"null",
    ]


@given(st.integers(1, AMOUNT_MINOR_MAX))
def test_an_amount_below_zero_is_the_same_with_a_sign(amount_minor: int) -> None:
    """A discount on a first payment is shown as it was given."""
    assert decimal_text(-amount_minor) == f"-{decimal_text(amount_minor)}"
    assert Decimal(decimal_text(-amount_minor)) * 100 == -amount_minor


@pytest.mark.parametrize(
    ("amount_minor", "currency", "text"),
    [
        (125_000, "LKR", "LKR 1,250.00"),
        (-125_000, "LKR", "LKR -1,250.00"),
        (-50, "LKR", "LKR -0.50"),
        (0, None, "0.00"),
        (None, "LKR", ""),
    ],
)
def test_people_read_an_amount_with_its_currency_and_its_sign(
    amount_minor: int | None, currency: str | None, text: str
) -> None:
    """Below one unit the sign stands before a zero, and isn't lost."""
    assert money_text(amount_minor, currency) == text


@given(amounts_minor)
def test_what_a_person_types_is_the_amount_that_a_page_shows(amount_minor: int) -> None:
    """Copied from the page with its commas, or typed without them, with both decimals or as few as it needs."""
    shown, text = money_text(amount_minor, "LKR"), decimal_text(amount_minor)

    assert typed_minor(shown.removeprefix("LKR ")) == typed_minor(f" {text}\t") == amount_minor
    assert typed_minor(text.rstrip("0").rstrip(".")) == amount_minor


@pytest.mark.parametrize(
    "text",
    [
        *("", " ", "x", "12,50", "1,2345", "1,00,000.00", ",100", "100,", "0,100", "1000,000", "1,250.00,00"),
        *("1.250,00", "1.250", "1250.", ".50", "1.2.3", "1 250", "1'250", "1_0", "1e1", "1E+2", "0x10", "+5", "-5"),
        *("NaN", "Infinity", "\uff11\uff12", "\u0661\u0660", "\u00b2", "LKR 100", "1" * 16, "1" + ",000" * 5),
    ],
)
def test_what_a_person_types_is_never_guessed(text: str) -> None:
    """12,50 is a habit of half of the world: it was read as 1,250.00, and refunded."""
    with pytest.raises(AmountError, match=r"must be written like 1250, 1250\.50 or 1,250\.50"):
        typed_minor(text)


@pytest.mark.parametrize(
    ("text", "words"), [("0", "greater than 0"), ("0.00", "greater than 0"), ("1" * 15, "at most")]
)
def test_a_typed_amount_is_an_amount(text: str, words: str) -> None:
    """Its form alone doesn't make it one. A sum may be 0, where the caller says so."""
    with pytest.raises(AmountError, match=words):
        typed_minor(text)
    if words == "greater than 0":
        assert typed_minor(text, may_be_0=True) == 0
    else:
        with pytest.raises(AmountError, match=words):
            typed_minor(text, may_be_0=True)
