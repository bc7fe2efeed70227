"""Notifications: what a gateway says of its own accord, where each one stands, and what it may lead to.

Rules:

1. What is signed is who, which order, how much, which currency and which status; everything else of a notification can
   be put there by whoever has seen one. So it is news, and no proof: money counts when the gateway shows it.
2. A notification changes nothing twice, and in no order anything else than in another one.
3. A status of failure never disproves an effect.
4. Every notification comes to an end that can be looked at, and says why it stands where it does.

To be changed together: ``TRANSITIONS``, the partial indexes of the table ``notifications`` in the store, and the table
in ``docs/notifications.md``, which a test compares with this one.
"""

from collections.abc import Sequence
from enum import StrEnum
from typing import Final

import msgspec

from payrelay.core.payments.payment import Payment, PaymentStatus
from payrelay.core.payments.schedules import DAY_MS
from payrelay.core.secret import MaskedRepr, Secret
from payrelay.errors import IllegalTransition

AGAIN_AFTER_MS: Final = (
    2_000,
    5_000,
    15_000,
    60_000,
    300_000,
    900_000,
    3_600_000,
    3_600_000,
    6 * 3_600_000,
)
"""After the first try that had to wait, the second, …; the last of them from then on."""
WAITS_FOR_MS: Final = 3 * DAY_MS
"""How long a notification waits for what it is about, or for the gateway to show it; from when it came."""


class NotificationKind(StrEnum):
    """What a notification is about, as far as its fields tell."""

    PAYMENT = "payment"
    PREAPPROVAL = "preapproval"
    AUTHORIZATION = "authorization"
    RECURRING = "recurring"
    CHARGEBACK = "chargeback"


class ReportedStatus(StrEnum):
    """What a notification says happened."""

    SUCCEEDED = "succeeded"
    AUTHORIZED = "authorized"
    PENDING = "pending"
    CANCELLED = "cancelled"
    FAILED = "failed"
    CHARGED_BACK = "charged_back"
    OTHER = "other"
    """A status that the gateway does not document."""


class MessageType(StrEnum):
    """What happened to a subscription."""

    AUTHORIZATION_SUCCESS = "authorization_success"
    AUTHORIZATION_FAILED = "authorization_failed"
    INSTALLMENT_SUCCESS = "installment_success"
    INSTALLMENT_FAILED = "installment_failed"
    COMPLETE = "complete"
    STOPPED = "stopped"


class PlanStatus(StrEnum):
    """How a subscription stands, by a notification's word."""

    ACTIVE = "active"
    CANCELLED = "cancelled"
    COMPLETED = "completed"


class Authenticity(StrEnum):
    """Who a notification is from."""

    GENUINE = "genuine"
    """The signature is that of the account's own secret."""
    FORGED = "forged"
    """The signature is wrong: not from the gateway, or made with a secret that is not the configured one."""
    WRONG_MERCHANT = "wrong_merchant"
    """It is for another merchant than the account's."""
    NO_SECRET = "no_secret"  # noqa: S105, a word
    """The account has no MERCHANT_SECRET, so that nothing can be said of it."""


class NotificationState(StrEnum):
    """Where a notification stands."""

    RECEIVED = "received"
    """On disk; it is to be worked on."""
    WAITING = "waiting"
    """What it is about isn't known yet, or not shown by the gateway: it is tried again."""
    APPLIED = "applied"
    """What it says has been taken up."""
    IGNORED = "ignored"
    """There was nothing to take it up."""
    REFUSED = "refused"
    """It is not from the gateway, or not for us."""
    NEEDS_ATTENTION = "needs_attention"
    """It contradicts what is known; a person must look."""


class NotificationEvent(StrEnum):
    """What can happen to a notification."""

    WORKED_ON = "taken_up"
    PUT_OFF = "put_off"
    PASSED_OVER = "passed_over"
    DOUBTED = "doubted"
    REFUSED = "refused"
    REPLAYED = "replayed"
    """An operator, or a repeat that is genuine where the first was not, has it worked on anew."""


class NotificationReason(StrEnum):
    """Why a notification stands where it does."""

    NEW = "new"
    FORGED = "forged"
    WRONG_MERCHANT = "wrong_merchant"
    NO_SECRET = "no_secret"  # noqa: S105, a word
    REPLAYED = "replayed"
    OPERATION_INQUIRED = "operation_looked_for"
    OPERATION_PROVED = "operation_proved"
    OPERATION_RESOLVED = "operation_settled"
    OPERATION_UNDER_WAY = "operation_under_way"
    CHECKOUT_FINISHED = "checkout_finished"
    CUSTOMER_APPROVED = "customer_approved"
    SUBSCRIPTION_NOTED = "subscription_noted"
    CHARGEBACK_KEPT = "chargeback_kept"
    INFORMED = "informed"
    UNKNOWN_ORDER = "unknown_order"
    UNKNOWN_PAYMENT = "unknown_payment"
    NOT_SHOWN = "not_shown"
    UNSEEN = "unseen"
    OTHER_AMOUNT = "other_amount"
    OTHER_KIND = "other_kind"
    OTHER_TOKEN = "other_token"  # noqa: S105, a word
    SECOND_PAYMENT = "second_payment"
    EARLIER_PAYMENT = "earlier_payment"
    OPERATION_OPEN = "operation_open"
    INCOMPLETE = "incomplete"
    BODY_FORGOTTEN = "body_forgotten"
    ACCOUNT_GONE = "account_gone"
    STORE_DOWN = "store_down"
    OUR_FAULT = "our_fault"


REASON_PHRASES: Final[dict[NotificationReason, str]] = {
    NotificationReason.NEW: "it has just come",
    NotificationReason.FORGED: "its signature is not the account's",
    NotificationReason.WRONG_MERCHANT: "it is for another merchant",
    NotificationReason.NO_SECRET: "the account has no MERCHANT_SECRET to check it by",
    NotificationReason.REPLAYED: "it is to be worked on anew",
    NotificationReason.OPERATION_INQUIRED: "the gateway was asked what became of the order's operation",
    NotificationReason.OPERATION_PROVED: "it proved the order's hold",
    NotificationReason.OPERATION_RESOLVED: "the order's operation was settled already",
    NotificationReason.OPERATION_UNDER_WAY: "the order's operation is still under way",
    NotificationReason.CHECKOUT_FINISHED: "the checkout has its outcome",
    NotificationReason.CUSTOMER_APPROVED: "the approval was stored as a customer",
    NotificationReason.SUBSCRIPTION_NOTED: "it was noted of the subscription",
    NotificationReason.CHARGEBACK_KEPT: "the chargeback was kept with its payment",
    NotificationReason.INFORMED: "it tells of no effect, and changes nothing here",
    NotificationReason.UNKNOWN_ORDER: "nothing here has its order",
    NotificationReason.UNKNOWN_PAYMENT: "nothing here has its payment",
    NotificationReason.NOT_SHOWN: "the gateway does not show its payment",
    NotificationReason.UNSEEN: "the gateway could not be asked",
    NotificationReason.OTHER_AMOUNT: "it is for another amount or currency than was asked",
    NotificationReason.OTHER_KIND: "it is not of the kind that was asked for",
    NotificationReason.OTHER_TOKEN: "another token was accepted for the same order",
    NotificationReason.SECOND_PAYMENT: "the order was paid before, by another payment",
    NotificationReason.EARLIER_PAYMENT: "its payment is older than all that was asked for under its order",
    NotificationReason.OPERATION_OPEN: "the order's operation needs a person already",
    NotificationReason.INCOMPLETE: "it lacks what it should bring",
    NotificationReason.BODY_FORGOTTEN: "its body was forgotten by then",
    NotificationReason.ACCOUNT_GONE: "its account is not configured any more",
    NotificationReason.STORE_DOWN: "the store could not be used",
    NotificationReason.OUR_FAULT: "we made a mistake; the log has it",
}
"""The words of ``NotificationReason``, to be read out."""

_OPEN: Final = (NotificationState.RECEIVED, NotificationState.WAITING)

TRANSITIONS: Final[dict[tuple[NotificationState, NotificationEvent], NotificationState]] = {
    **{
        (state, event): after
        for state in _OPEN
        for event, after in (
            (NotificationEvent.WORKED_ON, NotificationState.APPLIED),
            (NotificationEvent.PUT_OFF, NotificationState.WAITING),
            (NotificationEvent.PASSED_OVER, NotificationState.IGNORED),
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
"""It is worked on without anybody asking for that."""


class NotificationContent(MaskedRepr, frozen=True, kw_only=True):
    """What a notification says, in words of our own; None for what it doesn't say, or not readably.

    Attributes:
        kind, reported: what it is about, and what it says happened.
        order_id, amount_minor, currency: these and the status are signed.
        payment_id, subscription_id: digits.
        message_type: what happened to a subscription.
        customer_token, authorization_token: what an approval or a hold yielded.
        method, card_no_masked, card_expiry, card_holder: of the card.
        installments_paid: how many of a subscription's were paid by then.
        next_on: the date of its next installment, ``YYYY-MM-DD``.
        plan_status: how the subscription stands by its word.
    """

    kind: NotificationKind
    reported: ReportedStatus
    order_id: str
    amount_minor: int | None
    currency: str
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
    """A notification as it stands now; its body lies sealed beside it.

    Attributes:
        id: ``ntf_…``.
        account: under whose address it came.
        merchant: the merchant account of that name.
        digest: SHA-256 of the whole body, in hex digits; what makes a repeat the same notification.
        authenticity: who it is from.
        state, reason: where it stands, and why there.
        version: starts at 1, one more with every change of the state.
        kind, reported, order_id, payment_id, subscription_id, amount_minor, currency, message_type: what it says.
        received_at_ms, last_at_ms, repeats: when it came first, when last, and how often again.
        attempts: how often it was worked on since it came, or was replayed.
        next_at_ms: when it is worked on next; None where it is not.
        gives_up_at_ms: until when it waits for what it is about.
        updated_at_ms: when its state changed last.
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


class NotificationFilter(msgspec.Struct, frozen=True, kw_only=True):
    """Which notifications are listed: those that are equal in every field that is given."""

    account: str | None = None
    state: NotificationState | None = None
    kind: NotificationKind | None = None
    order_id: str | None = None
    payment_id: str | None = None
    subscription_id: str | None = None


REASON_OF_AUTHENTICITY: Final[dict[Authenticity, NotificationReason]] = {
    Authenticity.GENUINE: NotificationReason.NEW,
    Authenticity.FORGED: NotificationReason.FORGED,
    Authenticity.WRONG_MERCHANT: NotificationReason.WRONG_MERCHANT,
    Authenticity.NO_SECRET: NotificationReason.NO_SECRET,
}


class NotificationStep(msgspec.Struct, frozen=True, kw_only=True):
    """What one try to work on a notification came to."""

    event: NotificationEvent
    reason: NotificationReason


WORKED_ON_BY: Final = frozenset(
    {
        NotificationReason.OPERATION_INQUIRED,
        NotificationReason.OPERATION_PROVED,
        NotificationReason.OPERATION_RESOLVED,
        NotificationReason.CHECKOUT_FINISHED,
        NotificationReason.CUSTOMER_APPROVED,
        NotificationReason.SUBSCRIPTION_NOTED,
        NotificationReason.CHARGEBACK_KEPT,
    }
)
PUT_OFF_BY: Final = frozenset(
    {
        NotificationReason.OPERATION_UNDER_WAY,
        NotificationReason.UNKNOWN_ORDER,
        NotificationReason.UNKNOWN_PAYMENT,
        NotificationReason.NOT_SHOWN,
        NotificationReason.UNSEEN,
        NotificationReason.ACCOUNT_GONE,
        NotificationReason.STORE_DOWN,
        NotificationReason.OUR_FAULT,
    }
)
DOUBTED_BY: Final = frozenset(
    {
        NotificationReason.OTHER_AMOUNT,
        NotificationReason.OTHER_KIND,
        NotificationReason.OTHER_TOKEN,
        NotificationReason.SECOND_PAYMENT,
        NotificationReason.EARLIER_PAYMENT,
        NotificationReason.INCOMPLETE,
        NotificationReason.OPERATION_OPEN,
    }
)


def step_of(reason: NotificationReason) -> NotificationStep:
    """Gives what a reason makes of a notification that is being worked on."""
    if reason in WORKED_ON_BY:
        return NotificationStep(event=NotificationEvent.WORKED_ON, reason=reason)
    if reason in PUT_OFF_BY:
        return NotificationStep(event=NotificationEvent.PUT_OFF, reason=reason)
    if reason in DOUBTED_BY:
        return NotificationStep(event=NotificationEvent.DOUBTED, reason=reason)
    return NotificationStep(event=NotificationEvent.PASSED_OVER, reason=reason)


def advance(notification: Notification, step: NotificationStep, *, at_ms: int) -> Notification:
    """Gives the notification as a step leaves it.

    What has waited for WAITS_FOR_MS is passed over in place of being put off once more; one that is replayed begins
    its wait anew. Raises IllegalTransition where the table knows no such step.
    """
    event = step.event
    if event is NotificationEvent.PUT_OFF and at_ms >= notification.gives_up_at_ms:
        event = NotificationEvent.PASSED_OVER
    try:
        state = TRANSITIONS[notification.state, event]
    except KeyError:
        raise IllegalTransition(f"a notification that is {notification.state} can't take the event {event}") from None
    is_replayed = event is NotificationEvent.REPLAYED
    attempts = 0 if is_replayed else notification.attempts + 1
    next_at_ms = at_ms if is_replayed else None
    if state is NotificationState.WAITING:
        next_at_ms = at_ms + AGAIN_AFTER_MS[min(notification.attempts, len(AGAIN_AFTER_MS) - 1)]
    return msgspec.structs.replace(
        notification,
        state=state,
        reason=step.reason,
        version=notification.version + 1,
        attempts=attempts,
        next_at_ms=next_at_ms,
        gives_up_at_ms=at_ms + WAITS_FOR_MS if is_replayed else notification.gives_up_at_ms,
        updated_at_ms=at_ms,
    )


def step_of_repeat(stored: Notification, authenticity: Authenticity) -> NotificationStep | None:
    """Decides what it means that a notification came again: None where that changes nothing.

    One that was taken for forged is worked on when it is genuine after all, because the account has got its right
    secret since. One that was given up waits anew.
    """
    is_genuine_now = authenticity is Authenticity.GENUINE and stored.authenticity is not Authenticity.GENUINE
    was_given_up = stored.state is NotificationState.IGNORED and stored.reason in PUT_OFF_BY
    return (
        NotificationStep(event=NotificationEvent.REPLAYED, reason=NotificationReason.REPLAYED)
        if is_genuine_now or was_given_up
        else None
    )


_UNPROVED: Final = frozenset(
    {
        NotificationReason.NOT_SHOWN,
        NotificationReason.UNSEEN,
        NotificationReason.UNKNOWN_PAYMENT,
        NotificationReason.ACCOUNT_GONE,
        NotificationReason.STORE_DOWN,
        NotificationReason.OUR_FAULT,
    }
)
_OF_MONEY: Final = frozenset({ReportedStatus.SUCCEEDED, ReportedStatus.AUTHORIZED, ReportedStatus.CHARGED_BACK})


def needs_person(notification: Notification) -> bool:
    """Tells whether somebody is to be called because of where a notification stands.

    Of one that contradicts what is known, unless that is called for by its operation; and of one that tells of money,
    was waited with for days, and could be proved neither way.
    """
    if notification.state is NotificationState.NEEDS_ATTENTION:
        return notification.reason is not NotificationReason.OPERATION_OPEN
    is_unproved = notification.state is NotificationState.IGNORED and notification.reason in _UNPROVED
    return is_unproved and notification.reported in _OF_MONEY


class ExpectedAmount(msgspec.Struct, frozen=True, kw_only=True):
    """What was asked for under an order; ``amount_minor`` is None where no amount was named."""

    amount_minor: int | None
    currency: str


def differs(content: NotificationContent, expected: ExpectedAmount) -> bool:
    """Tells whether the news are for another amount or currency than was asked for."""
    is_other_amount = expected.amount_minor is not None and content.amount_minor != expected.amount_minor
    return is_other_amount or content.currency != expected.currency


def payment_shown(content: NotificationContent, payments: Sequence[Payment], owned: frozenset[str]) -> Payment | None:
    """Finds the payment that the news are of among those that the gateway shows; None where it doesn't show it.

    It must be equal in id, order, amount and currency, and belong to nothing else (``owned``). News without an id, as
    of some holds, are of the one payment that is equal otherwise.
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
