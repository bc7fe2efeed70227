import pytest

from payrelay_simulator.pages.cards import TEST_CARDS, Means, Typed, means_of

ALL = ("VISA", "MASTER", "AMEX", "HELAPAY", "FRIMI", "QPLUS")


def typed(number: str = "4916217501611292", **changes: str) -> Typed:
    """Return what a payer types."""
    inputs = {"holder_name": "S Perera", "number": number, "expiry": "12/29", "security_code": "123", **changes}
    return Typed(**inputs)


def luhn(number: str) -> int:
    """Return the check sum of a card number, 0 for a good one."""
    digits = [int(digit) for digit in reversed(number)]
    return (sum(digits[::2]) + sum(sum(divmod(2 * digit, 10)) for digit in digits[1::2])) % 10


@pytest.mark.parametrize("number", TEST_CARDS)
def test_test_cards_do_what_they_are_for(number: str) -> None:
    """Five outcomes for each of three kinds, each a number that a form's own check lets through."""
    method, decline = TEST_CARDS[number]
    means = means_of(typed(number), ALL)

    assert luhn(number) == 0
    assert isinstance(means, Means)
    assert (means.card.method, means.decline, means.is_good) == (method, decline, decline is None)
    assert (means.card.last_digits, means.card.expiry) == (number[-4:], "1229")


def test_any_other_card_is_refused() -> None:
    """The sandbox knows its cards; a real one must not seem to work."""
    means = means_of(typed("4111111111111111"), ALL)

    assert isinstance(means, Means)
    assert means.refusal == "this is no test card"


def test_number_may_be_typed_in_groups() -> None:
    """People copy what stands on the card."""
    means = means_of(typed("4916 2175-0161 1292", expiry="1229"), ALL)

    assert isinstance(means, Means)
    assert means.is_good


def test_wallet_needs_no_card() -> None:
    """What is paid with shows nothing of a card then."""
    means = means_of(Typed(method="HELAPAY"), ALL)

    assert isinstance(means, Means)
    assert (means.card.method, means.card.last_digits, means.is_good) == ("HELAPAY", "", True)


@pytest.mark.parametrize(
    ("changes", "wrong"),
    [
        ({"holder_name": " "}, "cardHolderName"),
        ({"holder_name": "x" * 101}, "cardHolderName"),
        ({"number": "4916"}, "cardNo"),
        ({"number": "x"}, "cardNo"),
        ({"number": "9916217501611292"}, "cardNo"),
        ({"number": "346781005510225", "method": "VISA"}, "cardNo"),
        ({"expiry": "13/29"}, "cardExpiry"),
        ({"expiry": ""}, "cardExpiry"),
        ({"security_code": "12"}, "cardSecureId"),
        ({"method": "CASH"}, "method"),
    ],
)
def test_slips_are_told_by_their_input(changes: dict[str, str], wrong: str) -> None:
    """A slip is no refused card: the payer is shown where it is."""
    slips = means_of(typed(**changes), ALL)

    assert isinstance(slips, dict)
    assert list(slips) == [wrong]


def test_card_that_is_not_taken_here_is_a_slip() -> None:
    """A hold takes no Amex."""
    assert means_of(typed("346781005510225"), ("VISA", "MASTER")) == {"cardNo": "This is no card of VISA or MASTER."}
