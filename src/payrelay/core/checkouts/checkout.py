"""The life of a checkout: states, events, and the one table that joins them.

Rules:

1. Whatever brings news of a checkout (a notification, a look at the gateway, the customer's browser, time) becomes an
   ``Event`` and goes through ``advance``. Nobody else changes a state.
2. The states are in an order of how much they know: open, expired, cancelled, failed, completed. News only ever lead
   upwards, so that any order and any number of them comes to the same end.
3. That a browser came back, or what stood in its address, completes nothing.
4. ``completed`` is final. Every other state may still become it: a customer may go back and pay after all.

To be changed together: ``TRANSITIONS``, the partial indexes of the table ``checkouts`` in the store, and the diagram in
``docs/checkouts.md``, which a test compares with this table.
"""

from collections.abc import Sequence
from datetime import date
from enum import StrEnum
from typing import Final

import msgspec

from payrelay.core.access.credential import Bound
from payrelay.core.checkouts.hosted_payment import CheckoutKind, HostedPayment
from payrelay.core.events.event import OutgoingEvent, event_id
from payrelay.core.money import decimal_text

__all__ = ["Checkout", "CheckoutKind", "CheckoutOutcome", "CheckoutState"]

LEFT_OPEN_MS: Final = 30 * 60_000
"""How long after its page has shut a checkout that was opened may still be paid without anybody being surprised: the
customer stands on the gateway's page by then."""
INQUIRY_MS_MIN: Final = 3_000
PLAN_INQUIRY_MS_MIN: Final = 30_000
INQUIRY_MS_MAX: Final = 600_000
"""Between two looks at the gateway because somebody asks: a tenth of the checkout's age, within these. For a plan the
gateway may be asked three times, once for all the subscriptions of the merchant."""
INQUIRED_FOR_MS: Final = 24 * 3_600_000
"""How long a question makes us look at what is not completed; later only a notification brings news."""
SHOWN: Final = frozenset({CheckoutKind.PAYMENT, CheckoutKind.RECURRING})
"""What the gateway's records can prove; an approval and a hold are told by the gateway, and shown by nothing."""


class CheckoutState(StrEnum):
    """Where a checkout stands."""

    OPEN = "open"
    """The customer may be at it; nothing is known yet."""
    COMPLETED = "completed"
    """Paid, approved or held, as was asked."""
    FAILED = "failed"
    """The gateway said that it failed."""
    CANCELLED = "cancelled"
    """The customer turned back."""
    EXPIRED = "expired"
    """Its time ended, and nothing is known of it."""


class CheckoutEvent(StrEnum):
    """What can become known of a checkout."""

    COMPLETED = "completed"
    """Proved by a notification, or by what the gateway shows."""
    FAILED = "failed"
    """A notification said so."""
    CANCELLED = "cancelled"
    """A notification said so."""
    ABANDONED = "turned_back"
    """The customer's browser came to the page for those who cancel: a hint, and no more."""
    EXPIRED = "expired"
    """Its time has ended."""


_AFTER: Final = {
    CheckoutEvent.COMPLETED: CheckoutState.COMPLETED,
    CheckoutEvent.FAILED: CheckoutState.FAILED,
    CheckoutEvent.CANCELLED: CheckoutState.CANCELLED,
    CheckoutEvent.ABANDONED: CheckoutState.CANCELLED,
    CheckoutEvent.EXPIRED: CheckoutState.EXPIRED,
}
_ORDER: Final = (
    CheckoutState.OPEN,
    CheckoutState.EXPIRED,
    CheckoutState.CANCELLED,
    CheckoutState.FAILED,
    CheckoutState.COMPLETED,
)

TRANSITIONS: Final[dict[tuple[CheckoutState, CheckoutEvent], CheckoutState]] = {
    (state, event): after
    for state in _ORDER
    for event, after in _AFTER.items()
    if _ORDER.index(after) > _ORDER.index(state)
}
"""What the table lacks says nothing new, and changes nothing."""

HOLDING_ORDER: Final = frozenset({CheckoutState.OPEN, CheckoutState.COMPLETED})
"""The order is taken: no other checkout may be opened for it."""

STATE_SENTENCES: Final[dict[CheckoutState, str]] = {
    CheckoutState.OPEN: "The customer has not finished it yet, as far as the service knows.",
    CheckoutState.COMPLETED: "The customer paid, approved or authorized what was asked.",
    CheckoutState.FAILED: "The gateway said that it failed; the customer may still try again on the gateway's page.",
    CheckoutState.CANCELLED: "The customer or the gateway cancelled it; the customer may still go on and complete it.",
    CheckoutState.EXPIRED: "Its time ended, and the service knows of no payment.",
}


class Checkout(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that a customer is asked for on the gateway's page, as it stands now; the rest lies sealed beside it.

    Attributes:
        id: ``chk_…``.
        account: the configured name under which it was asked for.
        merchant: the merchant account at the gateway.
        principal: the named key that asked.
        kind: what the customer is asked for.
        state: where it stands.
        version: starts at 1, one more with every change of the state.
        order_id: of the caller's order.
        guard: the order while this checkout holds it, else None.
        amount_minor, currency: asked; None for a preapproval that takes nothing now.
        first_minor: of a recurring payment, what its first installment comes to; else the amount.
        secret_hash: SHA-256 of the secret in the addresses of its pages, in hex digits.
        idempotency_key: as the client gave it; None where it gave none.
        request_id: of the request that opened it.
        customer_reference: the caller's own name for the person; None where it gave none.
        bound_customer_id: the customer whose client token opened it; None where it was a server's key.
        payment_id, subscription_id, customer_id: what came of it.
        created_at_ms, updated_at_ms: milliseconds since 1970, UTC.
        expires_at_ms: from then on its page sends nobody to the gateway.
        opened_at_ms: when its page was first shown; None where it wasn't.
        ends_at_ms: when it expires unless news come.
        inquire_at_ms: somebody's question makes us look at the gateway from then on.
    """

    id: str
    account: str
    merchant: str
    principal: str
    kind: CheckoutKind
    state: CheckoutState
    version: int
    order_id: str
    guard: str | None
    amount_minor: int | None
    first_minor: int | None
    currency: str
    secret_hash: str
    idempotency_key: str | None
    request_id: str
    customer_reference: str | None
    bound_customer_id: str | None
    payment_id: str | None
    subscription_id: str | None
    customer_id: str | None
    created_at_ms: int
    updated_at_ms: int
    expires_at_ms: int
    opened_at_ms: int | None
    ends_at_ms: int
    inquire_at_ms: int

    @property
    def is_open(self) -> bool:
        """True while nothing is known of it."""
        return self.state is CheckoutState.OPEN

    def takes_customers(self, now_ms: int) -> bool:
        """True while its page sends a customer to the gateway."""
        return self.is_open and now_ms < self.expires_at_ms


class Details(msgspec.Struct, frozen=True, kw_only=True):
    """What is sealed of a checkout.

    Attributes:
        secret: in the addresses of its pages.
        asked: what the customer is asked for, with the customer's data.
        return_to, cancel_to: the app's own links; None where it has none.
    """

    secret: str
    asked: HostedPayment
    return_to: str | None = None
    cancel_to: str | None = None

    def __repr__(self) -> str:
        return "Details(********)"


def begins_after(details: Details | None, day: date) -> bool:
    """Tells whether a plan was asked for that begins after a day of the gateway's: by then nothing of it is paid."""
    plan = None if details is None else details.asked.plan
    return plan is not None and plan.starts_on is not None and plan.starts_on > day


class Result(msgspec.Struct, frozen=True, kw_only=True):
    """What came of a checkout, beside its state; None for what isn't known."""

    payment_id: str | None = None
    subscription_id: str | None = None
    customer_id: str | None = None


class CheckoutOutcome(msgspec.Struct, frozen=True, kw_only=True):
    """News of an order that a customer was asked for; ``outcome`` is completed, failed or cancelled.

    ``amount_minor`` and ``currency`` are those of the news, None where they have none; ``kind`` is what such news are
    told of, None where that can't be said.
    """

    account: str
    merchant: str
    order_id: str
    outcome: CheckoutState
    payment_id: str | None = None
    subscription_id: str | None = None
    customer_id: str | None = None
    amount_minor: int | None = None
    currency: str | None = None
    kind: CheckoutKind | None = None

    @property
    def event(self) -> CheckoutEvent:
        """What that is for the checkout; raises ValueError for an outcome that nobody can tell of."""
        if self.outcome in {CheckoutState.OPEN, CheckoutState.EXPIRED}:
            raise ValueError(f"no news make a checkout {self.outcome}")
        return CheckoutEvent(self.outcome.value)

    @property
    def result(self) -> Result:
        """What came of it."""
        return Result(payment_id=self.payment_id, subscription_id=self.subscription_id, customer_id=self.customer_id)


def advance(checkout: Checkout, event: CheckoutEvent, *, at_ms: int, result: Result | None = None) -> Checkout | None:
    """Gives the checkout as news leave it; None where they say nothing new.

    What came of it is filled in where it wasn't known, also of one that is completed already; what is known stays.
    """
    state = TRANSITIONS.get((checkout.state, event))
    is_completing = event is CheckoutEvent.COMPLETED
    known = Result(
        payment_id=checkout.payment_id, subscription_id=checkout.subscription_id, customer_id=checkout.customer_id
    )
    told = _filled(known, result) if result is not None and is_completing else known
    if state is None and told == known:
        return None
    after = checkout.state if state is None else state
    return msgspec.structs.replace(
        checkout,
        state=after,
        version=checkout.version + 1,
        guard=checkout.order_id if after in HOLDING_ORDER else None,
        payment_id=told.payment_id,
        subscription_id=told.subscription_id,
        customer_id=told.customer_id,
        updated_at_ms=at_ms,
    )


def _filled(known: Result, content: Result) -> Result:
    if (
        None not in (known.subscription_id, content.subscription_id)
        and known.subscription_id != content.subscription_id
    ):
        return known  # the payment of one plan is none of another's
    return Result(
        payment_id=known.payment_id or content.payment_id,
        subscription_id=known.subscription_id or content.subscription_id,
        customer_id=known.customer_id or content.customer_id,
    )


def fits(checkout: Checkout, amount_minor: int | None, currency: str | None) -> bool:
    """Tells whether money that was seen is what the customer was asked for; None where nothing was said of it.

    A plan's first payment, a later one and a trial's are of different amounts, and a preapproval that takes nothing is
    told with an amount of the gateway's own: there the currency alone is compared.
    """
    if currency is not None and currency != checkout.currency:
        return False
    if amount_minor is None or checkout.amount_minor is None or checkout.kind is CheckoutKind.RECURRING:
        return True
    return amount_minor == checkout.amount_minor


def addressee(checkouts: Sequence[Checkout], content: CheckoutOutcome) -> Checkout | None:
    """Chooses whom news are of among the checkouts of an order, the one that holds it first; None where none fits.

    An order may have been asked for again, for another amount or as another kind, while the customer still stood on
    the gateway's page of the first. Whoever has that payment or subscription already comes first, then those of the
    kind, then who holds the order.
    """
    fitting = [each for each in checkouts if fits(each, content.amount_minor, content.currency)]
    for checkout in fitting:
        is_of_payment = content.payment_id is not None and checkout.payment_id == content.payment_id
        is_of_plan = content.subscription_id is not None and checkout.subscription_id == content.subscription_id
        if is_of_payment or is_of_plan:
            return checkout
    of_kind = [each for each in fitting if each.kind is content.kind]
    return next(iter(of_kind or fitting), None)


def event_of(checkout: Checkout) -> OutgoingEvent:
    """Gives what is told of a checkout that has just come to its state."""
    return OutgoingEvent(
        id=event_id(checkout.updated_at_ms, f"{checkout.id}/{checkout.version}"),
        type=f"checkout.{checkout.state.value}",
        account=checkout.account,
        merchant=checkout.merchant,
        principal=checkout.principal,
        subject=f"checkout:{checkout.id}",
        at_ms=checkout.updated_at_ms,
        data={
            "checkout_id": checkout.id,
            "kind": checkout.kind.value,
            "state": checkout.state.value,
            "version": checkout.version,
            "order_id": checkout.order_id,
            "amount": None if checkout.amount_minor is None else decimal_text(checkout.amount_minor),
            "currency": checkout.currency,
            "payment_id": checkout.payment_id,
            "subscription_id": checkout.subscription_id,
            "customer_id": checkout.customer_id,
        },
    )


def next_inquiry_ms(checkout: Checkout, now_ms: int) -> int:
    """Gives from when on somebody's next question makes us look again."""
    age_ms = now_ms - checkout.created_at_ms
    least_ms = PLAN_INQUIRY_MS_MIN if checkout.kind is CheckoutKind.RECURRING else INQUIRY_MS_MIN
    return now_ms + min(max(age_ms // 10, least_ms), INQUIRY_MS_MAX)


def is_inquired(checkout: Checkout, now_ms: int) -> bool:
    """Tells whether a question makes us look at the gateway now: for what may have been paid, of late."""
    return (
        checkout.kind in SHOWN
        and checkout.state is not CheckoutState.COMPLETED
        and checkout.inquire_at_ms <= now_ms < checkout.created_at_ms + INQUIRED_FOR_MS
    )


def is_within(checkout: Checkout, bound: Bound) -> bool:
    """Tells whether a narrow credential may see a checkout: of its order and of its customer, where it has both.

    A checkout that a server opened is of no customer yet: there the order says enough.
    """
    if bound.order_id is not None and bound.order_id != checkout.order_id:
        return False
    if bound.customer_id is None and bound.reference is None:
        return True
    is_of_customer = bound.customer_id is not None and bound.customer_id in {
        checkout.bound_customer_id,
        checkout.customer_id,
    }
    is_of_reference = bound.reference is not None and bound.reference == checkout.customer_reference
    is_of_nobody = checkout.bound_customer_id is None and checkout.customer_reference is None
    return is_of_customer or is_of_reference or (is_of_nobody and bound.order_id is not None)
