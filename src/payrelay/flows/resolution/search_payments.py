"""Settles what shows itself among the payments of an order or a subscription: charges, whole refunds, retries."""

from typing import Final

from payrelay.core.calls import Charge, PaymentsOfOrder, PaymentsOfSubscription, Refund, RetrySubscription
from payrelay.core.outcomes import Evidence, Facts
from payrelay.core.payments.changes import Report
from payrelay.core.payments.operation import Event, State
from payrelay.core.payments.payment import PaymentsSeen, Unseen, plain_number
from payrelay.core.payments.proof import (
    ABSENT,
    HOLD_LAPSES_MS,
    RETRY_WITHIN_MS,
    TOLERANCE_MS,
    Control,
    Look,
    Seen,
    evidence_of,
    look_for_charge,
    look_for_refund,
    look_for_retry,
    ruling,
    ruling_after_failure,
)
from payrelay.core.payments.schedules import NEVER_MS
from payrelay.flows.resolution.case import Case

CONTROLLED_FROM_MS: Final = 300_000
"""From when on an observation of nothing gets its control query: earlier ones are made because what was done shows
itself then, and can't be the last; they should not cost the gateway's budget twice."""
KNOWN_PAID_FOR_MS: Final = 900_000
"""A control order is rather one that was paid this long ago: the gateway may show a newer payment late."""

NOTHING_TO_SEE: Final = Look(seen=Seen.NOTHING_TO_SEE)


async def settle_charge(case: Case) -> None:
    """Searches the order for the payment."""
    call = case.call
    assert isinstance(call, Charge)  # noqa: S101, the table of stories pairs them
    sight = await case.observe(PaymentsOfOrder(order_id=call.order_id))
    if isinstance(sight, Unseen):
        await case.could_not_look()
        return
    payments = sight.payments if isinstance(sight, PaymentsSeen) else ()
    ids = tuple(payment.payment_id for payment in payments)
    # Rivals first: one that is settled in between is then found as an owner, or was counted as a rival.
    has_rival = bool(payments) and await case.relay.settling.has_rival(
        case.operation, failed_since_ms=_failed_since_ms(case)
    )
    others = await case.relay.settling.owned_by_others(case.operation, ids)
    look = look_for_charge(call, case.operation, case.span, payments, others, has_rival=has_rival)
    await _rule(case, look, sight.evidence)


def _failed_since_ms(case: Case) -> int:
    """Gives from when on a charge that failed may be dated like this one.

    Of two that both failed neither is the other's rival: what shows itself then is for a person anyway.
    """
    if case.operation.state is State.FAILED:
        return NEVER_MS
    return case.span.began_ms - case.timeout_ms - 2 * TOLERANCE_MS


async def settle_hold_unseen(case: Case) -> None:
    """Waits where a hold shows itself in no search: it is gone by itself after a week."""
    lapses_at_ms = case.span.ended_ms + HOLD_LAPSES_MS
    if case.now_ms < lapses_at_ms:
        await case.put_off(lapses_at_ms)
    else:
        await case.unclear(evidence_of(NOTHING_TO_SEE, None))


async def settle_refund(case: Case) -> None:
    """Looks at the payment's record where a refund that shows there can only be this one; else it is for a person."""
    call, operation = case.call, case.operation
    assert isinstance(call, Refund)  # noqa: S101, the table of stories pairs them
    was_received = case.history[0].evidence.seen == Seen.STILL_RECEIVED
    if call.amount_minor is not None or operation.order_id is None or not was_received:
        await _cannot_be_seen(case)
        return
    sight = await case.observe(PaymentsOfOrder(order_id=operation.order_id))
    if not isinstance(sight, PaymentsSeen):
        await case.could_not_look()  # the payment is known to be there: an answer without it shows nothing
        return
    payment_id = plain_number(call.payment_id)
    has_other = await case.relay.settling.has_other_refund(operation.merchant, payment_id, operation.id)
    look = look_for_refund(payment_id, sight.payments, is_refund_ours=not has_other)
    if look.seen is Seen.NOTHING:
        await case.could_not_look()
        return
    # The record that the search found is its own control.
    await _rule(case, look, sight.evidence, control=Control.FOUND)


async def settle_unseen(case: Case) -> None:
    """Gives it to a person at once where nothing at the gateway shows what became of it."""
    await _cannot_be_seen(case)


async def settle_retry(case: Case) -> None:
    """Compares the subscription's payments with those that it had before the sending."""
    call = case.call
    assert isinstance(call, RetrySubscription)  # noqa: S101, the table of stories pairs them
    sight = await case.observe(PaymentsOfSubscription(subscription_id=call.subscription_id))
    if isinstance(sight, Unseen):
        await case.could_not_look()
        return
    payments = sight.payments if isinstance(sight, PaymentsSeen) else ()
    ids = tuple(payment.payment_id for payment in payments)
    before = frozenset(case.history[0].evidence.payment_ids)
    # Rivals first, as above.
    has_rival = bool(payments) and await case.relay.settling.has_rival_retry(
        case.operation,
        from_ms=case.span.began_ms - case.timeout_ms - RETRY_WITHIN_MS - TOLERANCE_MS,
        until_ms=case.span.began_ms + RETRY_WITHIN_MS + TOLERANCE_MS,
    )
    others = await case.relay.settling.owned_by_others(case.operation, ids)
    look = look_for_retry(before, case.span, payments, others, has_rival=has_rival)
    control = None
    if before:
        control = Control.FOUND if before <= frozenset(ids) else Control.NOT_FOUND
    await _rule(case, look, sight.evidence, control=control)


async def _rule(case: Case, look: Look, seen_by: Evidence, *, control: Control | None = None) -> None:
    """Does what the look calls for."""
    if case.operation.state is State.FAILED:
        event = ruling_after_failure(look, case.history, case.now_ms)
        if event is Event.REAPPEARED:
            payment = None if look.seen is Seen.MAY_BE_ANOTHERS else look.payment
            evidence = evidence_of(look, control, seen_by)
            await case.apply(Report(event=event, evidence=evidence, facts=payment or Facts()))
        else:
            await case.note(evidence_of(look, control, seen_by))
        return
    if control is None and look.seen in ABSENT and not case.is_nudged and case.open_ms >= CONTROLLED_FROM_MS:
        control = await _control(case)
    evidence = evidence_of(look, control, seen_by)
    match ruling(look, control, case.history, case.span, case.now_ms):
        case Event.PROVED:
            await case.prove(look, evidence)
        case Event.DISPROVED if not case.is_nudged:
            await case.disprove(evidence)
        case Event.UNCLEAR:
            await case.unclear(evidence)
        case _:
            await case.note(evidence)


async def _cannot_be_seen(case: Case) -> None:
    if case.operation.state is State.FAILED:
        await case.note(evidence_of(NOTHING_TO_SEE, None))
    else:
        await case.unclear(evidence_of(NOTHING_TO_SEE, None))


async def _control(case: Case) -> Control:
    """Searches for an order that is known to be paid: only a search that finds what is there shows what isn't."""
    operation = case.operation
    before_ms = case.now_ms - KNOWN_PAID_FOR_MS
    order_id = await case.relay.settling.paid_order(
        operation.merchant, other_than=operation.order_id or "", before_ms=before_ms
    )
    if order_id is None:
        return Control.NONE_KNOWN
    sight = await case.observe(PaymentsOfOrder(order_id=order_id))
    return Control.FOUND if isinstance(sight, PaymentsSeen) and sight.payments else Control.NOT_FOUND
