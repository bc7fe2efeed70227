"""Settles what can be sent once more because the gateway does it only once: captures and cancellations.

Where the gateway keeps idempotency keys, everything that was sent under one is sent again under the same. The second
sending is journaled before it is made. Nothing else is ever sent again to find out what became of it.
"""

from collections.abc import Awaitable, Callable, Sequence
from typing import Final

from payrelay.core.answers import Trace, of_outcome
from payrelay.core.calls import Capture, PaymentsOfOrder
from payrelay.core.outcomes import Evidence, Facts, Outcome, Verdict
from payrelay.core.payments.changes import Report
from payrelay.core.payments.operation import EVENT_OF_VERDICT, PROBED, Event, Kind, Line, State
from payrelay.core.payments.payment import PaymentsSeen, Unseen
from payrelay.core.payments.proof import HOLD_LAPSES_MS, TOLERANCE_MS, Look, Seen, look_for_capture
from payrelay.core.payments.resolved_answers import BY_PROOF, settled_answer
from payrelay.flows.resolution.authorization_of_capture import charge_of_hold, hold_of_capture
from payrelay.flows.resolution.case import Case, evidence_of
from payrelay.gateways.gateway import EffectCause, ExpectedReply, Sending
from payrelay.gateways.pacing.rate_limiter import Priority
from payrelay.runtime.hooks import Stage
from payrelay.runtime.subscription_notes import note_cancelled
from payrelay.store.subscriptions import Whose

SEND_WITHIN_S: Final = 10
"""From the journaling of a second sending to the last moment at which it is made."""
GRACE_S: Final = 5
"""Beyond that and the time-out, before a second sending that left no trace is taken for lost."""
SENDINGS_MAX: Final = 400
"""Tries of one operation, four days of them, after which it is for a person. Each leaves up to two lines in a history
of which only so many are read, and a gateway that has turned it away for days won't be won over by more."""
UNDONE_CAUSES: Final = frozenset({EffectCause.NO_SUCH_HOLD, EffectCause.ALREADY_RELEASED})
"""Replies to a second capture that prove that the first one took nothing."""
TOLD_BY_KEY: Final = frozenset({Verdict.SUCCEEDED, Verdict.DECLINED, Verdict.REFUSED, Verdict.DIFFERED})
"""Replies to a sending under a known key that tell what the first one came to."""
NOTHING_DONE: Final = frozenset({Verdict.NOT_SENT, Verdict.NOT_EXECUTED})


async def settle_capture(case: Case) -> None:
    """Captures once more, as soon as the first sending can't be under way any more; a hold is captured only once."""
    began_ms = case.span.began_ms
    may_send_from_ms = began_ms + int(case.account.timeout_s * 1000)
    under_way_ms = _under_way_until_ms(case)
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
        await _send_again(case, _read_second_capture)


async def settle_cancel(case: Case) -> None:
    """Cancels once more, as often as it takes: a subscription that is cancelled already is what was asked for."""
    if _under_way_until_ms(case) is not None or (case.is_nudged and case.has_line(Event.PROBING)):
        return  # each sending is a line of history: after the first they keep to the schedule
    await _send_again(case, _read_second_cancel)
    if case.operation.state is State.SUCCEEDED and case.operation.subscription_id is not None:
        whose = Whose(account=case.account.name, merchant=case.account.merchant)
        relay, subscription_id = case.relay, case.operation.subscription_id
        await note_cancelled(relay.subscriptions, whose, subscription_id, now_ms=case.now_ms, log=relay.log)


async def settle_under_key(case: Case) -> None:
    """Sends once more under the operation's id: a gateway that knows it answers as it did the first time.

    Where the first never arrived, this one is the first: so nothing is sent while an operator has paused the account.
    """
    may_send_from_ms = case.span.began_ms + int(case.account.timeout_s * 1000)
    under_way_ms = _under_way_until_ms(case)
    if under_way_ms is not None:
        await case.put_off(under_way_ms)
    elif case.now_ms < may_send_from_ms:
        await case.put_off(may_send_from_ms)
    elif await case.relay.paused.is_paused(case.operation.account):
        await case.could_not_look()
    elif not case.is_nudged or not case.has_line(Event.PROBING):
        await _send_again(case, _read_under_key)


def is_key_kept(case: Case) -> bool:
    """Tells whether the gateway surely still knows the operation by its key when that is sent again now.

    Not of a charge by a stored customer's handle: what was sent of it is stored nowhere, and another call under the
    key would be another one. Not of a hold: its token would have to be kept with the answer, which only the story that
    began it does. Nor of what the gateway has called pending.
    """
    kept_ms, operation = case.account.capabilities.keys_kept_ms, case.operation
    is_whole = operation.customer_id is None and operation.kind is not Kind.AUTHORIZATION
    if kept_ms is None or operation.state is not State.UNKNOWN or not is_whole:
        return False
    lasts_ms = int((SEND_WITHIN_S + case.account.timeout_s + GRACE_S) * 1000)
    return case.now_ms + lasts_ms < case.span.began_ms + kept_ms - TOLERANCE_MS


def under_way_until_ms(history: Sequence[Line], timeout_s: float, now_ms: int) -> int | None:
    """Tells until when a second sending may be under way, by this process or another; None where none can be."""
    newest = history[-1]
    until_ms = newest.at_ms + int((SEND_WITHIN_S + timeout_s + GRACE_S) * 1000)
    return until_ms if newest.event is Event.PROBING and now_ms < until_ms else None


def _under_way_until_ms(case: Case) -> int | None:
    return under_way_until_ms(case.history, case.account.timeout_s, case.now_ms)


async def _send_again(case: Case, read: Callable[[Case, Outcome], Awaitable[None]]) -> None:
    if sum(line.event is Event.PROBING for line in case.history) >= SENDINGS_MAX:
        await case.unclear(Evidence())
        return
    place = await case.account.governor.take(case.until_s, priority=Priority.SETTLE)
    if place is None:
        await case.could_not_look()
        return
    send_by_s = case.relay.clock.boot_s() + SEND_WITHIN_S
    is_sending = False
    try:
        await case.apply(Report(event=Event.PROBING, probe_at_ms=case.operation.probe_at_ms))
        is_sending = True
    finally:
        if not is_sending:
            place.release_unused()
    case.reach(Stage.PROBING)
    expected = ExpectedReply(order_id=case.operation.order_id, currency=case.operation.currency)
    sending = Sending(
        operation_id=case.operation.id,
        place=place,
        send_by_s=send_by_s,
        resent=_never,
        # Under one key only one and the same call is known again.
        notify_url=case.relay.notify_url(case.operation.account),
    )
    outcome = await case.account.effect(case.call, expected, sending)
    case.reach(Stage.PROBED)
    await read(case, outcome)


async def _never(_: Evidence) -> bool:
    """Forbids the resending of what is itself sent for the second time; it is tried again at its next turn."""
    return False


async def _read_second_capture(case: Case, outcome: Outcome) -> None:
    if outcome.verdict is Verdict.SUCCEEDED:
        await _conclude(case, outcome)
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


async def _read_second_cancel(case: Case, outcome: Outcome) -> None:
    if outcome.evidence.cause == EffectCause.ALREADY_CANCELLED:
        evidence = evidence_of(Look(seen=Seen.ALREADY_DONE), None, outcome.evidence)
        answer = settled_answer(case.operation, case.call, payment=None, msg=BY_PROOF)
        await case.apply(Report(event=Event.PROVED, evidence=evidence, answer=answer, is_firsthand=True))
    elif outcome.verdict in {Verdict.SUCCEEDED, Verdict.REFUSED}:
        await _conclude(case, outcome)
    else:
        await case.could_not_look()


async def _read_under_key(case: Case, outcome: Outcome) -> None:
    if outcome.verdict in TOLD_BY_KEY:
        await _conclude(case, outcome)
    else:
        await case.could_not_look()


async def _conclude(case: Case, outcome: Outcome) -> None:
    """The reply to the second sending is the answer."""
    trace = Trace(request_id=case.operation.request_id, operation_id=case.operation.id)
    await case.apply(
        Report(
            event=EVENT_OF_VERDICT[outcome.verdict],
            evidence=outcome.evidence,
            answer=of_outcome(outcome, trace),
            facts=outcome.facts,
            is_firsthand=True,
        )
    )
