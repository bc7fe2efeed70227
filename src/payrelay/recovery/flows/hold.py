"""Holds a request that nothing at the gateway can answer for, while an earlier try of it may be lost.

The operation is stored with its claim, its guard and its sealed call, and nothing is sent for it. An operator decides
what becomes of it (``flows.recovery.decide_held``).
"""

import msgspec

from payrelay.core.answers import Answer
from payrelay.core.outcomes import Evidence
from payrelay.core.payments.operation import State
from payrelay.errors import StoreDoubtful
from payrelay.flows.operations.answer_repeat import answer_blocked, answer_of_state
from payrelay.flows.operations.intent import Intent, new_operation, store_new
from payrelay.flows.relay import Relay, Request
from payrelay.store.payments.journal import AcceptedOperation


async def hold(
    relay: Relay,
    request: Request,
    intent: Intent,
    fingerprint: str,
    claim: str | None,
    *,
    evidence: Evidence | None = None,
) -> Answer:
    """Stores the operation of an intent as held, at once or not at all, and answers 202 with what is known of it.

    ``evidence`` is what the gateway showed, where it was asked. Where another operation holds the claim or the guard,
    the answer is as in ``carry_out``. Where the commit is in doubt, the answer is 202 as well. Raises Refusal,
    StillRunning and StoreError as ``carry_out`` does; nothing was sent, and nothing will be, then.
    """
    operation = new_operation(
        relay, request, intent, state=State.HELD, identified_by=(fingerprint, claim), send_within_ms=0
    )
    shown = evidence or Evidence()
    because = shown if shown.cause else msgspec.structs.replace(shown, cause="commits_lost")
    try:
        acceptance = await store_new(relay, operation, intent, request.signed(because))
    except StoreDoubtful:
        # The row may be stored, and an operator may have it sent later: nobody may read that nothing comes of it.
        return answer_of_state(operation, request.request_id, state=State.HELD)
    if not isinstance(acceptance, AcceptedOperation):
        return answer_blocked(relay, acceptance, request, fingerprint)
    relay.hooks.operation_changed(acceptance.operation)
    relay.log.warning("operation_held", operation_id=operation.id, kind=operation.kind)
    return answer_of_state(acceptance.operation, request.request_id, state=State.HELD)
