"""What lost commits leave in doubt about a checkout that the database still has: whether it was paid, and by what.

Rules:

1. A checkout that was there before a recovery began may have been paid within the lost window. What said so is lost. So
   no form of it goes out until the gateway has had time to show its order, and shows no payment that nothing here owns.
2. A record of the gateway's doesn't say whether a customer paid on a page or a client charged a card. A payment that a
   lost charge may have made therefore completes no checkout for one payment: an operator decides. So does one that a
   capture or a retry may have made.
3. A subscription is its own proof. No charge begins one.
4. The end of a recovery changes nothing of that, because it brings no row back.
"""

from collections.abc import Iterable
from enum import StrEnum
from typing import Final

from payrelay.core.access.credential import Credential, Scope
from payrelay.core.database.incarnations import DatabaseIdentity, Incarnation, LostWindow
from payrelay.core.payments.payment import Payment, PaymentStatus
from payrelay.core.payments.proof import TOLERANCE_MS
from payrelay.recovery.rules.lost_effects import is_within, sendings_of

MAKING_PAYMENTS: Final = frozenset({Scope.PAYMENTS_CHARGE, Scope.PAYMENTS_CAPTURE, Scope.SUBSCRIPTIONS_RETRY})
"""The scopes of the requests that make a payment without a page."""


class PageDecision(StrEnum):
    """What an operator found out about a checkout."""

    PAID = "paid"
    """The customer paid on its page: the payment is its own."""
    UNPAID = "unpaid"
    """The customer didn't pay on its page: it ends, and the order is free for another one."""


def newest_loss_since(created_at_ms: int, identity: DatabaseIdentity) -> Incarnation | None:
    """Gives the newest incarnation whose commits were lost after something was created; None where none were."""
    passed = (each for each in identity.incarnations if each.lost is not None and created_at_ms < each.began_at_ms)
    return max(passed, key=lambda each: each.number, default=None)


def first_lost_ms(created_at_ms: int, identity: DatabaseIdentity) -> int | None:
    """Gives when the earliest of the lost windows began that something went through; None where it went through none.

    The time is in ms since 1970, UTC.
    """
    lost = (each.lost for each in identity.incarnations if each.lost is not None and created_at_ms < each.began_at_ms)
    return min((each.since_ms for each in lost), default=None)


def may_be_of_lost_charge(payment: Payment, created_at_ms: int, identity: DatabaseIdentity, sending_ms: int) -> bool:
    """Tells whether a charge that is lost may have made a payment of a checkout's order.

    ``created_at_ms`` is when the checkout was opened. A checkout that was opened after the loss is in doubt only about
    payments that are dated before it, by the whole seconds in which the gateway dates. ``sending_ms`` is the longest
    time from the commit of an intent to the end of its call, in milliseconds.
    """
    return any(
        is_within(payment, sendings_of(each.lost, sending_ms))
        and (
            created_at_ms < each.began_at_ms
            or payment.at_ms is None
            or payment.at_ms < created_at_ms - created_at_ms % 1000
        )
        for each in identity.incarnations
        if each.lost is not None
    )


def may_have_made_payments(credentials: Iterable[Credential], accounts: frozenset[str], lost: LostWindow) -> bool:
    """Tells whether a key was valid in a lost window with which one of these accounts could be charged or captured."""
    return any(
        not each.scopes.isdisjoint(MAKING_PAYMENTS)
        and (each.accounts is None or not accounts.isdisjoint(each.accounts))
        and (each.revoked_at_ms is None or each.revoked_at_ms >= lost.since_ms)
        and (each.expires_at_ms is None or each.expires_at_ms >= lost.since_ms)
        for each in credentials
    )


def unexplained(payments: Iterable[Payment], since_ms: int, owned: frozenset[str]) -> tuple[Payment, ...]:
    """Gives the payments since a time (ms since 1970, UTC) that nothing here owns, and that were not given back."""
    return tuple(
        each
        for each in payments
        if each.status is not PaymentStatus.REFUNDED
        and (each.at_ms is None or each.at_ms >= since_ms - TOLERANCE_MS)
        and each.payment_id not in owned
    )
