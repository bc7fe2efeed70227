"""Resolves charges, whole refunds and retries by a search among the payments of an order or a subscription."""

from typing import Final

from payrelay.core.calls import Charge, PaymentsOfOrder, PaymentsOfSubscription, Refund, RetrySubscription
from payrelay.core.outcomes import Evidence, Facts
from payrelay.core.payments.changes import Report
from payrelay.core.payments.operation import Event, State
from payrelay.core.payments.payment import PaymentsSeen, plain_number
from payrelay.core.payments.proof import (
    ABSENT,
    AUTHORIZATION_LAPSES_MS,
    CONTESTED,
    RETRY_WITHIN_MS,
    TOLERANCE_MS,
    Control,
    Match,
    MatchResult,
    evidence_of,
    match_for_charge,
    match_for_refund,
    match_for_retry,
    ruling,
    ruling_after_failure,
    shown_before,
)
from payrelay.core.payments.schedules import NEVER_MS
from payrelay.flows.resolution.case import Case
from payrelay.flows.resolution.control_query import control_query
from payrelay.flows.resolution.forms_given_out import doubted_by_forms_given_out
from payrelay.flows.resolution.lost_sendings import doubted_by_loss, lost_sendings

CONTROLLED_FROM_MS: Final = 300_000
"""How long an outcome has been open before a control query follows an observation of no payment. An earlier inquiry is
made because a payment shows itself then. It can't be the last one, and should not use the gateway's budget twice."""
NOTHING_TO_SEE: Final = Match(seen=MatchResult.NOTHING_TO_SEE)


async def resolve_charge(case: Case) -> None:
    """Searches the order for the payment."""
    call = case.call
    assert isinstance(call, Charge)  # noqa: S101, the table of resolvers pairs them
    observation = await case.search(PaymentsOfOrder(order_id=call.order_id))
    if observation is None:
        return
    payments = observation.payments
    # Competing operations first: one that is resolved in between is then found as an owner, or was counted here.
    has_competing = bool(payments) and await case.relay.resolution.has_competing(
        case.operation, failed_since_ms=_failed_since_ms(case)
    )
    others = await case.owned_by_others(payments)
    match = match_for_charge(call, case.operation, case.span, payments, others, has_competing=has_competing)
    match = await doubted_by_forms_given_out(case.relay, case.operation.merchant, await doubted_by_loss(case, match))
    await _rule(case, match, observation.evidence)


def _failed_since_ms(case: Case) -> int:
    """Returns the time after which another failed charge could still be sent if it competes with this charge.

    The payment of such a charge may have the date that this charge's payment would have. A charge that failed does not
    compete with this one if this one failed too: a payment that appears then needs an operator anyway.
    """
    if case.operation.state is State.FAILED:
        return NEVER_MS
    return case.span.began_ms - case.timeout_ms - 2 * TOLERANCE_MS


async def resolve_unseen_authorization(case: Case) -> None:
    """Waits for the end of an authorization that no search shows: after a week it has lapsed by itself."""
    lapses_at_ms = case.span.ended_ms + AUTHORIZATION_LAPSES_MS
    if case.now_ms < lapses_at_ms:
        await case.postpone(lapses_at_ms)
    else:
        await case.unclear(evidence_of(NOTHING_TO_SEE, None))


async def resolve_refund(case: Case) -> None:
    """Reads the payment's record where only this refund can show there; else the refund needs an operator."""
    call, operation = case.call, case.operation
    assert isinstance(call, Refund)  # noqa: S101, the table of resolvers pairs them
    was_received = shown_before(case.history).seen == MatchResult.STILL_RECEIVED
    if call.amount_minor is not None or operation.order_id is None or not was_received:
        await resolve_unseen(case)
        return
    observation = await case.inquire(PaymentsOfOrder(order_id=operation.order_id))
    if not isinstance(observation, PaymentsSeen):
        await case.no_observation()  # the payment is known to exist: an answer without it shows nothing
        return
    payment_id = plain_number(call.payment_id)
    has_other = await case.relay.resolution.has_other_refund(operation.merchant, payment_id, operation.id)
    is_ours = not has_other and not await lost_sendings(case)
    match = match_for_refund(payment_id, observation.payments, is_refund_ours=is_ours)
    if match.seen is MatchResult.NOTHING:
        await case.no_observation()
        return
    # The record that the search found is its own control.
    await _rule(case, match, observation.evidence, control=Control.FOUND)


async def resolve_unseen(case: Case) -> None:
    """Ends the inquiries at once where nothing at the gateway can show the outcome: the operation needs an operator.

    For an operation that failed, the inquiry is only noted.
    """
    if case.operation.state is State.FAILED:
        await case.note(evidence_of(NOTHING_TO_SEE, None))
    else:
        await case.unclear(evidence_of(NOTHING_TO_SEE, None))


async def resolve_retry(case: Case) -> None:
    """Compares the subscription's payments with those that it had before the sending."""
    call = case.call
    assert isinstance(call, RetrySubscription)  # noqa: S101, the table of resolvers pairs them
    observation = await case.search(PaymentsOfSubscription(subscription_id=call.subscription_id))
    if observation is None:
        return
    payments = observation.payments
    ids = tuple(payment.payment_id for payment in payments)
    before = shown_before(case.history)
    # Competing operations first, as in resolve_charge.
    has_competing = bool(payments) and await case.relay.resolution.has_competing_retry(
        case.operation,
        from_ms=case.span.began_ms - case.timeout_ms - RETRY_WITHIN_MS - TOLERANCE_MS,
        until_ms=case.span.began_ms + RETRY_WITHIN_MS + TOLERANCE_MS,
    )
    others = await case.owned_by_others(payments)
    match = match_for_retry(before, case.span, payments, others, has_competing=has_competing)
    control = None
    if before.payment_ids:
        control = Control.FOUND if frozenset(before.payment_ids) <= frozenset(ids) else Control.NOT_FOUND
    await _rule(case, await doubted_by_loss(case, match), observation.evidence, control=control)


async def _rule(case: Case, match: Match, seen_by: Evidence, *, control: Control | None = None) -> None:
    """Rules on a match, after a control query where one is needed, and stores the result."""
    if case.operation.state is State.FAILED:
        event = ruling_after_failure(match, case.history, case.now_ms)
        if event is Event.REAPPEARED:
            payment = None if match.seen in CONTESTED else match.payment
            evidence = evidence_of(match, control, seen_by)
            await case.apply(Report(event=event, evidence=evidence, facts=payment or Facts()))
        else:
            await case.note(evidence_of(match, control, seen_by))
        return
    if control is None and match.seen in ABSENT and not case.is_urgent and case.open_ms >= CONTROLLED_FROM_MS:
        operation = case.operation
        control = await control_query(case.relay, operation.merchant, operation.order_id, case.inquire)
    evidence = evidence_of(match, control, seen_by)
    event = ruling(match, control, case.history, case.span, case.now_ms)
    match event:
        case Event.PROVED:
            await case.prove(match, evidence)
        case Event.DISPROVED if not case.is_urgent:
            await case.disprove(evidence)
        case Event.UNCLEAR:
            await case.unclear(evidence)
        case _:
            await case.note(evidence)
