"""What time brings about: installments fall due, failed ones are tried again, holds come to their end."""

import calendar
from datetime import datetime, timedelta
from typing import Literal

import msgspec

from payrelay_simulator.faults import Fault, Faults
from payrelay_simulator.ledger import Ledger
from payrelay_simulator.ledger_lines import hold_line, payment_line
from payrelay_simulator.messages import MessageType, recurring_message
from payrelay_simulator.records import Customer, Hold, Payment, Period, Subscription
from payrelay_simulator.state import Due, State
from payrelay_simulator.switches import Switches
from payrelay_simulator.turn import Turn

# A failed installment is tried again once a day this often, then the subscription has failed.
RETRIES_MAX = 7

NO_LONGER = "the card was cancelled"

RETRY_INTERVAL = timedelta(days=1)

# What one look at the clock may bring about; what is still due then comes with the next look. A subscription without
# end at one installment a minute would otherwise hold up everything after a long step of the clock.
EVENTS_PER_LOOK_MAX = 10_000

MONTHS = {"Month": 1, "Year": 12}
DAYS = {"Day": 1, "Week": 7, "Month": 30, "Year": 364}


class Course(msgspec.Struct, frozen=True, kw_only=True):
    """What the passing of time works on. A payment received in it cannot be found before `visible_at`.

    `faults` strike the installments that fall due; None: nothing does.
    """

    state: State
    ledger: Ledger
    switches: Switches
    visible_at: datetime | None = None
    faults: Faults | None = None


def elapse(course: Course, now: datetime) -> None:
    """Bring about everything that is due by now, in the order of time."""
    for _ in range(EVENTS_PER_LOOK_MAX):
        due = course.state.pop_due(now)
        if due is None:
            return
        if due.kind == "hold_end":
            _end_hold(course, course.state.holds[due.key], due.at)
        else:
            _fall_due(course, course.state.subscriptions[int(due.key)], due)


def _end_hold(course: Course, hold: Hold, at: datetime) -> None:
    left_cents = hold.amount_cents - hold.captured_cents
    # A capture leaves the rest of the amount blocked on the card until the hold's time is over.
    if hold.status not in {"HELD", "CAPTURED"} or left_cents == 0:
        return
    if hold.status == "HELD":
        course.state.put_hold(msgspec.structs.replace(hold, status="RELEASED"))
    course.ledger.enter(at, hold_line(hold, "release", left_cents), arrival=None)


def _fall_due(course: Course, subscription: Subscription, due: Due) -> None:
    if subscription.status != "ACTIVE" or subscription.plan != due.plan:
        return
    fault = None if course.faults is None else course.faults.draw("installment", subscription.order_id)
    reason = refusal(course.state.customers[subscription.customer_token], fault)
    if reason is None:
        if fault is not None and fault.name == "late_visibility":
            course = msgspec.structs.replace(course, visible_at=due.at + timedelta(seconds=fault.wait_s))
        _pay(course, subscription, "installment", due.at, arrival=None)
        return
    failed = msgspec.structs.replace(subscription, failures=subscription.failures + 1)
    if failed.failures > failed.retries_max:
        _stop_retrying(course, failed, due.at, reason)
        return
    step = RETRY_INTERVAL
    if course.switches.installments == "accelerated":
        step = timedelta(seconds=course.switches.accelerated_interval_s)
    plan_next(course.state, failed, due.at + step)
    _tell_failure(course, failed, ("RECURRING_INSTALLMENT_FAILED",), due.at, reason)


def _stop_retrying(course: Course, failed: Subscription, at: datetime, reason: str) -> None:
    """End a subscription whose tries are used up, or let it wait for its next installment where it may go on."""
    if not failed.is_auto_cancelled:
        cycle = failed.cycle
        while due_at(failed, cycle, course.switches) <= at:
            cycle += 1
        plan_next(course.state, msgspec.structs.replace(failed, failures=0), due_at(failed, cycle, course.switches))
        _tell_failure(course, failed, ("RECURRING_INSTALLMENT_FAILED",), at, reason)
        return
    stopped = msgspec.structs.replace(failed, status="FAILED")
    course.state.subscriptions[stopped.subscription_id] = stopped
    _tell_failure(course, stopped, ("RECURRING_INSTALLMENT_FAILED", "RECURRING_STOPPED"), at, reason)


def _tell_failure(
    course: Course, subscription: Subscription, message_types: tuple[MessageType, ...], at: datetime, reason: str
) -> None:
    """Notify of an attempt that took nothing. It has a payment id that no search finds."""
    if not subscription.notify_url:
        return
    payment = _installment(course, subscription, at)
    next_at = due_at(subscription, subscription.cycle, course.switches) if subscription.status == "ACTIVE" else None
    for message_type in message_types:
        message = recurring_message(payment, subscription, message_type, next_at=next_at, reason=reason)
        course.state.notifications.plan(at, message, switches=course.switches)


def refusal(customer: Customer, fault: Fault | None) -> str | None:
    """Say why the customer's card would not be charged now, under the fault that strikes; None: it would be."""
    if fault is not None and fault.name == "decline":
        return fault.reason.replace("_", " ")
    if customer.decline is not None:
        return customer.decline.replace("_", " ")
    return NO_LONGER if customer.is_cancelled else None


def collect(turn: Turn, subscription: Subscription, kind: Literal["installment", "retry"]) -> None:
    """Receive a subscription's open installment as the present call's doing."""
    course = Course(state=turn.state, ledger=turn.ledger, switches=turn.switches, visible_at=turn.visible_at())
    _pay(course, subscription, kind, turn.now, arrival=turn.arrival)


def _pay(
    course: Course,
    subscription: Subscription,
    kind: Literal["installment", "retry"],
    at: datetime,
    *,
    arrival: int | None,
) -> None:
    paid = receive_installment(course, subscription, kind, at, arrival=arrival)
    go_on(course, paid, at, "RECURRING_INSTALLMENT_SUCCESS")


def go_on(course: Course, paid: Subscription, at: datetime, message_type: MessageType) -> tuple[int, ...]:
    """Count an installment that was just paid, plan the next one or end with the last, and notify of it.

    The numbers of the notifications are returned.
    """
    cycle = paid.cycle + 1
    total = installments_total(paid.recurrence, paid.duration)
    # A retry brings a subscription that had failed back to life.
    paid = msgspec.structs.replace(paid, cycle=cycle, failures=0, status="ACTIVE")
    next_at: datetime | None = None
    message_types: tuple[MessageType, ...] = (message_type,)
    if total is not None and cycle >= total:
        # The plan is counted on, so that an attempt that is still on the agenda finds itself out of date.
        paid = msgspec.structs.replace(paid, status="COMPLETED", plan=paid.plan + 1)
        course.state.subscriptions[paid.subscription_id] = paid
        message_types = (message_type, "RECURRING_COMPLETE")
    else:
        # An installment that fell due meanwhile is not collected in the same moment, but one interval later.
        interval = timedelta(seconds=course.switches.accelerated_interval_s) if _is_fast(course) else RETRY_INTERVAL
        next_at = max(due_at(paid, cycle, course.switches), at + interval)
        plan_next(course.state, paid, next_at)
    payment = course.state.payments[paid.payment_ids[-1]]
    messages = [recurring_message(payment, paid, each, next_at=next_at) for each in message_types]
    return tuple(
        number
        for message in messages
        for number in course.state.notifications.plan(at, message, switches=course.switches)
    )


def _is_fast(course: Course) -> bool:
    return course.switches.installments == "accelerated"


def receive_installment(
    course: Course,
    subscription: Subscription,
    kind: Literal["installment", "retry"],
    at: datetime,
    *,
    arrival: int | None,
) -> Subscription:
    """Keep one installment's payment and enter it; return the subscription with the payment in its list."""
    payment = _installment(course, subscription, at)
    course.state.put_payment(payment)
    line = payment_line(payment, kind, payment.amount_cents)
    course.ledger.enter(at, line, arrival=arrival)
    return msgspec.structs.replace(subscription, payment_ids=(*subscription.payment_ids, payment.payment_id))


def _installment(course: Course, subscription: Subscription, at: datetime) -> Payment:
    customer = course.state.customers[subscription.customer_token]
    startup_fee_cents = 0 if subscription.payment_ids else subscription.startup_fee_cents
    return Payment(
        payment_id=course.state.next_payment_id(),
        merchant_id=subscription.merchant_id,
        order_id=subscription.order_id,
        at=at,
        description=subscription.description,
        currency=subscription.currency,
        amount_cents=subscription.amount_cents + startup_fee_cents,
        person=customer.person,
        card=customer.card,
        custom_1=subscription.custom_1,
        custom_2=subscription.custom_2,
        subscription_id=subscription.subscription_id,
        startup_fee_cents=startup_fee_cents,
        visible_at=course.visible_at,
        notify_url=subscription.notify_url,
    )


def plan_next(state: State, subscription: Subscription, at: datetime) -> None:
    """Keep the subscription with a new plan for its next installment; the plan before it counts no more."""
    planned = msgspec.structs.replace(subscription, plan=subscription.plan + 1)
    state.subscriptions[planned.subscription_id] = planned
    state.plan(Due(at=at, kind="installment", key=str(planned.subscription_id), plan=planned.plan))


def due_at(subscription: Subscription, cycle: int, switches: Switches) -> datetime:
    """Return when the installment of that cycle falls due; the first is cycle 0, at the start."""
    if switches.installments == "accelerated":
        return subscription.started_at + timedelta(seconds=cycle * switches.accelerated_interval_s)
    recurrence = subscription.recurrence
    if recurrence.unit in MONTHS:
        return _months_later(subscription.started_at, cycle * recurrence.count * MONTHS[recurrence.unit])
    return subscription.started_at + timedelta(days=cycle * recurrence.count * DAYS[recurrence.unit])


def _months_later(start: datetime, months: int) -> datetime:
    year, month_index = divmod(start.year * 12 + start.month - 1 + months, 12)
    day = min(start.day, calendar.monthrange(year, month_index + 1)[1])
    return start.replace(year=year, month=month_index + 1, day=day)


def installments_total(recurrence: Period, duration: Period | None) -> int | None:
    """Return how many installments there are in all, at least one; None where there is no end."""
    if duration is None:
        return None
    span, step = _spans(duration, recurrence)
    return max(1, span // step)


def is_shorter(period: Period, other: Period) -> bool:
    """Say whether a length of time is shorter than another."""
    span, other_span = _spans(period, other)
    return span < other_span


def _spans(period: Period, other: Period) -> tuple[int, int]:
    scale = MONTHS if period.unit in MONTHS and other.unit in MONTHS else DAYS
    return period.count * scale[period.unit], other.count * scale[other.unit]
