"""Resolves a capture by sending it once more: the gateway captures an authorization only once."""

from typing import Final

from payrelay.core.calls import Capture, PaymentsOfOrder
from payrelay.core.outcomes import Facts, Outcome, OutcomeKind
from payrelay.core.payments.changes import Report
from payrelay.core.payments.operation import INQUIRED, Event
from payrelay.core.payments.operation_answers import BY_PROOF, resolved_answer
from payrelay.core.payments.proof import (
    AUTHORIZATION_LAPSES_MS,
    TOLERANCE_MS,
    Match,
    MatchResult,
    evidence_of,
    match_for_capture,
)
from payrelay.flows.resolution.authorization_of_capture import (
    authorization_of_capture,
    charge_of_authorization,
    pages_of_capture,
)
from payrelay.flows.resolution.case import Case
from payrelay.flows.resolution.forms_given_out import doubted_by_forms_given_out
from payrelay.flows.resolution.lost_sendings import doubted_by_loss, lost_sendings
from payrelay.flows.resolution.resend import conclude, may_resend_from_ms, resend, resending_until_ms
from payrelay.gateways.gateway import EffectCause

UNDONE_CAUSES: Final = frozenset({EffectCause.NO_SUCH_AUTHORIZATION, EffectCause.ALREADY_VOIDED})
"""Replies to a second capture that prove that the first one charged nothing, unless what followed it was lost."""
NOTHING_DONE: Final = frozenset({OutcomeKind.NOT_SENT, OutcomeKind.NOT_EXECUTED})


async def resolve_capture(case: Case) -> None:
    """Captures once more, as soon as the first sending can't be under way any more; never a third time.

    A resending that certainly did nothing doesn't count. An operator's attention is needed where the authorization has
    lapsed, or the reply to the resending is lost as well.
    """
    under_way_ms, may_resend_ms = resending_until_ms(case), may_resend_from_ms(case)
    if under_way_ms is not None:
        await case.postpone(under_way_ms)
    elif any(entry.evidence.seen == MatchResult.ALREADY_DONE for entry in case.history):
        await _confirm_capture(case)
    elif (
        case.history[-1].event is Event.RESENT_TO_RESOLVE  # it may have been made, and its reply is lost as well
        or case.now_ms - case.span.began_ms >= AUTHORIZATION_LAPSES_MS
    ):
        await case.unclear(evidence_of(Match(seen=MatchResult.NOTHING_TO_SEE), None))
    elif case.now_ms < may_resend_ms:
        await case.postpone(may_resend_ms)
    else:
        await resend(case, _store_outcome)


async def _store_outcome(case: Case, outcome: Outcome) -> None:
    if outcome.kind is OutcomeKind.SUCCEEDED:
        await conclude(case, outcome)
    elif outcome.kind in NOTHING_DONE:
        inquire_at_ms = case.operation.inquire_at_ms
        await case.apply(Report(event=Event.INQUIRED_ABOUT, evidence=outcome.evidence, inquire_at_ms=inquire_at_ms))
        await case.no_observation()
    elif outcome.evidence.cause == EffectCause.ALREADY_CAPTURED:
        match = Match(seen=MatchResult.ALREADY_DONE)
        evidence = evidence_of(match, None, outcome.evidence)
        await case.apply(Report(event=Event.INQUIRED_ABOUT, evidence=evidence, is_firsthand=True))
        if case.operation.state in INQUIRED:
            await _confirm_capture(case)
    elif outcome.evidence.cause in UNDONE_CAUSES and not await lost_sendings(case):
        await case.disprove(evidence_of(Match(seen=MatchResult.ALREADY_UNDONE), None, outcome.evidence))
    else:
        await case.unclear(outcome.evidence)


async def _confirm_capture(case: Case) -> None:
    """Resolves a capture of an authorization that is captured: the order's payment shows whether for this amount."""
    call, operation = case.call, case.operation
    assert isinstance(call, Capture)  # noqa: S101, the table of resolvers pairs them
    if operation.order_id is None:
        await case.unclear(evidence_of(Match(seen=MatchResult.ALREADY_DONE), None))
        return
    observation = await case.search(PaymentsOfOrder(order_id=operation.order_id))
    if observation is None:
        return
    payments = observation.payments
    authorization = await authorization_of_capture(case.relay, call, operation.merchant)
    # The payment may have the number of the authorization; then it belongs to no other operation.
    own = frozenset() if authorization is None or authorization.payment_id is None else {authorization.payment_id}
    # Competing operations first: one that is resolved in between is then found as an owner, or was counted here.
    since_ms = case.span.began_ms - case.timeout_ms - 2 * TOLERANCE_MS
    has_competing = bool(payments) and await case.relay.resolution.has_competing(operation, failed_since_ms=since_ms)
    others = await case.owned_by_others(payments) - own
    match = match_for_capture(call.amount_minor, payments, others, has_competing=has_competing)
    match = await doubted_by_loss(case, match)
    if match.payment is not None and match.payment.payment_id not in own:
        # The form of the hold's own page led to the hold, and the gateway says that it was captured.
        pages = frozenset(each.id for each in await pages_of_capture(case.relay, operation, call))
        match = await doubted_by_forms_given_out(case.relay, operation.merchant, match, own=pages)
    evidence = evidence_of(match, None, observation.evidence)
    if match.seen is not MatchResult.ONE_FITS:
        await case.unclear(evidence)
        return
    charge = await charge_of_authorization(case.relay, authorization)
    answer = resolved_answer(operation, call, payment=match.payment, msg=BY_PROOF, authorization=charge)
    facts = match.payment or Facts()
    await case.apply(Report(event=Event.PROVED, evidence=evidence, answer=answer, facts=facts, is_firsthand=True))
