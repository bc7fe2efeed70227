"""What counts as proof that an operation took effect, or that it took none.

Rules:

1. Only what a complete answer of the gateway shows is an observation. An inquiry that failed proves nothing, and is
   not counted.
2. The gateway says "No payments found" both for *not yet* and for *never*. That proves an absence only after enough
   observations over a long enough time. Each of them needs a control query, which shows that the search works.
3. A payment that fits together with others, or not in every part, is for an operator. So is an effect that the gateway
   never shows.
4. A payment belongs to one operation. It proves nothing for any other operation.
5. A payment that a customer may have made with a form proves no charge and no capture: a form can be paid again.

To be changed together: the tables here, ``docs/resolution.md``, and the table of operation and fault in the tests.
"""

from collections.abc import Sequence
from enum import StrEnum
from typing import Final

import msgspec

from payrelay.core.calls import Charge
from payrelay.core.outcomes import Evidence
from payrelay.core.payments.operation import INQUIRED, Event, JournalEntry, Operation, State
from payrelay.core.payments.payment import Payment, PaymentStatus
from payrelay.core.payments.schedules import DAY_MS, INQUIRIES_MS

TOLERANCE_MS: Final = 300_000
"""How far the gateway's clock may be from the service's clock, on both sides."""
RETRY_WITHIN_MS: Final = 600_000
"""How far from its sending the payment of a retry may be dated. The gateway also retries by itself, once a day."""
INQUIRIES_MIN: Final = 6
"""How many observations without a payment are needed to prove that there is none."""
PROVED_ABSENT_AFTER_MS: Final = INQUIRIES_MS[-1]
"""The least time from the sending to the last of these observations: 96 hours."""
PAYMENTS_COMPARED_MAX: Final = 50
"""Payment ids that are stored as evidence of one inquiry; an order has a handful."""
GIVEN_UP_AFTER_MS: Final = 7 * DAY_MS
"""How long the service inquires about an operation without any observation, before it calls an operator."""
STILL_UNCLEAR_AFTER_MS: Final = DAY_MS // 2
"""How long a payment may stay ambiguous between a failed operation and a competing one, before an operator decides."""
AUTHORIZATION_LAPSES_MS: Final = 7 * DAY_MS
"""After this time the gateway lets an authorization lapse."""

REFUND_STATUSES: Final = frozenset(
    {PaymentStatus.REFUND_REQUESTED, PaymentStatus.REFUND_PROCESSING, PaymentStatus.REFUNDED}
)


class MatchResult(StrEnum):
    """The result of an observation: how what the gateway shows fits the operation."""

    NOTHING = "nothing"
    """There is no payment."""
    ONLY_OTHERS = "only_others"
    """There are payments, but all belong to other operations or have other amounts."""
    ONE_FITS = "one_fits"
    """Exactly one payment fits in every part."""
    SEVERAL_FIT = "several_fit"
    ONE_RESEMBLES = "one_resembles"
    """A payment of the same amount that doesn't fit otherwise."""
    MAY_BE_ANOTHERS = "may_be_anothers"
    """One payment fits, but it may belong to another operation on the same order or subscription."""
    MAY_BE_OF_A_FORM = "may_be_of_a_form"
    """One payment fits, but a customer may have made it with a form for the gateway's page."""
    REFUND_SHOWN = "refund_shown"
    """The payment's record shows a refund."""
    STILL_RECEIVED = "still_received"
    """The payment's record shows no refund."""
    OTHERWISE = "otherwise"
    """The payment's record shows something else."""
    ALREADY_DONE = "already_done"
    """The gateway answered that it was done already."""
    ALREADY_UNDONE = "already_undone"
    """The gateway answered that the authorization does not exist or was voided."""
    NOTIFIED = "notified"
    """The gateway reported the authorization in a notification, with its authorization token."""
    TEXT_OF_ANOTHER = "text_of_another"
    """The gateway notified of the authorization, and the signature also fits another form or call."""
    SIGNED_ELSEWHERE = "signed_elsewhere"
    """The gateway notified of the authorization, and the signature may be of a form that the service doesn't know."""
    UNSEEN = "unseen"
    """Every inquiry failed for so long that an operator must look."""
    NOTHING_TO_SEE = "nothing_to_see"
    """The gateway has no way to show the effect."""


class Control(StrEnum):
    """The result of the control query beside an observation."""

    FOUND = "found"
    """The search found an order that is known to be paid, so the search works."""
    NOT_FOUND = "not_found"
    """The search missed that order, or failed. What such a search doesn't show is no proof of absence."""
    NONE_KNOWN = "none_known"
    """No order is known to be paid on this merchant account."""


ABSENT: Final = frozenset({MatchResult.NOTHING, MatchResult.ONLY_OTHERS, MatchResult.STILL_RECEIVED})
"""Results that are evidence against the effect."""
CONTRADICTORY: Final = frozenset({MatchResult.SEVERAL_FIT, MatchResult.ONE_RESEMBLES, MatchResult.OTHERWISE})
"""Results that only an operator can interpret."""
CONTESTED: Final = frozenset({MatchResult.MAY_BE_ANOTHERS, MatchResult.MAY_BE_OF_A_FORM})
"""One payment fits, and may be something else's, which may show in time."""


class SendingWindow(msgspec.Struct, frozen=True, kw_only=True):
    """When an operation can have reached the gateway; milliseconds since 1970."""

    began_ms: int
    ended_ms: int


class Match(msgspec.Struct, frozen=True, kw_only=True):
    """How one observation matches an operation; ``payments_compared`` has the ids of all payments that were compared.

    ``payment`` would prove the effect. With ONE_RESEMBLES, it fits but for being refunded or charged back since.
    """

    seen: MatchResult
    payment: Payment | None = None
    payments_compared: tuple[str, ...] = ()


def sending_window_of(history: Sequence[JournalEntry], operation: Operation, timeout_ms: int) -> SendingWindow:
    """Gives when an operation can have reached the gateway, from the intent to send it to the end of the time-out."""
    began_ms = next((entry.at_ms for entry in history if entry.state is State.SENDING), operation.created_at_ms)
    return SendingWindow(began_ms=began_ms, ended_ms=operation.send_by_ms + timeout_ms)


def shown_before(history: Sequence[JournalEntry]) -> Evidence:
    """Gives what the gateway showed before the sending; of a held operation, before an operator had it sent."""
    return next((entry.evidence for entry in history if entry.event is Event.DECIDED_SEND), history[0].evidence)


def with_plan(shown: Evidence, payments: Sequence[Payment]) -> Evidence:
    """Adds the payments that a subscription has before a retry, and the order that all of them name."""
    orders = {payment.order_id for payment in payments}
    return msgspec.structs.replace(
        shown, payment_ids=_ids_of(payments), order_id=orders.pop() if len(orders) == 1 else None
    )


def open_since_ms(history: Sequence[JournalEntry], operation: Operation) -> int:
    """Gives when an operation first became unknown or pending; its schedule of status inquiries starts there."""
    return next((entry.at_ms for entry in history if entry.state in INQUIRED), operation.created_at_ms)


def match_for_charge(
    call: Charge,
    operation: Operation,
    window: SendingWindow,
    payments: Sequence[Payment],
    owned_by_others: frozenset[str],
    *,
    has_competing: bool,
) -> Match:
    """Judges the payments of a charge's order.

    ``owned_by_others`` has the ids of payments that belong to other operations. ``has_competing`` is true where another
    operation on the order is open, and may turn out to own the payment that was found.
    """
    ids = _ids_of(payments)
    own = [
        payment
        for payment in payments
        if payment.payment_id not in owned_by_others and payment.amount_minor == call.amount_minor
    ]
    matching = [payment for payment in own if _matches_charge(payment, call, operation, window)]
    # The search doesn't show the authorization token that a capture needs. So an authorization is for an operator.
    fitting = [payment for payment in matching if payment.status == PaymentStatus.RECEIVED and not call.authorize]
    if len(fitting) > 1:
        return Match(seen=MatchResult.SEVERAL_FIT, payments_compared=ids)
    if fitting:
        return _one_fits(fitting[0], ids, has_competing=has_competing)
    if own:
        payment = matching[0] if len(matching) == 1 else None
        return Match(seen=MatchResult.ONE_RESEMBLES, payment=payment, payments_compared=ids)
    return _none_fits(ids)


def _ids_of(payments: Sequence[Payment]) -> tuple[str, ...]:
    return tuple(payment.payment_id for payment in payments)


def _one_fits(payment: Payment, ids: tuple[str, ...], *, has_competing: bool) -> Match:
    seen = MatchResult.MAY_BE_ANOTHERS if has_competing else MatchResult.ONE_FITS
    return Match(seen=seen, payment=payment, payments_compared=ids)


def _none_fits(ids: tuple[str, ...]) -> Match:
    return Match(seen=MatchResult.ONLY_OTHERS if ids else MatchResult.NOTHING, payments_compared=ids)


def _matches_charge(payment: Payment, call: Charge, operation: Operation, window: SendingWindow) -> bool:
    is_named = operation.payment_id is None or operation.payment_id == payment.payment_id
    is_dated = (
        payment.at_ms is not None and window.began_ms - TOLERANCE_MS <= payment.at_ms <= window.ended_ms + TOLERANCE_MS
    )
    return (
        is_named
        and is_dated
        and payment.order_id == call.order_id
        and payment.currency == call.currency
        and payment.description == call.items
    )


def match_for_retry(
    before: Evidence,
    window: SendingWindow,
    payments: Sequence[Payment],
    owned_by_others: frozenset[str],
    *,
    has_competing: bool,
) -> Match:
    """Judges the payments of a subscription against those that it had before the retry was sent, as ``before`` says.

    All payments of a subscription are of one order, so that a new one of another order is no proof.
    ``has_competing`` is true where another retry of the subscription, sent at about the same time, may have made the
    new payment. The gateway's answer to a retry names no payment, and a payment may show late.
    """
    ids = _ids_of(payments)
    known = owned_by_others.union(before.payment_ids)
    new = [payment for payment in payments if payment.payment_id not in known]
    if not new:
        return _none_fits(ids)
    if len(new) > 1:
        return Match(seen=MatchResult.SEVERAL_FIT, payments_compared=ids)
    at_ms = new[0].at_ms
    is_dated = at_ms is not None and abs(at_ms - window.began_ms) <= RETRY_WITHIN_MS
    is_matching = is_dated and before.order_id in {None, new[0].order_id}
    if is_matching and new[0].status == PaymentStatus.RECEIVED:
        return _one_fits(new[0], ids, has_competing=has_competing)
    return Match(seen=MatchResult.ONE_RESEMBLES, payment=new[0] if is_matching else None, payments_compared=ids)


def match_for_refund(payment_id: str, payments: Sequence[Payment], *, is_refund_ours: bool) -> Match:
    """Judges the record of a payment that was to be refunded in whole.

    ``is_refund_ours`` is true where the service saw the payment as received before the sending, and knows no other
    refund of it. A refund that shows must then be this one.
    """
    ids = _ids_of(payments)
    record = next((payment for payment in payments if payment.payment_id == payment_id), None)
    if record is None:
        return Match(seen=MatchResult.NOTHING, payments_compared=ids)
    if record.status == PaymentStatus.RECEIVED:
        return Match(seen=MatchResult.STILL_RECEIVED, payments_compared=ids)
    if record.status in REFUND_STATUSES and is_refund_ours:
        return Match(seen=MatchResult.REFUND_SHOWN, payment=record, payments_compared=ids)
    return Match(seen=MatchResult.OTHERWISE, payments_compared=ids)


def match_for_capture(
    amount_minor: int, payments: Sequence[Payment], owned_by_others: frozenset[str], *, has_competing: bool
) -> Match:
    """Judges the payments of an authorization's order after the gateway answered that it is captured already.

    ``has_competing`` is true where another operation on the order may own the payment that was found.
    """
    ids = _ids_of(payments)
    own = [payment for payment in payments if payment.payment_id not in owned_by_others]
    if len(own) > 1:
        return Match(seen=MatchResult.SEVERAL_FIT, payments_compared=ids)
    if not own:
        return _none_fits(ids)
    if own[0].amount_minor == amount_minor and own[0].status == PaymentStatus.RECEIVED:
        return _one_fits(own[0], ids, has_competing=has_competing)
    return Match(seen=MatchResult.OTHERWISE, payments_compared=ids)


def ruling(
    match: Match, control: Control | None, history: Sequence[JournalEntry], window: SendingWindow, now_ms: int
) -> Event:
    """Decides which event an observation is for an open operation; INQUIRED_ABOUT where it resolves nothing.

    ``control`` is needed for a match in ABSENT. For a refund, the record that still shows is the control.
    """
    if match.seen in {MatchResult.ONE_FITS, MatchResult.REFUND_SHOWN}:
        return Event.PROVED
    if match.seen in CONTRADICTORY:
        return Event.UNCLEAR
    if now_ms - window.began_ms < PROVED_ABSENT_AFTER_MS:
        return Event.INQUIRED_ABOUT
    if match.seen in CONTESTED:
        return Event.UNCLEAR
    if control is Control.NONE_KNOWN:
        return Event.UNCLEAR
    if control is Control.NOT_FOUND and now_ms - window.began_ms >= GIVEN_UP_AFTER_MS:
        return Event.UNCLEAR
    if control is not Control.FOUND:
        return Event.INQUIRED_ABOUT
    observations = 1 + sum(_is_evidence_against(entry) for entry in history)
    return Event.DISPROVED if observations >= INQUIRIES_MIN else Event.INQUIRED_ABOUT


def ruling_after_failure(match: Match, history: Sequence[JournalEntry], now_ms: int) -> Event:
    """Decides which event an observation is for a failed operation; REAPPEARED where an operator must decide.

    It is REAPPEARED where the effect shows after all, and where it shows as refunded or charged back since. It is so
    too where a payment may be something else's, and still may after STILL_UNCLEAR_AFTER_MS. By then an operator has the
    competing operation, and must know of both. Otherwise it is INQUIRED_ABOUT.
    """
    is_shown = match.seen in {MatchResult.ONE_FITS, MatchResult.REFUND_SHOWN, MatchResult.SEVERAL_FIT}
    was_reversed = match.seen is MatchResult.ONE_RESEMBLES and match.payment is not None
    is_unclear_for_long = match.seen in CONTESTED and any(
        entry.state is State.FAILED
        and entry.evidence.seen in CONTESTED
        and now_ms - entry.at_ms >= STILL_UNCLEAR_AFTER_MS
        for entry in history
    )
    return Event.REAPPEARED if is_shown or was_reversed or is_unclear_for_long else Event.INQUIRED_ABOUT


def _is_evidence_against(entry: JournalEntry) -> bool:
    return (
        entry.event is Event.INQUIRED_ABOUT
        and entry.evidence.seen in ABSENT
        and entry.evidence.control == Control.FOUND
    )


def evidence_of(match: Match, control: Control | None, seen_by: Evidence | None = None) -> Evidence:
    """Gives the evidence for the journal: the match, the control query, and what the reply (``seen_by``) showed."""
    return msgspec.structs.replace(
        seen_by or Evidence(),
        seen=match.seen,
        control=control,
        payment_ids=match.payments_compared[:PAYMENTS_COMPARED_MAX],
    )
