"""For every pair of what the gateway's ledger holds and what the books know: what a page says, and that it is true."""

from enum import Enum, auto
from itertools import product

import msgspec
import pytest
from tests.samples import CHECKOUT

from payrelay.core.checkouts.checkout import INQUIRED_FOR_MS, CheckoutState
from payrelay.core.checkouts.shown import Shown, is_awaited, leads_on, shown_of, state_passed_on

OPEN, NOTIFIED, COMPLETED, FAILED, CANCELLED, EXPIRED = CheckoutState


class Ledger(Enum):
    """What the customer did on the gateway's page, as the gateway knows it; ``DONE``: paid, approved or subscribed."""

    NOTHING = auto()
    REFUSED = auto()
    DONE = auto()
    REFUSED_THEN_DONE = auto()
    HELD = auto()
    REFUSED_THEN_HELD = auto()
    CAPTURED = auto()


REFUSALS = {Ledger.REFUSED, Ledger.REFUSED_THEN_DONE, Ledger.REFUSED_THEN_HELD}
HOLDS = {Ledger.HELD, Ledger.REFUSED_THEN_HELD, Ledger.CAPTURED}
ENDS = {Ledger.DONE, Ledger.REFUSED_THEN_DONE, Ledger.CAPTURED}

POSSIBLE = {
    OPEN: set(Ledger),
    EXPIRED: set(Ledger),
    CANCELLED: set(Ledger),
    FAILED: REFUSALS,
    NOTIFIED: HOLDS,
    COMPLETED: ENDS,
}
"""What may be in the ledger, by what the books know: news comes late or never, and a card may follow a refused one."""
PAIRS = [(books, ledger) for books in CheckoutState for ledger in Ledger if ledger in POSSIBLE[books]]

TRUE_OF = {
    Shown.WAITING: set(Ledger),
    Shown.EXPIRED: set(Ledger),
    Shown.CANCELLED: set(Ledger),
    Shown.REFUSED: REFUSALS,
    Shown.NOTIFIED: HOLDS,
    Shown.COMPLETED: ENDS,
}
"""Of which ledgers a page tells the truth; a page that says only what isn't known yet, of all."""
PASSED_ON_TRULY_OF = {OPEN: set(Ledger), NOTIFIED: HOLDS, COMPLETED: ENDS}


@pytest.mark.parametrize(("books", "ledger"), PAIRS)
def test_what_a_page_says_and_passes_on_is_true(books: CheckoutState, ledger: Ledger) -> None:
    """Whatever happened that the books don't know yet: above all a good card after a refused one."""
    shown = shown_of(books, ())

    assert ledger in TRUE_OF[shown]
    assert ledger in PASSED_ON_TRULY_OF[state_passed_on(shown)]


@pytest.mark.parametrize("books", CheckoutState)
def test_a_page_waits_for_whatever_may_still_be_done(books: CheckoutState) -> None:
    """And goes on by itself otherwise."""
    shown = shown_of(books, ())
    checkout = msgspec.structs.replace(CHECKOUT, state=books)
    is_awaiting = is_awaited(shown, checkout, checkout.created_at_ms)

    assert is_awaiting == (books not in {NOTIFIED, COMPLETED})
    assert leads_on(shown, is_cancelled=False) == (not is_awaiting)


def test_who_did_not_turn_back_is_not_told_so() -> None:
    """The shop closed the page; a payment of the order is told before that."""
    assert shown_of(CANCELLED, (), is_closed=True) is Shown.CLOSED
    assert shown_of(CANCELLED, (COMPLETED,), is_closed=True) is Shown.ORDER_COMPLETED


@pytest.mark.parametrize("books", CheckoutState)
def test_who_turned_back_is_led_on(books: CheckoutState) -> None:
    """There is nothing that such a customer waits for; the link says no more than is known."""
    assert leads_on(shown_of(books, ()), is_cancelled=True) == (books in {CANCELLED, FAILED, NOTIFIED, COMPLETED})


@pytest.mark.parametrize(("books", "other"), list(product(CheckoutState, CheckoutState)))
def test_what_another_page_of_the_order_came_to_is_told_first(books: CheckoutState, other: CheckoutState) -> None:
    """Who reads "an attempt did not succeed" of an order that was paid would pay it again."""
    shown = shown_of(books, (other,))
    expected = {COMPLETED: Shown.ORDER_COMPLETED, NOTIFIED: Shown.ORDER_NOTIFIED}.get(other)

    if books in {NOTIFIED, COMPLETED} or expected is None:
        assert shown is shown_of(books, ())
    else:
        assert (shown, state_passed_on(shown), leads_on(shown, is_cancelled=False)) == (expected, OPEN, False)


def test_a_completed_order_is_told_before_a_reported_hold() -> None:
    """The hold isn't proved."""
    assert shown_of(OPEN, (NOTIFIED, COMPLETED)) is Shown.ORDER_COMPLETED


@pytest.mark.parametrize(("books", "is_awaiting"), [(OPEN, True), (FAILED, False), (EXPIRED, False)])
def test_nobody_waits_for_ever(books: CheckoutState, *, is_awaiting: bool) -> None:
    """After a day the gateway isn't asked any more; an open checkout is ended by the service."""
    checkout = msgspec.structs.replace(CHECKOUT, state=books)
    now_ms = checkout.created_at_ms + INQUIRED_FOR_MS

    assert is_awaited(shown_of(books, ()), checkout, now_ms) is is_awaiting
    assert is_awaited(shown_of(books, ()), checkout, now_ms - 1)
