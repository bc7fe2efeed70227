"""The moments of an order that other stores have: chargebacks, subscriptions, and what clients were told."""

from collections.abc import Iterable, Sequence
from typing import Final

from payrelay.console.rules.timeline import Moment, Tone, rows_of
from payrelay.console.store.searches import KnownInstallment
from payrelay.console.store.sent_events import DeliveryTo
from payrelay.core.events.delivery import DeliveryState
from payrelay.core.events.event import PublishedEvent
from payrelay.core.money import money_text
from payrelay.core.orders.chargeback import Chargeback
from payrelay.core.subscriptions.subscription import SubscriptionState
from payrelay.store.subscriptions import SubscriptionSummary

_STATES: Final = {
    SubscriptionState.ACTIVE: "It goes on.",
    SubscriptionState.STOPPED: "It was stopped, and no more installments are charged.",
    SubscriptionState.COMPLETED: "All its installments are paid.",
}

_WON: Final = "It was won: the gateway's record, read since, shows the payment as charged back no more."


def of_chargeback(chargeback: Chargeback, *, is_won: bool) -> Moment:
    """Gives the moment at which a chargeback was stored; ``is_won`` says that it counts no more."""
    amount = money_text(chargeback.charged_back_minor, chargeback.currency)
    text = f"The payment {chargeback.payment_id} was charged back by the bank{f', {amount}' if amount else ''}."
    rows = (
        ("Payment", chargeback.payment_id),
        ("Operation", chargeback.operation_id),
        ("Notification", chargeback.notification_id),
    )
    return Moment(
        at_ms=chargeback.noted_at_ms,
        title="Chargeback",
        text=f"{text} {_WON}" if is_won else text,
        tone=Tone.DOUBT,
        link=chargeback.operation_id,
        evidence=rows_of(rows),
    )


def of_subscription(summary: SubscriptionSummary, installments: Iterable[KnownInstallment]) -> list[Moment]:
    """Gives the moments of a subscription: each installment, and the latest report about its state."""
    subscription = summary.subscription
    name = f"Subscription {subscription.subscription_id}"
    rows = (
        ("State by the gateway's records", subscription.seen_state),
        ("State by notifications", subscription.notified_state),
        ("Paid installments", summary.paid),
        ("Next installment on", subscription.next_on),
    )
    moments = [
        Moment(
            at_ms=subscription.as_of_ms,
            title=name,
            text=_STATES[subscription.state],
            tone=Tone.DONE if subscription.state is SubscriptionState.COMPLETED else Tone.PLAIN,
            evidence=rows_of(rows),
        )
    ]
    for each in installments:
        amount = money_text(each.amount_minor, subscription.currency)
        moments.append(
            Moment(
                at_ms=each.at_ms,
                title=name,
                text=f"An installment {'was paid' if each.is_paid else 'failed'}{f': {amount}' if amount else ''}.",
                tone=Tone.DONE if each.is_paid else Tone.NOT_DONE,
                evidence=rows_of((("Payment", each.payment_id or "without a number"),)),
            )
        )
    return moments


def of_events(events: Sequence[PublishedEvent], deliveries: Sequence[DeliveryTo]) -> list[Moment]:
    """Gives a moment for each event, and one for each of its deliveries, at the last attempt."""
    by_position: dict[int, list[DeliveryTo]] = {}
    for each in deliveries:
        by_position.setdefault(each.position, []).append(each)
    moments = []
    for event in events:
        rows: tuple[tuple[str, str | int | None], ...] = (
            ("Event", event.id),
            ("Type", event.type),
            ("Position in the feed", event.position),
            ("For", event.principal),
            *((name.replace("_", " "), value) for name, value in event.data.items()),
        )
        text = f"The service has the event {event.type} for its client."
        if not by_position.get(event.position):
            text = f"{text} No delivery of it is stored; the client can read it."
        moments.append(Moment(at_ms=event.at_ms, title="Event", text=text, evidence=rows_of(rows)))
        moments += [_of_delivery(each) for each in by_position.get(event.position, ())]
    return moments


def _of_delivery(delivery: DeliveryTo) -> Moment:
    name = delivery.label or delivery.endpoint_id
    times = "once" if delivery.attempts == 1 else f"{delivery.attempts} times"
    text, tone = f"It waits to be sent to {name}.", Tone.OPEN
    if delivery.state is DeliveryState.DELIVERED:
        text, tone = f"{name} accepted it; it was sent {times}.", Tone.DONE
    elif delivery.state is DeliveryState.GIVEN_UP:
        text, tone = f"It was given up after it had been sent to {name} {times}.", Tone.DOUBT
    elif delivery.attempts:
        text = f"{name} has not accepted it yet; it was sent {times}, and is sent again."
    rows = (
        ("Event", delivery.event_id),
        ("Endpoint", delivery.endpoint_id),
        ("Answer", None if delivery.last_status is None else f"HTTP {delivery.last_status}"),
        ("Failure", delivery.last_failure),
        ("Attempts", delivery.attempts),
    )
    return Moment(
        at_ms=delivery.last_try_at_ms or delivery.queued_at_ms,
        title=f"Delivery of {delivery.type}",
        text=text,
        tone=tone,
        evidence=rows_of(rows),
    )
