"""The console's filter: what passes, and which combinations nothing can fit."""

from collections.abc import Callable

import msgspec
import pytest

from payrelay.console.rules.finding import CHECKOUT, Hit, Search, SearchError, Thing

CHARGE = Hit(
    noun=Thing.OPERATION,
    id="op_1",
    found_by="order id",
    account="gateway",
    at_ms=1_000,
    kind="charge",
    state="succeeded",
    amount_minor=100_000,
    currency="LKR",
)
PAGE = msgspec.structs.replace(CHARGE, noun=Thing.CHECKOUT, id="chk_1", kind="payment", state="completed")
PAYMENT = msgspec.structs.replace(CHARGE, noun=Thing.PAYMENT, id="7", kind=None, state=None)


@pytest.mark.parametrize(
    "search",
    [
        Search(),
        Search(state="succeeded"),
        Search(kind="charge"),
        Search(kind="charge", state="succeeded"),
        Search(account="gateway"),
        Search(amount_minor=100_000),
        Search(since_ms=1_000, until_ms=1_001),
    ],
)
def test_what_has_all_that_is_asked_for_passes(search: Search) -> None:
    """Support must not be told that a payment isn't there because a filter was set that it meets."""
    assert search.fits(CHARGE)


@pytest.mark.parametrize(
    "search",
    [
        Search(state="failed"),
        Search(state="checkout-completed"),
        Search(kind="refund"),
        Search(kind=CHECKOUT),
        Search(account="other"),
        Search(amount_minor=99_999),
        Search(since_ms=1_001),
        Search(until_ms=1_000),
    ],
)
def test_what_lacks_one_thing_does_not_pass(search: Search) -> None:
    """The end of a time is not part of it, and a state of checkouts is none of operations."""
    assert not search.fits(CHARGE)


def test_a_state_of_checkouts_is_one_of_checkouts_alone() -> None:
    """Both nouns have a state of this name, and whoever asks for one must not see the other."""
    both = [CHARGE, PAGE, msgspec.structs.replace(CHARGE, state="completed")]

    assert [each for each in both if Search(state="checkout-completed").fits(each)] == [PAGE]
    assert [each for each in both if Search(kind=CHECKOUT).fits(each)] == [PAGE]


def test_a_page_is_no_operation_of_the_same_kind() -> None:
    """A checkout has kinds of its own; one that is called as an operation's kind is not that operation."""
    page = msgspec.structs.replace(PAGE, kind="charge")

    assert not Search(kind="charge").fits(page)
    assert not Search(state="succeeded").fits(PAYMENT)


@pytest.mark.parametrize(
    ("search", "told"),
    [
        (lambda: Search(state="checkout-open", kind="charge"), "That state is one of checkouts"),
        (lambda: Search(state="succeeded", kind=CHECKOUT), "That state is one of operations"),
        (lambda: Search(since_ms=5, until_ms=5), "The first day is after the last"),
    ],
    ids=["a state of checkouts", "a state of operations", "an empty time"],
)
def test_a_search_that_nothing_can_fit_says_so(search: Callable[[], Search], told: str) -> None:
    """An empty list would look like an answer about the payment."""
    with pytest.raises(SearchError, match=told):
        search()
