"""Subscriptions: what is known of each, merged from notifications and from the gateway's records.

Rules:

1. Facts are *merged*: they may come twice, late, and in any order, and lead to one result. The time at which a
   notification arrived decides nothing.
2. Of two notifications, the one that counts more installments knows more. Of two with equal counts, the one with the
   higher rank knows more: completed, then stopped, then active.
3. What the gateway showed is valid as of the time of the inquiry, until a later notification knows more.
4. A payment is counted once, by its id.
"""

from enum import StrEnum
from typing import Final

import msgspec

from payrelay.core.events.event import OutgoingEvent, Plain
from payrelay.core.money import decimal_text
from payrelay.core.notifications.notification import (
    MessageType,
    Notification,
    NotificationContent,
    PlanStatus,
    ReportedStatus,
)
from payrelay.core.payments.payment import Payment
from payrelay.core.subscriptions.schedule import Schedule


class SubscriptionState(StrEnum):
    """The state of a subscription."""

    ACTIVE = "active"
    """It goes on, even where an installment is failing now."""
    STOPPED = "stopped"
    """The gateway gave it up, or it was cancelled; no more installments are charged."""
    COMPLETED = "completed"
    """All installments are paid."""


_RANKS: Final = {SubscriptionState.ACTIVE: 0, SubscriptionState.STOPPED: 1, SubscriptionState.COMPLETED: 2}

_OF_PLAN: Final = {
    PlanStatus.ACTIVE: SubscriptionState.ACTIVE,
    PlanStatus.CANCELLED: SubscriptionState.STOPPED,
    PlanStatus.COMPLETED: SubscriptionState.COMPLETED,
}
_OF_MESSAGE: Final = {
    MessageType.COMPLETE: SubscriptionState.COMPLETED,
    MessageType.STOPPED: SubscriptionState.STOPPED,
    MessageType.AUTHORIZATION_FAILED: SubscriptionState.STOPPED,
}
_FAILURES: Final = frozenset({MessageType.AUTHORIZATION_FAILED, MessageType.INSTALLMENT_FAILED, MessageType.STOPPED})


class Fact(msgspec.Struct, frozen=True, kw_only=True):
    """One report about a subscription, from a notification or the gateway's records; None for what it doesn't say.

    Attributes:
        subscription_id: the subscription.
        order_id, currency, amount_minor: what the subscription is for.
        state: its state, and ``paid`` how many installments were paid by then.
        next_on: the date of the next installment.
        began_at_ms: when it began, by the gateway's date.
        schedule: how often it is charged and for how long, as far as the gateway's record can be read.
        is_seen: the gateway's records showed it at ``at_ms``; else a notification reported it, which came at that time.
        payment: the id of an installment that was tried.
        is_paid: whether that installment was paid, or failed.
        payment_minor, payment_at_ms: the amount and the time of that installment.
    """

    subscription_id: str
    at_ms: int
    is_seen: bool
    order_id: str | None = None
    currency: str | None = None
    amount_minor: int | None = None
    state: SubscriptionState | None = None
    paid: int | None = None
    next_on: str | None = None
    began_at_ms: int | None = None
    schedule: Schedule | None = None
    payment: str | None = None
    is_paid: bool = False
    payment_minor: int | None = None
    payment_at_ms: int | None = None


class Subscription(msgspec.Struct, frozen=True, kw_only=True):
    """All that is known of a subscription.

    Attributes:
        merchant, subscription_id: its identity.
        account: the configured name of the account under which it became known.
        principal: the principal whose checkout began it, and who gets its events; None where that isn't known.
        order_id, currency, amount_minor: what it is for; the amount is that of one installment.
        notified_state, notified_paid, notified_next_on, notified_at_ms: the merged reports of notifications, and when
            they came.
        seen_state, seen_at_ms: its state in the gateway's records at the last inquiry, and when that was.
        version: starts at 1, one more with every change.
    """

    merchant: str
    subscription_id: str
    account: str
    principal: str | None = None
    order_id: str | None = None
    currency: str | None = None
    amount_minor: int | None = None
    notified_state: SubscriptionState | None = None
    notified_paid: int | None = None
    notified_next_on: str | None = None
    notified_at_ms: int | None = None
    seen_state: SubscriptionState | None = None
    seen_at_ms: int | None = None
    version: int = 0

    @property
    def state(self) -> SubscriptionState:
        """Its state, by the source that knows more."""
        if self.seen_state is not None and (self.seen_at_ms or 0) >= (self.notified_at_ms or 0):
            return self.seen_state
        return self.notified_state or self.seen_state or SubscriptionState.ACTIVE

    @property
    def as_of_ms(self) -> int:
        """When the latest report about its state came."""
        return max(self.notified_at_ms or 0, self.seen_at_ms or 0)

    @property
    def next_on(self) -> str | None:
        """The date of the next installment; None where there is none."""
        return self.notified_next_on if self.state is SubscriptionState.ACTIVE else None


def merged(known: Subscription, fact: Fact, *, principal: str | None) -> Subscription:
    """Merges a fact into what is known of its subscription, which is unchanged where the fact adds nothing.

    The version stays as it is. ``principal`` counts only where none is known yet.
    """
    filled = msgspec.structs.replace(
        known,
        principal=known.principal or principal,
        order_id=known.order_id or fact.order_id,
        currency=known.currency or fact.currency,
        amount_minor=known.amount_minor if known.amount_minor is not None else fact.amount_minor,
    )
    return _with_seen(filled, fact) if fact.is_seen else _with_notified(filled, fact)


def _with_seen(known: Subscription, fact: Fact) -> Subscription:
    if fact.state is None or fact.at_ms < (known.seen_at_ms or 0):
        return known
    if fact.at_ms == known.seen_at_ms and known.seen_state is not None:
        state = max(known.seen_state, fact.state, key=_RANKS.__getitem__)
    else:
        state = fact.state
    return msgspec.structs.replace(
        known,
        seen_state=state,
        seen_at_ms=fact.at_ms,
        # The records show the amount of an installment; the first payment may have a fee in it.
        amount_minor=known.amount_minor if fact.amount_minor is None else fact.amount_minor,
    )


def _with_notified(known: Subscription, fact: Fact) -> Subscription:
    """Merges the report of a notification; one that names no state reports an active subscription."""
    state, paid = fact.state or SubscriptionState.ACTIVE, fact.paid or 0
    dates = [date for date in (known.notified_next_on, fact.next_on) if date is not None]
    filled = msgspec.structs.replace(known, notified_next_on=max(dates, default=None))
    if known.notified_state is None or known.notified_at_ms is None:
        return msgspec.structs.replace(filled, notified_state=state, notified_paid=paid, notified_at_ms=fact.at_ms)
    before = (known.notified_paid or 0, _RANKS[known.notified_state])
    reported = (paid, _RANKS[state])
    if reported > before:
        return msgspec.structs.replace(filled, notified_state=state, notified_paid=paid, notified_at_ms=fact.at_ms)
    if reported == before:
        return msgspec.structs.replace(filled, notified_at_ms=min(known.notified_at_ms, fact.at_ms))
    return filled


def fact_of_notification(content: NotificationContent, notification: Notification) -> Fact | None:
    """Gives what a genuine notification reports about a subscription; None where it reports about none."""
    if content.subscription_id is None or content.reported is ReportedStatus.CHARGED_BACK:
        return None
    state = _OF_PLAN[content.plan_status] if content.plan_status is not None else None
    if content.message_type is not None:
        state = _OF_MESSAGE.get(content.message_type, state or SubscriptionState.ACTIVE)
    is_paid = content.reported is ReportedStatus.SUCCEEDED and content.payment_id is not None
    has_failed = content.reported in {ReportedStatus.FAILED, ReportedStatus.CANCELLED} and (
        content.message_type is None or content.message_type in _FAILURES
    )
    payment = content.payment_id or f"ntf:{notification.id}"
    return Fact(
        subscription_id=content.subscription_id,
        at_ms=notification.received_at_ms,
        is_seen=False,
        order_id=content.order_id,
        currency=content.currency,
        state=state,
        paid=1 if is_paid and content.installments_paid is None else content.installments_paid,
        next_on=content.next_on,
        payment=payment if is_paid or has_failed else None,
        is_paid=is_paid,
        payment_minor=content.amount_minor,
        payment_at_ms=notification.received_at_ms,
    )


def fact_of_installment(subscription_id: str, payment: Payment, seen_at_ms: int) -> Fact:
    """Gives the fact about a subscription that a received payment in the gateway's records is."""
    return Fact(
        subscription_id=subscription_id,
        at_ms=seen_at_ms,
        is_seen=True,
        order_id=payment.order_id,
        currency=payment.currency,
        payment=payment.payment_id,
        is_paid=True,
        payment_minor=payment.amount_minor,
        payment_at_ms=payment.at_ms,
    )


def kind_of_payment(fact: Fact) -> str:
    """Gives the type of the event that reports an installment."""
    return "subscription.installment_paid" if fact.is_paid else "subscription.installment_failed"


def events_of(
    before: Subscription, after: Subscription, fact: Fact, *, is_new_payment: bool
) -> list[tuple[str, Fact | None]]:
    """Gives the types of the events that report a change, each with the fact where it is about the payment.

    Where the principal was unknown before, nobody was told of the state. So the state is reported in any case.
    """
    events: list[tuple[str, Fact | None]] = []
    if is_new_payment:
        events.append((kind_of_payment(fact), fact))
    if after.state is not before.state or before.principal is None:
        ends = {
            SubscriptionState.COMPLETED: "subscription.completed",
            SubscriptionState.STOPPED: "subscription.stopped",
        }
        events.append((ends.get(after.state, "subscription.updated"), None))
    elif after.next_on != before.next_on:
        events.append(("subscription.updated", None))
    return events


def event_of(
    subscription: Subscription, kind: str, event_id: str, *, at_ms: int, paid: int, fact: Fact | None
) -> OutgoingEvent:
    """Makes an event; ``paid`` is the number of paid installments, ``fact`` has the payment that the event is about."""
    amount = None if subscription.amount_minor is None else decimal_text(subscription.amount_minor)
    data: dict[str, Plain] = {
        "subscription_id": subscription.subscription_id,
        "order_id": subscription.order_id,
        "state": subscription.state.value,
        "installments_paid": paid,
        "next_on": subscription.next_on,
        "amount": amount,
        "currency": subscription.currency,
    }
    if fact is not None:
        is_named = fact.payment is not None and fact.payment.isdigit()
        data["payment_id"] = fact.payment if is_named else None
        data["payment_amount"] = None if fact.payment_minor is None else decimal_text(fact.payment_minor)
    return OutgoingEvent(
        id=event_id,
        type=kind,
        account=subscription.account,
        merchant=subscription.merchant,
        principal=subscription.principal or "",
        subject=f"subscription:{subscription.subscription_id}",
        at_ms=at_ms,
        data=data,
    )
