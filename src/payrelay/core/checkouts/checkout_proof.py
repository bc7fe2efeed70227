"""What the gateway's records and replies prove of a checkout.

Rules:

1. Order ids are not unique at the gateway. A payment or subscription older than the checkout belongs to something else.
2. A payment alone doesn't show that a plan began. The gateway must show a subscription of the order with the requested
   amount and currency, and the payment among those of that subscription.
3. A plan that begins after the day of its subscription has no payment yet. Its subscription proves it while active. Its
   first payment is compared once it shows.
4. Searches and notifications have one judge of a plan, ``judge_plan``. A subscription that contradicts what was asked
   for, by its record or by its first payment, completes nothing: an operator must look at it.
5. Where several subscriptions of the order may be meant, a search accepts none.
6. No record shows an authorization. Its notification is signed over order and amount with nothing between them: a
   genuine signature for order A125 and 10.00 is one for order A1 and 2510.00 too. What proves an authorization is the
   capture of its token: the gateway's reply names the order and the amount that was authorized.
"""

from collections.abc import Iterable
from enum import StrEnum
from typing import Final, NamedTuple

from payrelay.core.checkouts.checkout import Checkout, Details, begins_after
from payrelay.core.moments import day_at
from payrelay.core.payments.operation import Event, JournalEntry, Kind, Operation, State
from payrelay.core.payments.payment import Payment, PaymentStatus
from payrelay.core.payments.proof import TOLERANCE_MS
from payrelay.core.subscriptions.schedule import contradict, schedule_asked
from payrelay.core.subscriptions.subscription import Fact, SubscriptionState


class PlanRuling(StrEnum):
    """What the gateway's records say of a subscription, beside what a checkout asked for."""

    AS_ASKED = "as_asked"
    """It is the one that was asked for: it completes the checkout."""
    NOT_SHOWN = "not_shown"
    """Nothing contradicts, but its first payment isn't shown as received, nor that it goes on without one."""
    ENDED = "ended"
    """It begins later, and has ended before anything was paid."""
    OTHER_AMOUNT = "other_amount"
    """Its amount, its currency or its first payment is another one, or can't be read."""
    OTHER_SCHEDULE = "other_schedule"
    """It is charged at other times, or for another length of time."""
    EARLIER = "earlier"
    """It began before the checkout was opened, or the gateway doesn't show when."""


STOPPABLE: Final = frozenset({PlanRuling.OTHER_AMOUNT, PlanRuling.OTHER_SCHEDULE})
"""A subscription that contradicts its checkout in this way is for an operator, until the gateway shows it stopped."""


class JudgedPlan(NamedTuple):
    """A ruling about a subscription, and the first payment that it is about; None where there is none."""

    ruling: PlanRuling
    first: Payment | None = None


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


def begins_later(details: Details | None, plan: Fact, timezone: str) -> bool:
    """Tells whether a plan was requested that begins after the day of its subscription, in the gateway's time zone."""
    return plan.began_at_ms is not None and begins_after(details, day_at(plan.began_at_ms, timezone))


def contradiction_of(checkout: Checkout, details: Details | None, plan: Fact) -> PlanRuling | None:
    """Tells how the record of a subscription contradicts what was asked for; None where it doesn't.

    Amount, currency and beginning must be shown. A schedule that can't be read, or isn't known any more, contradicts
    nothing.
    """
    if (plan.amount_minor, plan.currency) != (checkout.amount_minor, checkout.currency):
        return PlanRuling.OTHER_AMOUNT
    if plan.began_at_ms is None or _is_older(checkout, plan):
        return PlanRuling.EARLIER
    asked = None if details is None else details.asked.plan
    if asked is None or plan.schedule is None:
        return None
    is_other = contradict(schedule_asked(asked.recurrence, asked.duration), plan.schedule)
    return PlanRuling.OTHER_SCHEDULE if is_other else None


def judge_plan(
    checkout: Checkout, details: Details | None, plan: Fact, payments: Iterable[Payment], *, timezone: str
) -> JudgedPlan:
    """Judges whether a subscription of a checkout's order is the one that was asked for.

    ``payments`` are those that the gateway shows with the subscription. The date of the first one must be that of the
    subscription, because a later installment may have an equal amount. A plan that begins later needs none yet, while
    it is active.
    """
    contradiction = contradiction_of(checkout, details, plan)
    if contradiction is not None:
        return JudgedPlan(contradiction)
    if not begins_later(details, plan, timezone):
        began_ms = plan.began_at_ms or 0
        return judge_first_payment(
            checkout, (each for each in payments if abs((each.at_ms or 0) - began_ms) <= TOLERANCE_MS)
        )
    judged = judge_first_payment(checkout, payments)
    if judged.ruling is not PlanRuling.NOT_SHOWN:
        return judged
    if plan.state is SubscriptionState.ACTIVE:
        return JudgedPlan(PlanRuling.AS_ASKED)
    return JudgedPlan(PlanRuling.NOT_SHOWN if plan.state is None else PlanRuling.ENDED)


def judge_first_payment(checkout: Checkout, payments: Iterable[Payment]) -> JudgedPlan:
    """Judges whether the oldest payment of a subscription is what was to be paid first: startup fee included."""
    first = min((each for each in payments if each.at_ms is not None), key=_age, default=None)
    if first is None:
        return JudgedPlan(PlanRuling.NOT_SHOWN)
    if (first.amount_minor, first.currency) != (checkout.first_minor, checkout.currency):
        return JudgedPlan(PlanRuling.OTHER_AMOUNT, first)
    return JudgedPlan(PlanRuling.AS_ASKED if may_be_paid_by(checkout, first) else PlanRuling.NOT_SHOWN, first)


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
