"""The line of time of one order: what happened, in words that can be read to a customer, each with its evidence.

Sentences about an operation are those that its clients get (``core.payments.explanations``). Nothing here opens what is
sealed, and no sentence says more than its row.
"""

from enum import StrEnum

import msgspec

from payrelay.core.checkouts.checkout import CLOSED_SENTENCE, Checkout, CheckoutKind, CheckoutState
from payrelay.core.money import money_text
from payrelay.core.notifications.notification import (
    Authenticity,
    MessageType,
    Notification,
    NotificationKind,
    NotificationState,
    ReportedStatus,
)
from payrelay.core.payments.explanations import phrases_of, request_phrase, sentence_with_evidence
from payrelay.core.payments.operation import JournalEntry, Operation


class Tone(StrEnum):
    """How something ended, for the mark beside it; the words say it too."""

    DONE = "done"
    OPEN = "open"
    NOT_DONE = "not-done"
    DOUBT = "doubt"
    PLAIN = "plain"


class Moment(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that happened.

    Attributes:
        at_ms: when, in milliseconds since 1970, UTC.
        title: the thing that it happened to.
        text: a sentence, fit to be read out.
        link: the id of the operation that has more; None where there is no page of it.
        tone: how it ended.
        evidence: names and values, in the order in which they are shown.
    """

    at_ms: int
    title: str
    text: str
    link: str | None = None
    tone: Tone = Tone.PLAIN
    evidence: tuple[tuple[str, str], ...] = ()


_PAGES = {
    CheckoutKind.PAYMENT: "to pay",
    CheckoutKind.PREAPPROVAL: "to let a card be charged later",
    CheckoutKind.RECURRING: "to pay by a plan",
    CheckoutKind.AUTHORIZATION: "to authorize an amount",
}
_TITLES = {
    CheckoutKind.PAYMENT: "Page for a payment",
    CheckoutKind.PREAPPROVAL: "Page for a preapproval",
    CheckoutKind.RECURRING: "Page for a subscription",
    CheckoutKind.AUTHORIZATION: "Page for an authorization",
}
_CHECKOUT_TONES = {
    CheckoutState.OPEN: Tone.OPEN,
    CheckoutState.NOTIFIED: Tone.OPEN,
    CheckoutState.COMPLETED: Tone.DONE,
    CheckoutState.FAILED: Tone.NOT_DONE,
    CheckoutState.CANCELLED: Tone.NOT_DONE,
    CheckoutState.EXPIRED: Tone.NOT_DONE,
}
_STATE_TONES = {
    "succeeded": Tone.DONE,
    **dict.fromkeys(("declined", "refused", "not_sent", "failed"), Tone.NOT_DONE),
    **dict.fromkeys(("needs_attention", "held", "unknown"), Tone.DOUBT),
}
_REPORTED = {
    ReportedStatus.SUCCEEDED: "it was paid",
    ReportedStatus.AUTHORIZED: "the amount was authorized",
    ReportedStatus.PENDING: "the payment is pending",
    ReportedStatus.CANCELLED: "the customer cancelled",
    ReportedStatus.FAILED: "the payment failed",
    ReportedStatus.CHARGED_BACK: "the payment was charged back by the bank",
    ReportedStatus.OTHER: "something that it doesn't document",
}
_MESSAGES = {
    MessageType.AUTHORIZATION_SUCCESS: "the subscription has begun",
    MessageType.AUTHORIZATION_FAILED: "the subscription could not begin",
    MessageType.INSTALLMENT_SUCCESS: "an installment was paid",
    MessageType.INSTALLMENT_FAILED: "an installment failed",
    MessageType.COMPLETE: "the subscription is complete",
    MessageType.STOPPED: "the subscription was stopped",
}
_OUTCOMES = {
    NotificationState.RECEIVED: "The service is to work on it.",
    NotificationState.WAITING: "The service waits with it: {why}.",
    NotificationState.APPLIED: "The service has stored what follows from it: {why}.",
    NotificationState.IGNORED: "Nothing follows from it: {why}.",
    NotificationState.REFUSED: "The service refused it: {why}.",
    NotificationState.NEEDS_ATTENTION: "An operator must look at it: {why}.",
}


def state_tone(state: str) -> Tone:
    """Gives the tone of an operation's state."""
    return _STATE_TONES.get(state, Tone.OPEN)


def checkout_tone(checkout: Checkout) -> Tone:
    """Gives the tone of a checkout's state."""
    return _CHECKOUT_TONES[checkout.state]


def of_checkout(checkout: Checkout) -> list[Moment]:
    """Gives what is known of a checkout's life: it has no history, only its last change."""
    title = _TITLES[checkout.kind]
    asked = money_text(checkout.amount_minor, checkout.currency)
    rows: tuple[tuple[str, str | int | None], ...] = (
        ("Checkout", checkout.id),
        ("Asked for by", checkout.principal),
        ("Request id", checkout.request_id),
        ("Kind", checkout.kind),
    )
    opened = Moment(
        at_ms=checkout.created_at_ms,
        text=f"The customer was asked {_PAGES[checkout.kind]}{f': {asked}' if asked else ''}.",
        title=title,
        evidence=rows_of(rows),
    )
    moments = [opened]
    if checkout.opened_at_ms is not None:
        text = "The customer's page was shown for the first time."
        moments.append(Moment(at_ms=checkout.opened_at_ms, text=text, title=title))
    if checkout.closed_at_ms is not None and not checkout.is_closed:
        moments.append(Moment(at_ms=checkout.closed_at_ms, text=CLOSED_SENTENCE, title=title, tone=Tone.NOT_DONE))
    if not checkout.is_open:
        result = (
            ("State", checkout.state),
            ("Reason", checkout.reason),
            ("Payment", checkout.payment_id),
            ("Subscription", checkout.subscription_id),
            ("Customer", checkout.customer_id),
            ("Changes", checkout.version),
        )
        moments.append(
            Moment(
                at_ms=checkout.updated_at_ms,
                text=checkout.sentence,
                title=title,
                tone=checkout_tone(checkout),
                evidence=rows_of(result),
            )
        )
    return moments


def of_operation(operation: Operation, history: list[JournalEntry]) -> list[Moment]:
    """Gives a moment for each journal entry of an operation."""
    phrase = request_phrase(operation)
    return [_of_entry(operation, entry, phrase) for entry in history]


def _of_entry(operation: Operation, entry: JournalEntry, phrase: str) -> Moment:
    rows: tuple[tuple[str, str | int | None], ...] = (
        ("Operation", operation.id),
        ("State after it", entry.state.replace("_", " ")),
        *(("Evidence", each) for each in phrases_of(entry.evidence)),
        ("Request id", operation.request_id if entry.event is None else None),
        ("Asked for by", operation.principal if entry.event is None else None),
        ("Entry", entry.version),
    )
    return Moment(
        at_ms=entry.at_ms,
        title=f"{phrase[:1].upper()}{phrase[1:]}",
        text=sentence_with_evidence(entry),
        link=operation.id,
        tone=state_tone(entry.state) if entry.event is not None else Tone.PLAIN,
        evidence=rows_of(rows),
    )


def of_notification(notification: Notification) -> list[Moment]:
    """Gives the moment at which a notification came, with what became of it."""
    said = _REPORTED[notification.reported]
    if notification.kind is NotificationKind.RECURRING and notification.message_type is not None:
        said = _MESSAGES[notification.message_type]
    elif notification.kind is NotificationKind.PREAPPROVAL and notification.reported is ReportedStatus.SUCCEEDED:
        said = "the customer lets the card be charged later"
    paid = money_text(notification.amount_minor, notification.currency)
    who = "The gateway reported" if notification.authenticity is Authenticity.GENUINE else "A message claimed"
    outcome = _OUTCOMES[notification.state].format(why=notification.reason.phrase or notification.reason)
    rows = (
        ("Notification", notification.id),
        ("Signature", notification.authenticity.replace("_", " ")),
        ("State", notification.state.replace("_", " ")),
        ("Payment", notification.payment_id),
        ("Subscription", notification.subscription_id),
        ("Repeats", notification.repeats or None),
        ("Accepted by", notification.accepted_by),
        ("Because", notification.accepted_because),
    )
    needs_somebody = notification.state in {NotificationState.NEEDS_ATTENTION, NotificationState.REFUSED}
    return [
        Moment(
            at_ms=notification.received_at_ms,
            text=f"{who}: {said}{f', {paid}' if paid else ''}. {outcome}",
            title="Notification",
            tone=Tone.DOUBT if needs_somebody else Tone.PLAIN,
            evidence=rows_of(rows),
        )
    ]


def rows_of(rows: tuple[tuple[str, str | int | None], ...]) -> tuple[tuple[str, str], ...]:
    """Leaves out what isn't known."""
    return tuple((name, str(value)) for name, value in rows if value is not None)
