"""What the gateway's records and replies prove of a checkout.

Rules:

1. Order ids are not unique at the gateway. A payment or subscription older than the checkout belongs to something else.
2. A payment alone doesn't show that a plan began. The gateway must show a subscription of the order with the requested
   amount and currency, and the payment among those of that subscription.
3. A plan that begins after the day of its subscription has no payment yet. Its subscription proves it while active.
4. Where several subscriptions of the order may be meant, none counts. Nor does one with another schedule than was
   asked for: an operator must look at it.
5. No record shows an authorization. Its notification is signed over order and amount with nothing between them: a
   genuine signature for order A125 and 10.00 is one for order A1 and 2510.00 too. What proves an authorization is the
   capture of its token: the gateway's reply names the order and the amount that was authorized.
"""

from collections.abc import Iterable

from payrelay.core.checkouts.checkout import Checkout, Details
from payrelay.core.payments.operation import Event, JournalEntry, Kind, Operation, State
from payrelay.core.payments.payment import Payment, PaymentStatus
from payrelay.core.payments.proof import TOLERANCE_MS
from payrelay.core.subscriptions.schedule import contradict, schedule_asked
from payrelay.core.subscriptions.subscription import Fact, SubscriptionState


def may_be_paid_by(checkout: Checkout, payment: Payment) -> bool:
    """Tells whether a payment may be a checkout's own, or the first of its plan.

    The payment must be received, have the first amount of the checkout, and not be older than the checkout.
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
    """Gives the subscriptions that may have begun with a checkout: those of its order, unless known to be older."""
    return tuple(plan for plan in shown if plan.order_id == checkout.order_id and not _is_older(checkout, plan))


def is_as_asked(checkout: Checkout, plan: Fact) -> bool:
    """Tells whether a subscription of a checkout's order is as requested, by amount, currency and time."""
    is_equal = plan.amount_minor == checkout.amount_minor and plan.currency == checkout.currency
    return is_equal and plan.began_at_ms is not None and not _is_older(checkout, plan)


def is_on_other_schedule(details: Details | None, plan: Fact) -> bool:
    """Tells whether a subscription is shown with another schedule than its checkout asked for.

    A schedule that can't be read, or isn't known any more, contradicts nothing.
    """
    asked = None if details is None else details.asked.plan
    if asked is None or plan.schedule is None:
        return False
    return contradict(schedule_asked(asked.recurrence, asked.duration), plan.schedule)


def first_payment(checkout: Checkout, plan: Fact, payments: Iterable[Payment]) -> Payment | None:
    """Gives the first payment of a plan among those that the gateway shows; None where it shows none.

    Its date must be that of the subscription, because a later installment may have an equal amount.
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
    """Tells whether a plan has begun: it has its first payment, or it begins later and is active without one."""
    return first is not None or (begins_later and plan.state is SubscriptionState.ACTIVE)


def is_authorized_by(checkout: Checkout, capture: Operation, success: JournalEntry) -> bool:
    """Tells whether a capture of a checkout's token proves that the customer authorized what the checkout asked for.

    ``success`` is the journal entry with which the capture succeeded. It has the authorized amount where the reply
    named one. Otherwise the captured amount counts, because no capture is above the authorized amount: the capture of
    a part proves nothing then. An operator's decision about the capture doesn't prove the authorized amount either.
    """
    authorized_minor = success.evidence.authorized_minor
    shown_minor = capture.amount_minor if authorized_minor is None else authorized_minor
    return (
        capture.kind is Kind.CAPTURE
        and capture.state is State.SUCCEEDED
        and success.event in {Event.SUCCEEDED, Event.PROVED}
        and capture.order_id == checkout.order_id
        and capture.currency == checkout.currency
        and shown_minor == checkout.amount_minor
    )


def _age(payment: Payment) -> tuple[int, int, str]:
    return payment.at_ms or 0, len(payment.payment_id), payment.payment_id


def _is_older(checkout: Checkout, plan: Fact) -> bool:
    return plan.began_at_ms is not None and plan.began_at_ms < checkout.created_at_ms - TOLERANCE_MS
