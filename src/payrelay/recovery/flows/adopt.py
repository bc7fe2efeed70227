"""Adopts the effect of an earlier try, whose operation is lost: stores it as the operation of the request that fits it.

Nothing is sent. The operation, its proof and its answer are one commit, so that no other request gets the same effect.
"""

from payrelay.core.answers import Answer
from payrelay.core.outcomes import Facts
from payrelay.core.payments.changes import Report, what_follows
from payrelay.core.payments.operation import Event, JournalEntry
from payrelay.core.payments.resolved_answers import BY_PROOF, resolved_answer
from payrelay.flows.access.ownership import require_own
from payrelay.flows.operations.answer_repeat import answer_blocked, with_operation_headers
from payrelay.flows.operations.intent import Intent
from payrelay.flows.relay import Relay, Request
from payrelay.recovery.flows.look_first import Look
from payrelay.runtime.hooks import OperationPoint
from payrelay.store.payments.journal import AcceptedOperation


async def adopt(relay: Relay, request: Request, intent: Intent, seen: Look) -> Answer:
    """Stores the operation as proved by what a look showed, at once or not at all, and returns its answer.

    Where another operation holds the claim or the guard, the answer is as in ``carry_out``. Raises Refusal where
    another operation came since the look, and as that does; StoreError. A repeat finds what was stored.
    """
    await require_own(relay, request, intent.subject)  # the look may have taken a while
    operation, payment = seen.operation, seen.payment
    answer = resolved_answer(operation, intent.call, payment=payment, msg=BY_PROOF)
    report = Report(event=Event.PROVED, evidence=intent.evidence, answer=answer, facts=payment or Facts())
    now_ms = relay.clock.now_ms()
    change = what_follows(operation, report, at_ms=now_ms, retention=relay.settings.retention)
    first = JournalEntry(
        version=1, at_ms=operation.created_at_ms, event=None, state=operation.state, evidence=intent.evidence
    )
    relay.hooks.reached(OperationPoint.RECORDING, operation.id)
    acceptance = await relay.journal.adopt(
        operation,
        first,
        intent.call,
        changed=change.operation,
        change=change.entry,
        answer=answer,
        condition=seen.unchanged(intent.condition),
    )
    if not isinstance(acceptance, AcceptedOperation):
        return answer_blocked(relay, acceptance, request, operation.fingerprint)
    relay.hooks.reached(OperationPoint.RECORDED, operation.id)
    relay.hooks.operation_changed(acceptance.operation)
    relay.log.warning("operation_adopted", operation_id=operation.id, kind=operation.kind)
    return with_operation_headers(answer, acceptance.operation)
