"""The life of a checkout: states, events, and the one table that joins them.

Rules:

1. Every report on a checkout (a notification, a status inquiry, the customer's browser, the end of its time) becomes a
   ``CheckoutEvent`` and goes through ``advance``. Nothing else changes a state.
2. The states are ordered by how much they know: open, expired, cancelled, failed, notified, completed. Reports only
   ever lead upwards. So any order and any number of them lead to one result. The end of a hold is no report: the
   service knows it of its own, and it leads a notified checkout down to cancelled.
3. A browser that comes back completes nothing, and neither does the query of its address.
4. ``completed`` is final. Every other state may still become ``completed``: a customer may go back and pay after all.
5. A notification of an authorization proves nothing (``checkout_proof.is_authorized_by`` says why). It makes the
   checkout ``notified``, and only the capture of its token makes it ``completed``.

To be changed together: ``TRANSITIONS``, the partial indexes of the table ``checkouts`` in the store, and the diagram in
``docs/checkouts.md``, which a test compares with this table.
"""

from collections.abc import Callable, Sequence
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
"""How long a checkout that was opened stays open after its page has closed. The customer may still be on the gateway's
page, and pay there."""
INQUIRY_MS_MIN: Final = 3_000
PLAN_INQUIRY_MS_MIN: Final = 30_000
INQUIRY_MS_MAX: Final = 600_000
"""The limits of the pause between two inquiries that clients cause. The pause is a tenth of the checkout's age. An
inquiry about a plan may take three calls, one of them for all subscriptions of the merchant."""
INQUIRED_FOR_MS: Final = 24 * 3_600_000
"""How long a client's request causes an inquiry about a checkout that isn't completed. After that, only a notification
brings its outcome."""
SHOWN: Final = frozenset({CheckoutKind.PAYMENT, CheckoutKind.RECURRING})
"""The kinds that the gateway's records can prove. An approval or an authorization shows in a notification alone."""


class CheckoutState(StrEnum):
    """The state of a checkout."""

    OPEN = "open"
    """The customer may be on the page; the outcome isn't known yet."""
    NOTIFIED = "notified"
    """The gateway reported an authorization; nothing proves its amount, until it is captured."""
    COMPLETED = "completed"
    """The customer paid, approved or authorized what was requested."""
    FAILED = "failed"
    """The gateway reported a failure."""
    CANCELLED = "cancelled"
    """The customer turned back, or the page was closed."""
    EXPIRED = "expired"
    """Its time ended, and its outcome isn't known."""


class CheckoutEvent(StrEnum):
    """What can become known of a checkout."""

    COMPLETED = "completed"
    """Proved by what the gateway shows, by an approval's notification, or by the capture of an authorization."""
    NOTIFIED = "notified"
    """A notification reported an authorization."""
    FAILED = "failed"
    """A notification reported a failure."""
    CANCELLED = "cancelled"
    """A notification reported a cancellation."""
    ABANDONED = "turned_back"
    """The customer's browser came to the cancel page, which is only a hint."""
    CLOSED = "closed"
    """A client or an operator closed its page."""
    HOLD_ENDED = "hold_ended"
    """The hold that was reported of it was voided as a whole, or has lapsed: that closes its page too."""
    EXPIRED = "expired"
    """Its time has ended."""


_AFTER: Final = {
    CheckoutEvent.COMPLETED: CheckoutState.COMPLETED,
    CheckoutEvent.NOTIFIED: CheckoutState.NOTIFIED,
    CheckoutEvent.FAILED: CheckoutState.FAILED,
    CheckoutEvent.CANCELLED: CheckoutState.CANCELLED,
    CheckoutEvent.ABANDONED: CheckoutState.CANCELLED,
    CheckoutEvent.CLOSED: CheckoutState.CANCELLED,
    CheckoutEvent.EXPIRED: CheckoutState.EXPIRED,
}
_ORDER: Final = (
    CheckoutState.OPEN,
    CheckoutState.EXPIRED,
    CheckoutState.CANCELLED,
    CheckoutState.FAILED,
    CheckoutState.NOTIFIED,
    CheckoutState.COMPLETED,
)

TRANSITIONS: Final[dict[tuple[CheckoutState, CheckoutEvent], CheckoutState]] = {
    (state, event): after
    for state in _ORDER
    for event, after in _AFTER.items()
    if _ORDER.index(after) > _ORDER.index(state)
} | {(CheckoutState.NOTIFIED, CheckoutEvent.HOLD_ENDED): CheckoutState.CANCELLED}
"""A step that the table lacks brings nothing new, and changes nothing."""

_CLOSING: Final = frozenset({CheckoutEvent.CLOSED, CheckoutEvent.HOLD_ENDED})

HOLDING_ORDER: Final = frozenset({CheckoutState.OPEN, CheckoutState.NOTIFIED, CheckoutState.COMPLETED})
"""The checkout guards its order: no other checkout may be opened for it."""

PAID_OR_HELD: Final = frozenset({CheckoutState.NOTIFIED, CheckoutState.COMPLETED})
"""The customer paid, or let money be held: such a checkout can't be closed before its hold has ended."""

STATE_SENTENCES: Final[dict[CheckoutState, str]] = {
    CheckoutState.OPEN: "The customer has not finished it yet, as far as the service knows.",
    CheckoutState.NOTIFIED: (
        "The gateway reported a hold, and nothing proves its amount: only its capture does. Capture it before you hand"
        " anything over."
    ),
    CheckoutState.COMPLETED: "The customer paid, approved or authorized what was asked.",
    CheckoutState.FAILED: "The gateway said that it failed; the customer may still try again on the gateway's page.",
    CheckoutState.CANCELLED: "The customer or the gateway cancelled it; the customer may still go on and complete it.",
    CheckoutState.EXPIRED: "Its time ended, and nothing proves to the service that it was paid.",
}
CLOSED_SENTENCE: Final = (
    "Its page was closed, and leads no customer on any more; who has its form already may still complete it."
)


class CheckoutFilter(msgspec.Struct, frozen=True, kw_only=True):
    """Selects the checkouts to list: those that are equal in every field that is given."""

    account: str | None = None
    order_id: str | None = None
    state: CheckoutState | None = None


class Checkout(msgspec.Struct, frozen=True, kw_only=True):
    """One request to a customer on the gateway's page, with its present state; its sealed ``Details`` are beside it.

    Attributes:
        id: ``chk_…``.
        account: the configured name of the account under which it was requested.
        merchant: the merchant account at the gateway.
        principal: the principal that requested it.
        kind: what the customer is asked for.
        state: its state.
        version: starts at 1, one more with every change of the state.
        order_id: of the caller's order.
        guard: the order while this checkout holds it, else None.
        amount_minor, currency: as requested; the amount is None for a preapproval that charges nothing now.
        first_minor: the amount of the first installment of a recurring payment; else the amount.
        secret_hash: SHA-256 of the secret in the addresses of its pages, in hex digits.
        key_hash: the keyed hash of the client's Idempotency-Key; None where it gave none.
        request_id: of the request that opened it.
        reference_hash: the keyed hash of the client's own name for the customer, which lies sealed beside the row; None
            where it gave none.
        bound_customer_id: the customer whose client token opened it; None where a backend's key did.
        payment_id, subscription_id, customer_id: its results.
        created_at_ms, updated_at_ms: milliseconds since 1970, UTC.
        expires_at_ms: from then on its page sends no customer to the gateway.
        opened_at_ms: when its page was first shown; None where it wasn't.
        ends_at_ms: when it expires, unless its outcome becomes known.
        inquire_at_ms: from then on a client's request causes the next status inquiry.
        closed_at_ms: when its page was closed, or the end of its hold did so; None where something else ended it.
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
    key_hash: str | None
    request_id: str
    reference_hash: str | None
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
    closed_at_ms: int | None = None

    @property
    def is_open(self) -> bool:
        """True while its outcome isn't known."""
        return self.state is CheckoutState.OPEN

    @property
    def is_closed(self) -> bool:
        """True where it is cancelled because its page was closed, by somebody or by the end of its hold."""
        return self.state is CheckoutState.CANCELLED and self.closed_at_ms is not None

    @property
    def reason(self) -> str | None:
        """Why it is in its state, for programs: ``closed``; None where the state says all."""
        return CheckoutEvent.CLOSED.value if self.is_closed else None

    @property
    def sentence(self) -> str:
        """What its state means, for people."""
        return CLOSED_SENTENCE if self.is_closed else STATE_SENTENCES[self.state]

    def takes_customers(self, now_ms: int) -> bool:
        """True while its page sends a customer to the gateway."""
        return self.is_open and now_ms < self.expires_at_ms

    def is_overdue(self, now_ms: int) -> bool:
        """True where it has no outcome, and its time is over, whether or not it is leased to be ended."""
        return self.is_open and self.expires_at_ms + LEFT_OPEN_MS <= now_ms


class Details(msgspec.Struct, frozen=True, kw_only=True):
    """The sealed part of a checkout.

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
    """Tells whether a plan was requested that begins after ``day``, so that nothing of it is paid on that day."""
    plan = None if details is None else details.asked.plan
    return plan is not None and plan.starts_on is not None and plan.starts_on > day


class Result(msgspec.Struct, frozen=True, kw_only=True):
    """The results of a checkout beside its state; None for what isn't known."""

    payment_id: str | None = None
    subscription_id: str | None = None
    customer_id: str | None = None


class CheckoutOutcome(msgspec.Struct, frozen=True, kw_only=True):
    """A report on the checkout of an order; ``outcome`` is completed, notified, failed or cancelled.

    ``amount_minor`` and ``currency`` are as reported, None where the report has none. ``kind`` is the kind of checkout
    that such a report is about, None where it may be any.
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
        """The event of this outcome; raises ValueError for ``open`` and ``expired``, which no report can have."""
        if self.outcome in {CheckoutState.OPEN, CheckoutState.EXPIRED}:
            raise ValueError(f"no report makes a checkout {self.outcome}")
        return CheckoutEvent(self.outcome.value)

    @property
    def result(self) -> Result:
        """The results in this report."""
        return Result(payment_id=self.payment_id, subscription_id=self.subscription_id, customer_id=self.customer_id)


def advance(checkout: Checkout, event: CheckoutEvent, *, at_ms: int, result: Result | None = None) -> Checkout | None:
    """Gives the checkout after an event; None where the event changes nothing.

    COMPLETED fills in results that weren't known, even where the checkout is completed already. Known results stay.
    """
    state = TRANSITIONS.get((checkout.state, event))
    is_completing = event is CheckoutEvent.COMPLETED
    known = Result(
        payment_id=checkout.payment_id, subscription_id=checkout.subscription_id, customer_id=checkout.customer_id
    )
    merged = _filled(known, result) if result is not None and is_completing else known
    if state is None and merged == known:
        return None
    after = checkout.state if state is None else state
    return msgspec.structs.replace(
        checkout,
        state=after,
        version=checkout.version + 1,
        guard=checkout.order_id if after in HOLDING_ORDER else None,
        payment_id=merged.payment_id,
        subscription_id=merged.subscription_id,
        customer_id=merged.customer_id,
        updated_at_ms=at_ms,
        closed_at_ms=at_ms if event in _CLOSING else checkout.closed_at_ms,
    )


def _filled(known: Result, new: Result) -> Result:
    if None not in (known.subscription_id, new.subscription_id) and known.subscription_id != new.subscription_id:
        return known  # a payment belongs to one plan
    return Result(
        payment_id=known.payment_id or new.payment_id,
        subscription_id=known.subscription_id or new.subscription_id,
        customer_id=known.customer_id or new.customer_id,
    )


def fits(checkout: Checkout, amount_minor: int | None, currency: str | None) -> bool:
    """Tells whether reported money is what the customer was asked for; None for what the report doesn't name.

    Only the currency is compared for a plan, whose first payment, later payments and trial have different amounts. It
    is so too for a preapproval that charges nothing, since the gateway reports that with an amount of its own.
    """
    if currency is not None and currency != checkout.currency:
        return False
    if amount_minor is None or checkout.amount_minor is None or checkout.kind is CheckoutKind.RECURRING:
        return True
    return amount_minor == checkout.amount_minor


def fitting_checkouts(checkouts: Sequence[Checkout], report: CheckoutOutcome) -> list[Checkout]:
    """Gives the checkouts of an order that a report may be about, the likeliest one first.

    ``checkouts`` begins with the one that holds the order. A second checkout may be for another amount or of another
    kind, and open while the customer is still on the gateway's page of the first. A checkout that has the reported
    payment or subscription already is the only one. Otherwise it may be any of the reported kind; or of any kind, where
    none is of that.
    """
    fitting = [each for each in checkouts if fits(each, report.amount_minor, report.currency)]
    for checkout in fitting:
        is_of_payment = report.payment_id is not None and checkout.payment_id == report.payment_id
        is_of_plan = report.subscription_id is not None and checkout.subscription_id == report.subscription_id
        if is_of_payment or is_of_plan:
            return [checkout]
    return [each for each in fitting if each.kind is report.kind] or fitting


def checkout_of(checkouts: Sequence[Checkout], report: CheckoutOutcome) -> Checkout | None:
    """Chooses the likeliest of the checkouts that a report may be about; None where there is none."""
    return next(iter(fitting_checkouts(checkouts, report)), None)


def event_of(checkout: Checkout) -> OutgoingEvent:
    """Gives the event of a checkout that has just entered its state."""
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
            "reason": checkout.reason,
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
    """Gives the time from which a client's request causes the next inquiry."""
    age_ms = now_ms - checkout.created_at_ms
    least_ms = PLAN_INQUIRY_MS_MIN if checkout.kind is CheckoutKind.RECURRING else INQUIRY_MS_MIN
    return now_ms + min(max(age_ms // 10, least_ms), INQUIRY_MS_MAX)


def is_inquired(checkout: Checkout, now_ms: int) -> bool:
    """Tells whether a client's request causes a status inquiry now: for a recent checkout that may have been paid."""
    return (
        checkout.kind in SHOWN
        and checkout.state is not CheckoutState.COMPLETED
        and checkout.inquire_at_ms <= now_ms < checkout.created_at_ms + INQUIRED_FOR_MS
    )


def is_within(checkout: Checkout, bound: Bound | None, hash_of: Callable[[str], str]) -> bool:
    """Tells whether a credential may see a checkout of its principal; an unbound credential (None) may see all.

    Order and customer must both fit, where a credential is bound to both. A checkout that a backend opened may have no
    customer yet. Then the order alone decides. ``hash_of`` gives the hash by which a reference is stored.
    """
    if bound is None:
        return True
    if bound.order_id is not None and bound.order_id != checkout.order_id:
        return False
    if bound.customer_id is None and bound.reference is None:
        return True
    is_of_customer = bound.customer_id is not None and bound.customer_id in {
        checkout.bound_customer_id,
        checkout.customer_id,
    }
    is_of_reference = bound.reference is not None and hash_of(bound.reference) == checkout.reference_hash
    has_no_customer = checkout.bound_customer_id is None and checkout.reference_hash is None
    return is_of_customer or is_of_reference or (has_no_customer and bound.order_id is not None)
