"""Notifications: what the gateway reports unasked, their states, and the steps between them.

Rules:

1. Merchant, order, amount, currency and status are signed. Whoever has seen one notification can forge everything else
   in it. So a notification is a report and no proof: a payment counts when the gateway shows it.
2. A notification changes nothing twice, and notifications lead to one result in any order.
3. A status of failure never disproves an effect.
4. Every notification reaches a final state, which an operator can look at, and has the reason for its state.

To be changed together: ``TRANSITIONS``, the partial indexes of the table ``notifications`` in the store, and the table
in ``docs/notifications.md``, which a test compares with this one.
"""

from collections.abc import Sequence
from enum import StrEnum
from typing import Final, Self

import msgspec

from payrelay.core.gateways.signed_text import SignedText
from payrelay.core.payments.order_search import PAUSES_MS
from payrelay.core.payments.payment import Payment, PaymentStatus
from payrelay.core.payments.schedules import DAY_MS, HOUR_MS
from payrelay.core.secret import MaskedRepr, Secret
from payrelay.errors import IllegalTransition

RETRY_DELAYS_MS: Final = PAUSES_MS
"""The pauses after the first attempt that was put off, after the second, …; the last one repeats. What waits for a
search waits for the next slot of its order instead."""
LOST_WAITS_FOR_MS: Final = HOUR_MS
"""How long one waits whose subject may be among lost commits, so that a repeated request can bring that back."""
WAITS_FOR_MS: Final = 3 * DAY_MS
"""How long a notification waits, from its arrival on, until Payrelay knows its subject and the gateway shows it."""


class NotificationKind(StrEnum):
    """What a notification is about, as far as its fields tell."""

    PAYMENT = "payment"
    PREAPPROVAL = "preapproval"
    AUTHORIZATION = "authorization"
    RECURRING = "recurring"
    CHARGEBACK = "chargeback"


class ReportedStatus(StrEnum):
    """The status that a notification reports."""

    SUCCEEDED = "succeeded"
    AUTHORIZED = "authorized"
    PENDING = "pending"
    CANCELLED = "cancelled"
    FAILED = "failed"
    CHARGED_BACK = "charged_back"
    OTHER = "other"
    """A status that the gateway does not document."""


class MessageType(StrEnum):
    """What a notification reports about a subscription."""

    AUTHORIZATION_SUCCESS = "authorization_success"
    AUTHORIZATION_FAILED = "authorization_failed"
    INSTALLMENT_SUCCESS = "installment_success"
    INSTALLMENT_FAILED = "installment_failed"
    COMPLETE = "complete"
    STOPPED = "stopped"


class PlanStatus(StrEnum):
    """The status of a subscription, as a notification reports it."""

    ACTIVE = "active"
    CANCELLED = "cancelled"
    COMPLETED = "completed"


class Authenticity(StrEnum):
    """Whether a notification is the gateway's."""

    GENUINE = "genuine"
    """The signature is that of the account's own secret."""
    FORGED = "forged"
    """The signature is wrong: the gateway did not make it, or another secret than the configured one did."""
    WRONG_MERCHANT = "wrong_merchant"
    """The notification is for another merchant than the account's."""
    NO_SECRET = "no_secret"  # noqa: S105, a word
    """The account has no MERCHANT_SECRET, so the signature can't be checked."""


class NotificationState(StrEnum):
    """The state of a notification."""

    RECEIVED = "received"
    """On disk; it is to be worked on."""
    WAITING = "waiting"
    """Payrelay doesn't know its subject yet, or the gateway doesn't show it yet; it is tried again."""
    APPLIED = "applied"
    """Payrelay has stored what follows from it."""
    IGNORED = "ignored"
    """Nothing follows from it."""
    REFUSED = "refused"
    """It is not from the gateway, or not for this account."""
    NEEDS_ATTENTION = "needs_attention"
    """It contradicts what is known; an operator must look."""


class NotificationEvent(StrEnum):
    """What can happen to a notification."""

    APPLIED = "applied"
    PUT_OFF = "put_off"
    IGNORED = "ignored"
    DOUBTED = "doubted"
    REFUSED = "refused"
    REPLAYED = "replayed"
    """It is to be worked on again, because an operator asked for it or a repeat changed something."""


class NotificationReason(StrEnum):
    """Why a notification is in its state: the word for programs, a phrase fit to be read out, and what happens then.

    Where nothing else is said, a notification that was worked on is ignored for this reason.
    """

    phrase: str
    event: NotificationEvent

    def __new__(cls, word: str, phrase: str = "", event: NotificationEvent = NotificationEvent.IGNORED) -> Self:
        """Makes a member, whose value is its word."""
        member = str.__new__(cls, word)
        member._value_, member.phrase, member.event = word, phrase, event
        return member

    NEW = "new", "it has just come"
    FORGED = "forged", "its signature is not the account's"
    WRONG_MERCHANT = "wrong_merchant", "it is for another merchant"
    NO_SECRET = "no_secret", "the account has no MERCHANT_SECRET to check it by"
    REPLAYED = "replayed", "it is to be worked on anew"
    OPERATION_INQUIRED = (
        "operation_looked_for",
        "the service inquired at the gateway about the order's operation",
        NotificationEvent.APPLIED,
    )
    OPERATION_PROVED = "operation_proved", "it proved the order's authorization", NotificationEvent.APPLIED
    OPERATION_RESOLVED = "operation_settled", "the order's operation was final already", NotificationEvent.APPLIED
    OPERATION_UNDER_WAY = "operation_under_way", "the order's operation is still under way", NotificationEvent.PUT_OFF
    CHECKOUT_FINISHED = "checkout_finished", "the checkout has its outcome", NotificationEvent.APPLIED
    CHECKOUT_NOTIFIED = (
        "checkout_notified",
        "its token was stored with the checkout; a capture will prove the amount",
        NotificationEvent.APPLIED,
    )
    CUSTOMER_APPROVED = "customer_approved", "the approval was stored as a customer", NotificationEvent.APPLIED
    SUBSCRIPTION_NOTED = "subscription_noted", "the report was stored with its subscription", NotificationEvent.APPLIED
    CHARGEBACK_KEPT = "chargeback_kept", "the chargeback was stored with its payment", NotificationEvent.APPLIED
    CHARGEBACK_NOT_SHOWN = (
        "chargeback_not_shown",
        "the gateway's record of the payment shows no such chargeback",
        NotificationEvent.PUT_OFF,
    )
    CHARGEBACK_WON = (
        "chargeback_won",
        "the gateway's record shows the payment as received again, so that its chargeback counts no more",
        NotificationEvent.APPLIED,
    )
    CHARGEBACK_MAY_BE_WON = (
        "chargeback_may_be_won",
        "the gateway's record shows the payment as received again; a second look tells whether its chargeback was won",
        NotificationEvent.PUT_OFF,
    )
    INFORMED = "informed", "it reports no effect, and changes nothing"
    UNKNOWN_ORDER = "unknown_order", "the service knows nothing of its order", NotificationEvent.PUT_OFF
    UNKNOWN_PAYMENT = "unknown_payment", "the service knows nothing of its payment", NotificationEvent.PUT_OFF
    MAY_BE_LOST = (
        "may_be_lost",
        "the database lost commits, and what asked for its payment may be among them",
        NotificationEvent.DOUBTED,
    )
    NOT_SHOWN = "not_shown", "the gateway does not show its payment", NotificationEvent.PUT_OFF
    UNSEEN = "unseen", "the service could not read the gateway's records", NotificationEvent.PUT_OFF
    SEARCH_WAITS = "search_waits", "it waits for the next search of its order", NotificationEvent.PUT_OFF
    OTHER_AMOUNT = (
        "other_amount",
        "it does not show the amount and currency that were requested",
        NotificationEvent.DOUBTED,
    )
    OTHER_KIND = "other_kind", "it is not of the kind that was requested", NotificationEvent.DOUBTED
    OTHER_SCHEDULE = (
        "other_schedule",
        "its subscription has another schedule than was requested",
        NotificationEvent.DOUBTED,
    )
    OTHER_SCHEDULE_STOPPED = (
        "other_schedule_stopped",
        "its subscription is not the requested one, and was stopped",
        NotificationEvent.APPLIED,
    )
    OTHER_TOKEN = "other_token", "another token was accepted for the same order", NotificationEvent.DOUBTED
    OTHER_TEXT = "other_text", "its signature may be of another form or call", NotificationEvent.DOUBTED
    SEVERAL_OWNERS = (
        "several_owners",
        "it fits checkouts of several principals, and nothing shows whose it is",
        NotificationEvent.DOUBTED,
    )
    PAID_AGAIN = "paid_again", "it paid the order again, and an alert of its own says so", NotificationEvent.APPLIED
    SECOND_PAYMENT = (
        "second_payment",
        "it is another payment than the order's, which was given back or took no money",
        NotificationEvent.DOUBTED,
    )
    EARLIER_PAYMENT = (
        "earlier_payment",
        "its payment or subscription may be older than what was requested",
        NotificationEvent.DOUBTED,
    )
    OPERATION_OPEN = "operation_open", "the order's operation already needs an operator", NotificationEvent.DOUBTED
    INCOMPLETE = "incomplete", "it lacks a field that it should have", NotificationEvent.DOUBTED
    BODY_FORGOTTEN = "body_forgotten", "its body had been deleted by then"
    ACCOUNT_GONE = "account_gone", "its account is not configured any more", NotificationEvent.PUT_OFF
    STORE_DOWN = "store_down", "the database could not be used", NotificationEvent.PUT_OFF
    OUR_FAULT = "our_fault", "the service failed by an error of its own; the log has it", NotificationEvent.PUT_OFF


_OPEN: Final = (NotificationState.RECEIVED, NotificationState.WAITING)

TRANSITIONS: Final[dict[tuple[NotificationState, NotificationEvent], NotificationState]] = {
    **{
        (state, event): after
        for state in _OPEN
        for event, after in (
            (NotificationEvent.APPLIED, NotificationState.APPLIED),
            (NotificationEvent.PUT_OFF, NotificationState.WAITING),
            (NotificationEvent.IGNORED, NotificationState.IGNORED),
            (NotificationEvent.DOUBTED, NotificationState.NEEDS_ATTENTION),
            (NotificationEvent.REFUSED, NotificationState.REFUSED),
        )
    },
    **{
        (state, NotificationEvent.REPLAYED): NotificationState.RECEIVED
        for state in NotificationState
        if state is not NotificationState.RECEIVED
    },
}

UNFINISHED: Final = frozenset(_OPEN)
"""The service works on a notification in one of these states without a request."""


class NotificationContent(MaskedRepr, frozen=True, kw_only=True):
    """The fields of a notification in Payrelay's own terms; None for a field that is absent or can't be read.

    Attributes:
        kind, reported: what it is about, and the status that it reports.
        order_id, amount_minor, currency: these and the status are signed.
        readings: every order and amount that the signature fits, where the gateway runs signed fields together; the
            notification's own are among them. Empty where the signature fits nothing else.
        moved_minor: how much was taken, or taken back; nobody signs it.
        payment_id, subscription_id: digits.
        message_type: what happened to a subscription.
        customer_token, authorization_token: the token of an approval or of an authorization.
        method, card_no_masked, card_expiry, card_holder: of the card.
        installments_paid: how many installments of the subscription were paid by then.
        next_on: the date of the next installment, ``YYYY-MM-DD``.
        plan_status: the reported status of the subscription.
    """

    kind: NotificationKind
    reported: ReportedStatus
    order_id: str
    amount_minor: int | None
    currency: str
    readings: tuple[SignedText, ...] = ()
    moved_minor: int | None = None
    payment_id: str | None = None
    subscription_id: str | None = None
    message_type: MessageType | None = None
    customer_token: str | None = None
    authorization_token: str | None = None
    method: str | None = None
    card_no_masked: str | None = None
    card_expiry: str | None = None
    card_holder: Secret | None = None
    installments_paid: int | None = None
    next_on: str | None = None
    plan_status: PlanStatus | None = None


class Notification(msgspec.Struct, frozen=True, kw_only=True):
    """A notification with its present state; the store keeps its sealed body beside it. Times are in ms since 1970.

    Attributes:
        id: ``ntf_…``.
        account: the account whose address it was posted to.
        merchant: the merchant of that account.
        digest: SHA-256 of the whole body, in hex digits; a repeat has an equal digest.
        authenticity: whether it is the gateway's.
        state, reason: its state, and why it is in that state.
        version: starts at 1, one more with every change of the state.
        kind, reported, order_id, payment_id, subscription_id, amount_minor, currency, message_type: as in its content.
        received_at_ms, last_at_ms, repeats: when it came first, when it came last, and the number of its repeats.
        attempts: how often it was worked on since it came, or since it was replayed.
        next_at_ms: when it is worked on next; None where it is not.
        gives_up_at_ms: until when it may wait.
        updated_at_ms: when its state changed last.
        accepted_by, accepted_because, accepted_at_ms: the operator who accepted it although the service doubted it,
            with reason and time; None where nobody did.
    """

    id: str
    account: str
    merchant: str
    digest: str
    authenticity: Authenticity
    state: NotificationState
    reason: NotificationReason
    version: int
    kind: NotificationKind
    reported: ReportedStatus
    order_id: str
    payment_id: str | None
    subscription_id: str | None
    amount_minor: int | None
    currency: str
    message_type: MessageType | None
    received_at_ms: int
    last_at_ms: int
    repeats: int
    attempts: int
    next_at_ms: int | None
    gives_up_at_ms: int
    updated_at_ms: int
    accepted_by: str | None = None
    accepted_because: str | None = None
    accepted_at_ms: int | None = None


def occasion_of(notification: Notification) -> str:
    """Gives the signed text of a notification, beside its order, as an occasion to search for the order.

    Whoever posts the same notification with other unsigned fields makes no new occasion.
    """
    return f"{notification.reported} {notification.amount_minor} {notification.currency}"


class NotificationFilter(msgspec.Struct, frozen=True, kw_only=True):
    """Selects the notifications to list: those that are equal in every field that is given."""

    account: str | None = None
    state: NotificationState | None = None
    order_id: str | None = None
    payment_id: str | None = None


class NotificationStep(msgspec.Struct, frozen=True, kw_only=True):
    """The result of one attempt to apply a notification."""

    event: NotificationEvent
    reason: NotificationReason


DOUBTED_AFTER_WAITING: Final = frozenset(
    {NotificationReason.CHARGEBACK_NOT_SHOWN, NotificationReason.UNSEEN, NotificationReason.SEARCH_WAITS}
)
"""For these reasons a chargeback of a known payment needs attention after the whole wait, and is never ignored."""


def step_of(reason: NotificationReason) -> NotificationStep:
    """Gives the step of a notification that is being worked on, by the reason of its result."""
    return NotificationStep(event=reason.event, reason=reason)


def advance(
    notification: Notification, step: NotificationStep, *, at_ms: int, next_at_ms: int | None = None
) -> Notification:
    """Gives the notification after a step.

    Where it is put off, it is worked on next at ``next_at_ms``; at None, after the pause of its attempt. A
    notification that has waited for WAITS_FOR_MS is ignored in place of being put off again, or needs attention where
    it contradicts what is known. One that waits for an operation's outcome waits until that is known: its payment may
    be none of the operation's. A replay begins the wait anew. Raises IllegalTransition where the table knows no such
    step.
    """
    event = step.event
    is_over = at_ms >= notification.gives_up_at_ms and step.reason is not NotificationReason.OPERATION_UNDER_WAY
    if event is NotificationEvent.PUT_OFF and is_over:
        is_chargeback = notification.reported is ReportedStatus.CHARGED_BACK
        is_doubted = is_chargeback and step.reason in DOUBTED_AFTER_WAITING
        event = NotificationEvent.DOUBTED if is_doubted else NotificationEvent.IGNORED
    try:
        state = TRANSITIONS[notification.state, event]
    except KeyError:
        raise IllegalTransition(f"a notification that is {notification.state} can't take the event {event}") from None
    is_replayed = event is NotificationEvent.REPLAYED
    attempts = 0 if is_replayed else notification.attempts + 1
    due_ms = at_ms if is_replayed else None
    if state is NotificationState.WAITING:
        due_ms = next_at_ms or at_ms + RETRY_DELAYS_MS[min(notification.attempts, len(RETRY_DELAYS_MS) - 1)]
    return msgspec.structs.replace(
        notification,
        state=state,
        reason=step.reason,
        version=notification.version + 1,
        attempts=attempts,
        next_at_ms=due_ms,
        gives_up_at_ms=at_ms + WAITS_FOR_MS if is_replayed else notification.gives_up_at_ms,
        updated_at_ms=at_ms,
    )


def step_of_repeat(stored: Notification, authenticity: Authenticity) -> NotificationStep | None:
    """Decides the step that the repeat of a notification leads to; None where it changes nothing.

    A notification that was refused is worked on when it is genuine now, because the account has got its right secret
    since. A notification that was given up waits anew.
    """
    is_genuine_now = authenticity is Authenticity.GENUINE and stored.authenticity is not Authenticity.GENUINE
    was_given_up = stored.state is NotificationState.IGNORED and stored.reason.event is NotificationEvent.PUT_OFF
    if not is_genuine_now and not was_given_up:
        return None
    return NotificationStep(event=NotificationEvent.REPLAYED, reason=NotificationReason.REPLAYED)


_UNPROVED: Final = frozenset(
    {
        NotificationReason.NOT_SHOWN,
        NotificationReason.UNSEEN,
        NotificationReason.SEARCH_WAITS,
        NotificationReason.UNKNOWN_PAYMENT,
        NotificationReason.ACCOUNT_GONE,
        NotificationReason.STORE_DOWN,
        NotificationReason.OUR_FAULT,
    }
)
EFFECTS: Final = frozenset({ReportedStatus.SUCCEEDED, ReportedStatus.AUTHORIZED, ReportedStatus.CHARGED_BACK})
"""What a notification reports where money moved, or was reserved."""
UNKNOWN: Final = frozenset({NotificationReason.UNKNOWN_ORDER, NotificationReason.UNKNOWN_PAYMENT})
"""Nothing here asked for what it reports."""


def needs_operator(notification: Notification) -> bool:
    """Tells whether the state of a notification calls for an operator.

    It does where the notification contradicts what is known, unless its operation calls for an operator itself. It does
    too where the notification reports a payment, and nothing could prove or disprove it for days.
    """
    if notification.state is NotificationState.NEEDS_ATTENTION:
        return notification.reason is not NotificationReason.OPERATION_OPEN
    is_unproved = notification.state is NotificationState.IGNORED and notification.reason in _UNPROVED
    return is_unproved and notification.reported in EFFECTS


def may_be_accepted(notification: Notification) -> bool:
    """Tells whether an operator may accept a notification for genuine that the service doubts.

    It reports an authorization, and another token or another order is in the way. Whoever accepts a wrong one can
    accept the right one after it: only its capture proves an amount.
    """
    return (
        notification.state is NotificationState.NEEDS_ATTENTION
        and notification.reported is ReportedStatus.AUTHORIZED
        and notification.reason in {NotificationReason.OTHER_TOKEN, NotificationReason.OTHER_TEXT}
    )


class ExpectedAmount(msgspec.Struct, frozen=True, kw_only=True):
    """The money that was requested for an order; ``amount_minor`` is None where no amount was named."""

    amount_minor: int | None
    currency: str


def differs(content: NotificationContent, expected: ExpectedAmount) -> bool:
    """Tells whether a notification is for another amount or currency than was requested."""
    is_other_amount = expected.amount_minor is not None and content.amount_minor != expected.amount_minor
    return is_other_amount or content.currency != expected.currency


def payment_shown(content: NotificationContent, payments: Sequence[Payment], owned: frozenset[str]) -> Payment | None:
    """Finds a notification's payment among those that the gateway shows; None where the gateway doesn't show it.

    The payment must be received, be equal in id, order, amount and currency, and belong to nothing else (``owned``). A
    notification without a payment id, as some authorizations have, means the one payment that is equal otherwise.
    """
    fitting = [
        payment
        for payment in payments
        if payment.order_id == content.order_id
        and payment.amount_minor == content.amount_minor
        and payment.currency == content.currency
        and payment.payment_id not in owned
        and (content.payment_id is None or payment.payment_id == content.payment_id)
        and payment.status == PaymentStatus.RECEIVED
    ]
    return fitting[0] if len(fitting) == 1 else None
