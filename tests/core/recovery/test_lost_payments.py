"""What lost commits leave in doubt about checkouts: which of them, and which payments."""

import msgspec
import pytest
from tests.flows.world import CREDENTIAL
from tests.samples import PAYMENT

from payrelay.core.access.credential import Scope
from payrelay.core.database.incarnations import Beginning, DatabaseIdentity, Incarnation, LostWindow
from payrelay.core.payments.payment import PaymentStatus
from payrelay.core.payments.proof import TOLERANCE_MS
from payrelay.recovery.rules.lost_payments import (
    first_lost_ms,
    may_be_of_lost_charge,
    may_have_made_payments,
    newest_loss_since,
    unexplained,
)

SENDING_MS = 40_000
SINCE_MS, UNTIL_MS, BEGAN_MS = 10_000_000, 20_000_000, 20_000_500
FIRST = Incarnation(number=1, reason=Beginning.CREATED, began_at_ms=0)
SECOND = Incarnation(
    number=2,
    reason=Beginning.RECOVERED,
    began_at_ms=BEGAN_MS,
    lost=LostWindow(since_ms=SINCE_MS, until_ms=UNTIL_MS),
    ended_recovery_at_ms=BEGAN_MS + 1,
)
COPIED = Incarnation(number=3, reason=Beginning.COPIED, began_at_ms=30_000_000)
FOURTH = Incarnation(
    number=4,
    reason=Beginning.RECOVERED,
    began_at_ms=40_000_000,
    lost=LostWindow(since_ms=35_000_000, until_ms=40_000_000),
)
IDENTITY = DatabaseIdentity(id="0" * 32, incarnations=(FIRST, SECOND, COPIED, FOURTH))


@pytest.mark.parametrize(
    ("created_ms", "number", "since_ms"),
    [(0, 4, SINCE_MS), (BEGAN_MS - 1, 4, SINCE_MS), (BEGAN_MS, 4, 35_000_000), (40_000_000, None, None)],
)
def test_a_checkout_goes_through_each_loss_that_a_recovery_tells_of_later(
    created_ms: int, number: int | None, since_ms: int | None
) -> None:
    """Also through one whose recovery has ended: that brought no row back."""
    newest = newest_loss_since(created_ms, IDENTITY)
    assert (newest and newest.number, first_lost_ms(created_ms, IDENTITY)) == (number, since_ms)


@pytest.mark.parametrize(
    ("at_ms", "created_ms", "is_in_doubt"),
    [
        (SINCE_MS - TOLERANCE_MS - 1, 1_000, False),
        (SINCE_MS - TOLERANCE_MS, 1_000, True),
        (UNTIL_MS + SENDING_MS + TOLERANCE_MS, 1_000, True),
        (UNTIL_MS + SENDING_MS + TOLERANCE_MS + 1, 1_000, False),
        (None, 1_000, True),
        (UNTIL_MS - 1, BEGAN_MS, True),
        (UNTIL_MS, BEGAN_MS, False),
        (BEGAN_MS + 1_000, BEGAN_MS + 500, False),
        (BEGAN_MS + 499, BEGAN_MS + 500, True),
    ],
)
def test_a_payment_of_a_lost_window_may_be_of_a_lost_charge(
    at_ms: int | None,
    created_ms: int,
    is_in_doubt: bool,  # noqa: FBT001, a column of the table
) -> None:
    """Between the lost window and its recovery clocks may differ; what a new page sees in its own second is its own."""
    identity = DatabaseIdentity(id="0" * 32, incarnations=(FIRST, SECOND))
    payment = msgspec.structs.replace(PAYMENT, at_ms=at_ms)
    assert may_be_of_lost_charge(payment, created_ms, identity, SENDING_MS) is is_in_doubt


@pytest.mark.parametrize(
    ("members", "is_unexplained"),
    [
        ({"at_ms": SINCE_MS - TOLERANCE_MS}, True),
        ({"at_ms": SINCE_MS - TOLERANCE_MS - 1}, False),
        ({"at_ms": None}, True),
        ({"status": PaymentStatus.REFUNDED}, False),
        ({"status": PaymentStatus.REFUND_REQUESTED}, True),
        ({"payment_id": "7"}, False),
    ],
)
def test_a_payment_needs_an_explanation_unless_it_is_owned_given_back_or_older(
    members: dict[str, object],
    is_unexplained: bool,  # noqa: FBT001, a column of the table
) -> None:
    """Order ids are not unique at the gateway, and money that is back asks for nothing."""
    payment = msgspec.structs.replace(PAYMENT, **{"at_ms": UNTIL_MS} | members)
    assert bool(unexplained([payment], SINCE_MS, frozenset({"7"}))) is is_unexplained


@pytest.mark.parametrize(
    ("members", "is_possible"),
    [
        ({"scopes": frozenset({Scope.PAYMENTS_CHARGE})}, True),
        ({"scopes": frozenset({Scope.PAYMENTS_CAPTURE})}, True),
        ({"scopes": frozenset({Scope.SUBSCRIPTIONS_RETRY})}, True),
        ({"scopes": frozenset({Scope.CHECKOUTS_CREATE, Scope.PAYMENTS_REFUND})}, False),
        ({"accounts": frozenset({"gateway"})}, True),
        ({"accounts": frozenset({"other"})}, False),
        ({"revoked_at_ms": SINCE_MS - 1}, False),
        ({"revoked_at_ms": SINCE_MS}, True),
        ({"expires_at_ms": SINCE_MS - 1}, False),
        ({"expires_at_ms": SINCE_MS}, True),
    ],
)
def test_a_payment_without_a_page_needs_a_key_that_was_valid_in_the_lost_window(
    members: dict[str, object],
    is_possible: bool,  # noqa: FBT001, a column of the table
) -> None:
    """A capture and a retry make payments of an order as a charge does."""
    key = msgspec.structs.replace(CREDENTIAL, **members)
    lost = LostWindow(since_ms=SINCE_MS, until_ms=UNTIL_MS)
    assert may_have_made_payments([key], frozenset({"gateway"}), lost) is is_possible
