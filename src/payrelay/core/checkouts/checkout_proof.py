"""What the gateway's records prove of a checkout that nobody told us of.

Rules:

1. Order ids are not unique at the gateway: what is older than the checkout is of something else.
2. A payment alone doesn't say whether a plan began with it. The gateway must show a subscription of the order, for what
   was asked, and the payment among those of that subscription.
3. A plan that begins after the day on which it was subscribed to has no payment yet: its subscription proves it, as
   long as that goes on.
4. Where several subscriptions of the order may be meant, none is.
"""

from collections.abc import Iterable

from payrelay.core.checkouts.checkout import Checkout
from payrelay.core.payments.payment import Payment, PaymentStatus
from payrelay.core.payments.proof import TOLERANCE_MS
from payrelay.core.subscriptions.subscription import Fact, SubscriptionState


def may_be_paid_by(checkout: Checkout, payment: Payment) -> bool:
    """Tells whether a payment may be a checkout's own, or the first of its plan.

    It is so where it was received, is what was to be paid first, and is not older than the checkout.
    """
    return (
        payment.status == PaymentStatus.RECEIVED
        and payment.order_id == checkout.order_id
        and payment.amount_minor == checkout.first_minor
        and payment.currency == checkout.currency
        and payment.at_ms is not None
        and payment.at_ms >= checkout.created_at_ms - TOLERANCE_MS
    )


def plans_of(checkout: Checkout, shown: Iterable[Fact]) -> tuple[Fact, ...]:
    """Gives those of the subscriptions that may have begun with a checkout: of its order, and not known to be older."""
    return tuple(plan for plan in shown if plan.order_id == checkout.order_id and not _is_older(checkout, plan))


def is_as_asked(checkout: Checkout, plan: Fact) -> bool:
    """Tells whether a subscription of a checkout's order is what was asked for: by amount, currency and time."""
    is_equal = plan.amount_minor == checkout.amount_minor and plan.currency == checkout.currency
    return is_equal and plan.began_at_ms is not None and not _is_older(checkout, plan)


def first_payment(checkout: Checkout, plan: Fact, payments: Iterable[Payment]) -> Payment | None:
    """Gives the payment with which a plan began, among those that the gateway shows of it; None where none is that.

    It is dated when the subscription is: a later installment may be as much.
    """
    began_ms = plan.began_at_ms
    if began_ms is None:
        return None
    fitting = [
        payment
        for payment in payments
        if may_be_paid_by(checkout, payment) and abs((payment.at_ms or 0) - began_ms) <= TOLERANCE_MS
    ]
    return min(fitting, key=_age, default=None)


def has_begun(plan: Fact, first: Payment | None, *, begins_later: bool) -> bool:
    """Tells whether a plan has begun: by its first payment, or where it begins later by going on without one."""
    return first is not None or (begins_later and plan.state is SubscriptionState.ACTIVE)


def _age(payment: Payment) -> tuple[int, int, str]:
    return payment.at_ms or 0, len(payment.payment_id), payment.payment_id


def _is_older(checkout: Checkout, plan: Fact) -> bool:
    return plan.began_at_ms is not None and plan.began_at_ms < checkout.created_at_ms - TOLERANCE_MS
