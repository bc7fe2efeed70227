"""What counts as proof that an operation took effect, or that it took none.

Rules:

1. Only what a complete answer of the gateway shows is an observation. That something could not be looked at proves
   nothing, and is not counted.
2. "No payments found" is said both for *not yet* and for *never*. It proves something only said often enough, late
   enough, and each time beside a control query that shows that the search finds what is there.
3. What fits, but not alone or not in every part, is for a person. So is what nothing can prove.
4. A payment belongs to one operation. One that belongs to another proves nothing here.

To be changed together: the tables here, ``docs/operations.md``, and the table of operation and fault in the tests.
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
"""How far the gateway's clock may be from ours, on both sides."""
RETRY_WITHIN_MS: Final = 600_000
"""How far from its sending the payment of a retry may be dated: the gateway makes tries of its own, once a day."""
INQUIRIES_MIN: Final = 6
"""Observations of nothing that together may prove that there is nothing."""
PROVED_ABSENT_AFTER_MS: Final = INQUIRIES_MS[-1]
"""From the sending to the last of them: 96 hours."""
PAYMENTS_COMPARED_MAX: Final = 50
"""Payment ids that are kept as evidence of one look; an order has a handful."""
GIVEN_UP_AFTER_MS: Final = 7 * DAY_MS
"""How long it is tried to see what became of an operation where nothing can be seen; then a person is called."""
STILL_UNCLEAR_AFTER_MS: Final = DAY_MS // 2
"""How long a payment that may be another operation's is left to that one, where the operation that asks had failed."""
AUTHORIZATION_LAPSES_MS: Final = 7 * DAY_MS
"""After this the gateway lets go of a hold by itself."""

REFUND_STATUSES: Final = frozenset(
    {PaymentStatus.REFUND_REQUESTED, PaymentStatus.REFUND_PROCESSING, PaymentStatus.REFUNDED}
)


class MatchResult(StrEnum):
    """What an observation showed."""

    NOTHING = "nothing"
    """There is no payment."""
    ONLY_OTHERS = "only_others"
    """There are payments, all of other operations or of other amounts."""
    ONE_FITS = "one_fits"
    """Exactly one payment fits in every part."""
    SEVERAL_FIT = "several_fit"
    ONE_RESEMBLES = "one_resembles"
    """A payment of the same amount that doesn't fit otherwise."""
    MAY_BE_ANOTHERS = "may_be_anothers"
    """One fits, but it may belong to another operation on the same order or subscription."""
    REFUND_SHOWN = "refund_shown"
    """The payment's record shows a refund."""
    STILL_RECEIVED = "still_received"
    """The payment's record shows no refund."""
    OTHERWISE = "otherwise"
    """The payment's record shows something else."""
    ALREADY_DONE = "already_done"
    """The gateway answered that it was done already."""
    ALREADY_UNDONE = "already_undone"
    """The gateway answered that there is nothing left to do it to."""
    NOTIFIED = "notified"
    """The gateway notified of it, with the token that it yielded."""
    UNSEEN = "unseen"
    """Nothing could be seen at the gateway for so long that a person must look."""
    NOTHING_TO_SEE = "nothing_to_see"
    """There is no way to see it at the gateway."""


class Control(StrEnum):
    """What the control query beside an observation came to."""

    FOUND = "found"
    """What is known to be there was found: the search works."""
    NOT_FOUND = "not_found"
    """It was not found, or could not be looked for: what the search doesn't show is no proof."""
    NONE_KNOWN = "none_known"
    """No order is known to be paid on this merchant account."""


ABSENT: Final = frozenset({MatchResult.NOTHING, MatchResult.ONLY_OTHERS, MatchResult.STILL_RECEIVED})
"""Observations that speak against the effect."""
CONTRADICTORY: Final = frozenset({MatchResult.SEVERAL_FIT, MatchResult.ONE_RESEMBLES, MatchResult.OTHERWISE})
"""Observations that only a person can read."""


class SendingWindow(msgspec.Struct, frozen=True, kw_only=True):
    """When an operation can have reached the gateway; milliseconds since 1970."""

    began_ms: int
    ended_ms: int


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """One observation, judged; ``payments_compared`` is all that was looked at.

    ``payment`` is what would prove the effect; of ONE_RESEMBLES one that would, had it not been taken back since.
    """

    seen: MatchResult
    payment: Payment | None = None
    payments_compared: tuple[str, ...] = ()


def span_of(history: Sequence[JournalEntry], operation: Operation, timeout_ms: int) -> SendingWindow:
    """Gives when an operation can have reached the gateway, from the intent to send it to the end of the time-out."""
    began_ms = next((entry.at_ms for entry in history if entry.state is State.SENDING), operation.created_at_ms)
    return SendingWindow(began_ms=began_ms, ended_ms=operation.send_by_ms + timeout_ms)


def open_since_ms(history: Sequence[JournalEntry], operation: Operation) -> int:
    """Gives when an operation's outcome came to be open, from which its probes are counted."""
    return next((entry.at_ms for entry in history if entry.state in INQUIRED), operation.created_at_ms)


def finding_for_charge(
    call: Charge,
    operation: Operation,
    span: SendingWindow,
    payments: Sequence[Payment],
    others: frozenset[str],
    *,
    has_competing: bool,
) -> Finding:
    """Judges the payments of a charge's order.

    ``others`` are the ids among them that belong to other operations. ``has_competing`` tells that another operation on
    the order is open, and may turn out to own what is found.
    """
    ids = tuple(payment.payment_id for payment in payments)
    own = [
        payment
        for payment in payments
        if payment.payment_id not in others and payment.amount_minor == call.amount_minor
    ]
    made = [payment for payment in own if _fits_charge(payment, call, operation, span)]
    # Of a hold the search doesn't give the token by which it is captured: what shows itself of one is for a person.
    fitting = [payment for payment in made if payment.status == PaymentStatus.RECEIVED and not call.authorize]
    if len(fitting) > 1:
        return Finding(seen=MatchResult.SEVERAL_FIT, payments_compared=ids)
    if fitting:
        seen = MatchResult.MAY_BE_ANOTHERS if has_competing else MatchResult.ONE_FITS
        return Finding(seen=seen, payment=fitting[0], payments_compared=ids)
    if own:
        return Finding(
            seen=MatchResult.ONE_RESEMBLES, payment=made[0] if len(made) == 1 else None, payments_compared=ids
        )
    return Finding(seen=MatchResult.ONLY_OTHERS if payments else MatchResult.NOTHING, payments_compared=ids)


def _fits_charge(payment: Payment, call: Charge, operation: Operation, span: SendingWindow) -> bool:
    is_named = operation.payment_id is None or operation.payment_id == payment.payment_id
    is_dated = (
        payment.at_ms is not None and span.began_ms - TOLERANCE_MS <= payment.at_ms <= span.ended_ms + TOLERANCE_MS
    )
    return (
        is_named
        and is_dated
        and payment.order_id == call.order_id
        and payment.currency == call.currency
        and payment.description == call.items
    )


def finding_for_retry(
    before: frozenset[str],
    span: SendingWindow,
    payments: Sequence[Payment],
    others: frozenset[str],
    *,
    has_competing: bool,
) -> Finding:
    """Judges the payments of a subscription against those that it had before the retry was sent.

    ``has_competing`` tells that another retry of it, sent at about the same time, may have made what is found: the
    gateway's answer to a retry names no payment, and a payment may show itself late.
    """
    ids = tuple(payment.payment_id for payment in payments)
    new = [payment for payment in payments if payment.payment_id not in before | others]
    if not new:
        return Finding(seen=MatchResult.ONLY_OTHERS if payments else MatchResult.NOTHING, payments_compared=ids)
    if len(new) > 1:
        return Finding(seen=MatchResult.SEVERAL_FIT, payments_compared=ids)
    at_ms = new[0].at_ms
    is_dated = at_ms is not None and span.began_ms - RETRY_WITHIN_MS <= at_ms <= span.began_ms + RETRY_WITHIN_MS
    if is_dated and new[0].status == PaymentStatus.RECEIVED:
        seen = MatchResult.MAY_BE_ANOTHERS if has_competing else MatchResult.ONE_FITS
        return Finding(seen=seen, payment=new[0], payments_compared=ids)
    return Finding(seen=MatchResult.ONE_RESEMBLES, payment=new[0] if is_dated else None, payments_compared=ids)


def finding_for_refund(payment_id: str, payments: Sequence[Payment], *, is_refund_ours: bool) -> Finding:
    """Judges the record of a payment that was to be given back whole.

    ``is_refund_ours`` tells that it was seen received before the sending, and that no other refund of it is known: a
    refund that shows can't be another one then.
    """
    ids = tuple(payment.payment_id for payment in payments)
    record = next((payment for payment in payments if payment.payment_id == payment_id), None)
    if record is None:
        return Finding(seen=MatchResult.NOTHING, payments_compared=ids)
    if record.status == PaymentStatus.RECEIVED:
        return Finding(seen=MatchResult.STILL_RECEIVED, payments_compared=ids)
    if record.status in REFUND_STATUSES and is_refund_ours:
        return Finding(seen=MatchResult.REFUND_SHOWN, payment=record, payments_compared=ids)
    return Finding(seen=MatchResult.OTHERWISE, payments_compared=ids)


def finding_for_capture(
    amount_minor: int, payments: Sequence[Payment], others: frozenset[str], *, has_competing: bool
) -> Finding:
    """Judges the payments of a hold's order, once the gateway has said that the hold is captured already.

    ``has_competing`` tells that another operation on the order may own what is found.
    """
    ids = tuple(payment.payment_id for payment in payments)
    own = [payment for payment in payments if payment.payment_id not in others]
    if len(own) > 1:
        return Finding(seen=MatchResult.SEVERAL_FIT, payments_compared=ids)
    if not own:
        return Finding(seen=MatchResult.ONLY_OTHERS if payments else MatchResult.NOTHING, payments_compared=ids)
    if own[0].amount_minor == amount_minor and own[0].status == PaymentStatus.RECEIVED:
        seen = MatchResult.MAY_BE_ANOTHERS if has_competing else MatchResult.ONE_FITS
        return Finding(seen=seen, payment=own[0], payments_compared=ids)
    return Finding(seen=MatchResult.OTHERWISE, payments_compared=ids)


def ruling(
    finding: Finding, control: Control | None, history: Sequence[JournalEntry], span: SendingWindow, now_ms: int
) -> Event:
    """Decides which event an observation is for an open operation; INQUIRED_ABOUT where it resolves nothing.

    ``control`` is needed where the look is ABSENT; of a refund the record that is still there is control enough.
    """
    if finding.seen in {MatchResult.ONE_FITS, MatchResult.REFUND_SHOWN}:
        return Event.PROVED
    if finding.seen in CONTRADICTORY:
        return Event.UNCLEAR
    if now_ms - span.began_ms < PROVED_ABSENT_AFTER_MS:
        return Event.INQUIRED_ABOUT
    if finding.seen is MatchResult.MAY_BE_ANOTHERS:
        return Event.UNCLEAR
    if control is Control.NONE_KNOWN:
        return Event.UNCLEAR
    if control is Control.NOT_FOUND and now_ms - span.began_ms >= GIVEN_UP_AFTER_MS:
        return Event.UNCLEAR
    looks = sum(_speaks_against(entry) for entry in history) + (control is Control.FOUND)
    return Event.DISPROVED if control is Control.FOUND and looks >= INQUIRIES_MIN else Event.INQUIRED_ABOUT


def ruling_after_failure(finding: Finding, history: Sequence[JournalEntry], now_ms: int) -> Event:
    """Decides what an observation makes of an operation that failed: what shows itself after all is for a person.

    So is what was taken back before it showed itself; and what may be another operation's, where it still may after
    STILL_UNCLEAR_AFTER_MS: that one is with a person, then, who must know of both.
    """
    is_there = finding.seen in {MatchResult.ONE_FITS, MatchResult.REFUND_SHOWN, MatchResult.SEVERAL_FIT}
    was_there = finding.seen is MatchResult.ONE_RESEMBLES and finding.payment is not None
    is_unclear_for_long = finding.seen is MatchResult.MAY_BE_ANOTHERS and any(
        entry.state is State.FAILED
        and entry.evidence.seen == MatchResult.MAY_BE_ANOTHERS
        and now_ms - entry.at_ms >= STILL_UNCLEAR_AFTER_MS
        for entry in history
    )
    return Event.REAPPEARED if is_there or was_there or is_unclear_for_long else Event.INQUIRED_ABOUT


def _speaks_against(entry: JournalEntry) -> bool:
    return (
        entry.event is Event.INQUIRED_ABOUT
        and entry.evidence.seen in ABSENT
        and entry.evidence.control == Control.FOUND
    )


def evidence_of(finding: Finding, control: Control | None, seen_by: Evidence | None = None) -> Evidence:
    """Writes a look down, with what the gateway said."""
    return msgspec.structs.replace(
        seen_by or Evidence(),
        seen=finding.seen,
        control=control,
        payment_ids=finding.payments_compared[:PAYMENTS_COMPARED_MAX],
    )
