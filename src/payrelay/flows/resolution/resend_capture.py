"""Captures once more to find out what became of a capture: a hold is captured only once."""

from typing import Final

from payrelay.core.calls import Capture, PaymentsOfOrder
from payrelay.core.outcomes import Facts, Outcome, Verdict
from payrelay.core.payments.changes import Report
from payrelay.core.payments.operation import PROBED, Event
from payrelay.core.payments.payment import PaymentsSeen, Unseen
from payrelay.core.payments.proof import HOLD_LAPSES_MS, TOLERANCE_MS, Look, Seen, evidence_of, look_for_capture
from payrelay.core.payments.resolved_answers import BY_PROOF, settled_answer
from payrelay.flows.resolution.authorization_of_capture import charge_of_hold, hold_of_capture
from payrelay.flows.resolution.case import Case
from payrelay.flows.resolution.resend import conclude, send_again, sending_until_ms
from payrelay.gateways.gateway import EffectCause

UNDONE_CAUSES: Final = frozenset({EffectCause.NO_SUCH_HOLD, EffectCause.ALREADY_RELEASED})
"""Replies to a second capture that prove that the first one took nothing."""
NOTHING_DONE: Final = frozenset({Verdict.NOT_SENT, Verdict.NOT_EXECUTED})


async def settle_capture(case: Case) -> None:
    """Captures once more, as soon as the first sending can't be under way any more; a hold is captured only once."""
    began_ms = case.span.began_ms
    may_send_from_ms = began_ms + int(case.account.timeout_s * 1000)
    under_way_ms = sending_until_ms(case)
    if under_way_ms is not None:
        await case.put_off(under_way_ms)
    elif any(line.evidence.seen == Seen.ALREADY_DONE for line in case.history):
        await _confirm_capture(case)
    elif case.history[-1].event is Event.PROBING:
        # It may have been made, and what it came to is lost as well; a third is not made.
        await case.unclear(evidence_of(Look(seen=Seen.NOTHING_TO_SEE), None))
    elif case.now_ms - began_ms >= HOLD_LAPSES_MS:
        await case.unclear(evidence_of(Look(seen=Seen.NOTHING_TO_SEE), None))
    elif case.now_ms < may_send_from_ms:
        await case.put_off(may_send_from_ms)
    else:
        await send_again(case, _read_second_capture)


async def _read_second_capture(case: Case, outcome: Outcome) -> None:
    if outcome.verdict is Verdict.SUCCEEDED:
        await conclude(case, outcome)
    elif outcome.verdict in NOTHING_DONE:
        probe_at_ms = case.operation.probe_at_ms
        await case.apply(Report(event=Event.LOOKED, evidence=outcome.evidence, probe_at_ms=probe_at_ms))
        await case.could_not_look()
    elif outcome.evidence.cause == EffectCause.ALREADY_CAPTURED:
        look = Look(seen=Seen.ALREADY_DONE)
        evidence = evidence_of(look, None, outcome.evidence)
        await case.apply(Report(event=Event.LOOKED, evidence=evidence, is_firsthand=True))
        if case.operation.state in PROBED:
            await _confirm_capture(case)
    elif outcome.evidence.cause in UNDONE_CAUSES:
        await case.disprove(evidence_of(Look(seen=Seen.ALREADY_UNDONE), None, outcome.evidence))
    else:
        await case.unclear(outcome.evidence)


async def _confirm_capture(case: Case) -> None:
    """The hold is captured: the order's record tells whether with the amount that was asked."""
    call, operation = case.call, case.operation
    assert isinstance(call, Capture)  # noqa: S101, the table of stories pairs them
    if operation.order_id is None:
        await case.unclear(evidence_of(Look(seen=Seen.ALREADY_DONE), None))
        return
    sight = await case.observe(PaymentsOfOrder(order_id=operation.order_id))
    if isinstance(sight, Unseen):
        await case.could_not_look()
        return
    payments = sight.payments if isinstance(sight, PaymentsSeen) else ()
    ids = tuple(payment.payment_id for payment in payments)
    hold = await hold_of_capture(case.relay, call, operation.merchant)
    # The payment may go by the number that the hold had; it is not another one's for that.
    own = frozenset() if hold is None or hold.payment_id is None else {hold.payment_id}
    # Rivals first: one that is settled in between is then found as an owner, or was counted as a rival.
    since_ms = case.span.began_ms - case.timeout_ms - 2 * TOLERANCE_MS
    has_rival = bool(payments) and await case.relay.settling.has_rival(operation, failed_since_ms=since_ms)
    others = await case.relay.settling.owned_by_others(operation, ids) - own
    look = look_for_capture(call.amount_minor, payments, others, has_rival=has_rival)
    evidence = evidence_of(look, None, sight.evidence)
    if look.seen is not Seen.ONE_FITS:
        await case.unclear(evidence)
        return
    charge = await charge_of_hold(case.relay, hold)
    answer = settled_answer(operation, call, payment=look.payment, msg=BY_PROOF, hold=charge)
    facts = look.payment or Facts()
    await case.apply(Report(event=Event.PROVED, evidence=evidence, answer=answer, facts=facts, is_firsthand=True))
