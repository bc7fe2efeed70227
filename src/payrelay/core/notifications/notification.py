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
from payrelay.core.secret import Secret, Starred
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


class NewsKind(StrEnum):
    """What a notification is about, as far as its fields tell."""

    PAYMENT = "payment"
    PREAPPROVAL = "preapproval"
    AUTHORIZATION = "authorization"
    RECURRING = "recurring"
    CHARGEBACK = "chargeback"


class NotifiedStatus(StrEnum):
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

    TAKEN_UP = "taken_up"
    PUT_OFF = "put_off"
    PASSED_OVER = "passed_over"
    DOUBTED = "doubted"
    REFUSED = "refused"
    REPLAYED = "replayed"
    """An operator, or a repeat that is genuine where the first was not, has it worked on anew."""


class Why(StrEnum):
    """Why a notification stands where it does."""

    NEW = "new"
    FORGED = "forged"
    WRONG_MERCHANT = "wrong_merchant"
    NO_SECRET = "no_secret"  # noqa: S105, a word
    REPLAYED = "replayed"
    OPERATION_LOOKED_FOR = "operation_looked_for"
    OPERATION_PROVED = "operation_proved"
    OPERATION_SETTLED = "operation_settled"
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


WHY_PHRASES: Final[dict[Why, str]] = {
    Why.NEW: "it has just come",
    Why.FORGED: "its signature is not the account's",
    Why.WRONG_MERCHANT: "it is for another merchant",
    Why.NO_SECRET: "the account has no MERCHANT_SECRET to check it by",
    Why.REPLAYED: "it is to be worked on anew",
    Why.OPERATION_LOOKED_FOR: "the gateway was asked what became of the order's operation",
    Why.OPERATION_PROVED: "it proved the order's hold",
    Why.OPERATION_SETTLED: "the order's operation was settled already",
    Why.OPERATION_UNDER_WAY: "the order's operation is still under way",
    Why.CHECKOUT_FINISHED: "the checkout has its outcome",
    Why.CUSTOMER_APPROVED: "the approval was stored as a customer",
    Why.SUBSCRIPTION_NOTED: "it was noted of the subscription",
    Why.CHARGEBACK_KEPT: "the chargeback was kept with its payment",
    Why.INFORMED: "it tells of no effect, and changes nothing here",
    Why.UNKNOWN_ORDER: "nothing here has its order",
    Why.UNKNOWN_PAYMENT: "nothing here has its payment",
    Why.NOT_SHOWN: "the gateway does not show its payment",
    Why.UNSEEN: "the gateway could not be asked",
    Why.OTHER_AMOUNT: "it is for another amount or currency than was asked",
    Why.OTHER_KIND: "it is not of the kind that was asked for",
    Why.OTHER_TOKEN: "another token was accepted for the same order",
    Why.SECOND_PAYMENT: "the order was paid before, by another payment",
    Why.EARLIER_PAYMENT: "its payment is older than all that was asked for under its order",
    Why.OPERATION_OPEN: "the order's operation needs a person already",
    Why.INCOMPLETE: "it lacks what it should bring",
    Why.BODY_FORGOTTEN: "its body was forgotten by then",
    Why.ACCOUNT_GONE: "its account is not configured any more",
    Why.STORE_DOWN: "the store could not be used",
    Why.OUR_FAULT: "we made a mistake; the log has it",
}
"""The words of ``Why``, to be read out."""

_OPEN: Final = (NotificationState.RECEIVED, NotificationState.WAITING)

TRANSITIONS: Final[dict[tuple[NotificationState, NotificationEvent], NotificationState]] = {
    **{
        (state, event): after
        for state in _OPEN
        for event, after in (
            (NotificationEvent.TAKEN_UP, NotificationState.APPLIED),
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


class News(Starred, frozen=True, kw_only=True):
    """What a notification says, in words of our own; None for what it doesn't say, or not readably.

    Attributes:
        kind, told: what it is about, and what it says happened.
        order_id, amount_minor, currency: these and the status are signed.
        payment_id, subscription_id: digits.
        message_type: what happened to a subscription.
        customer_token, authorization_token: what an approval or a hold yielded.
        method, card_no_masked, card_expiry, card_holder: of the card.
        installments_paid: how many of a subscription's were paid by then.
        next_on: the date of its next installment, ``YYYY-MM-DD``.
        plan_status: how the subscription stands by its word.
    """

    kind: NewsKind
    told: NotifiedStatus
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
        verdict: who it is from.
        state, why: where it stands, and why there.
        version: starts at 1, one more with every change of the state.
        kind, told, order_id, payment_id, subscription_id, amount_minor, currency, message_type: what it says.
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
    verdict: Authenticity
    state: NotificationState
    why: Why
    version: int
    kind: NewsKind
    told: NotifiedStatus
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
    kind: NewsKind | None = None
    order_id: str | None = None
    payment_id: str | None = None
    subscription_id: str | None = None


WHY_OF_VERDICT: Final[dict[Authenticity, Why]] = {
    Authenticity.GENUINE: Why.NEW,
    Authenticity.FORGED: Why.FORGED,
    Authenticity.WRONG_MERCHANT: Why.WRONG_MERCHANT,
    Authenticity.NO_SECRET: Why.NO_SECRET,
}


class NotificationStep(msgspec.Struct, frozen=True, kw_only=True):
    """What one try to work on a notification came to."""

    event: NotificationEvent
    why: Why


TAKEN_UP_BY: Final = frozenset(
    {
        Why.OPERATION_LOOKED_FOR,
        Why.OPERATION_PROVED,
        Why.OPERATION_SETTLED,
        Why.CHECKOUT_FINISHED,
        Why.CUSTOMER_APPROVED,
        Why.SUBSCRIPTION_NOTED,
        Why.CHARGEBACK_KEPT,
    }
)
PUT_OFF_BY: Final = frozenset(
    {
        Why.OPERATION_UNDER_WAY,
        Why.UNKNOWN_ORDER,
        Why.UNKNOWN_PAYMENT,
        Why.NOT_SHOWN,
        Why.UNSEEN,
        Why.ACCOUNT_GONE,
        Why.STORE_DOWN,
        Why.OUR_FAULT,
    }
)
DOUBTED_BY: Final = frozenset(
    {
        Why.OTHER_AMOUNT,
        Why.OTHER_KIND,
        Why.OTHER_TOKEN,
        Why.SECOND_PAYMENT,
        Why.EARLIER_PAYMENT,
        Why.INCOMPLETE,
        Why.OPERATION_OPEN,
    }
)


def step_of(why: Why) -> NotificationStep:
    """Gives what a reason makes of a notification that is being worked on."""
    if why in TAKEN_UP_BY:
        return NotificationStep(event=NotificationEvent.TAKEN_UP, why=why)
    if why in PUT_OFF_BY:
        return NotificationStep(event=NotificationEvent.PUT_OFF, why=why)
    if why in DOUBTED_BY:
        return NotificationStep(event=NotificationEvent.DOUBTED, why=why)
    return NotificationStep(event=NotificationEvent.PASSED_OVER, why=why)


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
        why=step.why,
        version=notification.version + 1,
        attempts=attempts,
        next_at_ms=next_at_ms,
        gives_up_at_ms=at_ms + WAITS_FOR_MS if is_replayed else notification.gives_up_at_ms,
        updated_at_ms=at_ms,
    )


def step_of_repeat(stored: Notification, verdict: Authenticity) -> NotificationStep | None:
    """Decides what it means that a notification came again: None where that changes nothing.

    One that was taken for forged is worked on when it is genuine after all, because the account has got its right
    secret since. One that was given up waits anew.
    """
    is_genuine_now = verdict is Authenticity.GENUINE and stored.verdict is not Authenticity.GENUINE
    was_given_up = stored.state is NotificationState.IGNORED and stored.why in PUT_OFF_BY
    return (
        NotificationStep(event=NotificationEvent.REPLAYED, why=Why.REPLAYED) if is_genuine_now or was_given_up else None
    )


_UNPROVED: Final = frozenset(
    {Why.NOT_SHOWN, Why.UNSEEN, Why.UNKNOWN_PAYMENT, Why.ACCOUNT_GONE, Why.STORE_DOWN, Why.OUR_FAULT}
)
_OF_MONEY: Final = frozenset({NotifiedStatus.SUCCEEDED, NotifiedStatus.AUTHORIZED, NotifiedStatus.CHARGED_BACK})


def needs_person(notification: Notification) -> bool:
    """Tells whether somebody is to be called because of where a notification stands.

    Of one that contradicts what is known, unless that is called for by its operation; and of one that tells of money,
    was waited with for days, and could be proved neither way.
    """
    if notification.state is NotificationState.NEEDS_ATTENTION:
        return notification.why is not Why.OPERATION_OPEN
    is_unproved = notification.state is NotificationState.IGNORED and notification.why in _UNPROVED
    return is_unproved and notification.told in _OF_MONEY


class ExpectedAmount(msgspec.Struct, frozen=True, kw_only=True):
    """What was asked for under an order; ``amount_minor`` is None where no amount was named."""

    amount_minor: int | None
    currency: str


def differs(news: News, expected: ExpectedAmount) -> bool:
    """Tells whether the news are for another amount or currency than was asked for."""
    is_other_amount = expected.amount_minor is not None and news.amount_minor != expected.amount_minor
    return is_other_amount or news.currency != expected.currency


def payment_shown(news: News, payments: Sequence[Payment], owned: frozenset[str]) -> Payment | None:
    """Finds the payment that the news are of among those that the gateway shows; None where it doesn't show it.

    It must be equal in id, order, amount and currency, and belong to nothing else (``owned``). News without an id, as
    of some holds, are of the one payment that is equal otherwise.
    """
    fitting = [
        payment
        for payment in payments
        if payment.order_id == news.order_id
        and payment.amount_minor == news.amount_minor
        and payment.currency == news.currency
        and payment.payment_id not in owned
        and (news.payment_id is None or payment.payment_id == news.payment_id)
        and payment.status == PaymentStatus.RECEIVED
    ]
    return fitting[0] if len(fitting) == 1 else None
