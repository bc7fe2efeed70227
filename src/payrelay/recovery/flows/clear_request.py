"""Decides, before an effect is begun, what the recovery from lost commits asks of it.

Rules, each with a test that tries to break it:

1. A request whose first try may have been lost is never sent unless a look at the gateway shows no effect of that try.
2. What the look rests on must still hold when the operation is stored, in the same transaction. So of requests that
   looked at the same time only one goes on.
3. What is refused here stores nothing.
"""

from typing import Final

import msgspec

from payrelay.core.answers import Answer
from payrelay.core.payments.operation import State, sending_ms
from payrelay.errors import Code, Refusal
from payrelay.flows.operations.answer_repeat import answer_blocked
from payrelay.flows.operations.intent import Intent, new_operation
from payrelay.flows.relay import Relay, Request
from payrelay.recovery.flows.adopt import adopt
from payrelay.recovery.flows.hold import hold
from payrelay.recovery.flows.look_first import Look, look
from payrelay.recovery.flows.lost_matches import LostTry
from payrelay.recovery.rules.clearance import Step, clearance_of
from payrelay.recovery.rules.lost_effects import LookResult

TOO_EARLY_SENTENCE: Final = (
    "the database lost its newest operations, and the gateway may not show yet whether an earlier try of this request"
    " was carried out; this request was not sent"
)
UNSEEN_SENTENCE: Final = (
    "the database lost its newest operations, and the gateway does not show now whether an earlier try of this request"
    " was carried out; this request was not sent"
)
BEGUN_SENTENCE: Final = "a recovery of the database has just begun; this request was not sent"
UNSEEN_RETRY_AFTER_S: Final = 30


async def clear(relay: Relay, request: Request, intent: Intent, fingerprint: str, claim: str | None) -> Intent | Answer:
    """Returns the intent where it may go on, with what must hold when it is stored; else the answer to the request.

    Such an answer is that of an earlier try, found at the gateway, or says that a person decides. Raises Refusal
    (unavailable) while the database is behind, and where the gateway can't show yet, or doesn't show now, what an
    earlier try did; as ``answer_blocked`` where another operation holds the guard; StoreError.
    """
    incarnation = await relay.database.lost_commits.require_effects_allowed()
    account = relay.account(request.account)
    shown_after_ms = sending_ms(account.timeout_s) + relay.settings.recovery_lag_s * 1000
    clearance = clearance_of(
        intent.kind,
        intent.call,
        account.capabilities,
        incarnation,
        request.principal,
        wait_ms=relay.database.lost_commits.wait_ms(incarnation, shown_after_ms),
    )
    if clearance.step is Step.TOO_EARLY:
        raise Refusal(Code.UNAVAILABLE, TOO_EARLY_SENTENCE, retry_after_s=-(-clearance.wait_ms // 1000))
    if clearance.step is Step.HOLD:
        return await hold(relay, request, intent, fingerprint, claim)
    if incarnation is None or incarnation.lost is None or clearance.step is Step.GO:
        return intent if incarnation is None else msgspec.structs.replace(intent, recovery=incarnation.number)
    guarded = await relay.journal.find_guard(account.merchant, intent.subject)
    if guarded is not None:  # before the gateway's budget is used
        return answer_blocked(relay, guarded, request, fingerprint)
    identified_by = fingerprint, claim
    tried = LostTry(
        request=request,
        intent=intent,
        operation=new_operation(
            relay, request, intent, state=State.ACCEPTED, identified_by=identified_by, send_within_ms=0
        ),
        lost=incarnation.lost,
    )
    seen = await look(relay, tried)
    await relay.paused.require_open(request.account)  # the look may last longer than a pause takes to be known
    intent = msgspec.structs.replace(intent, recovery=incarnation.number, evidence=seen.evidence)
    return await _follow(relay, request, intent, seen)


async def require_same_recovery(relay: Relay, recovery: int | None) -> None:
    """Raises Refusal (unavailable) where a recovery has begun since a request was cleared, or the database is behind.

    ``recovery`` is the number of the incarnation whose recovery the request was cleared in; None for none. Raises
    StoreError.
    """
    current = await relay.database.lost_commits.require_effects_allowed()
    if current is not None and current.number != recovery:
        raise Refusal(Code.UNAVAILABLE, BEGUN_SENTENCE)


async def _follow(relay: Relay, request: Request, intent: Intent, seen: Look) -> Intent | Answer:
    """Does what follows from a look."""
    match seen.result:
        case LookResult.WAIT:
            raise Refusal(Code.UNAVAILABLE, UNSEEN_SENTENCE, retry_after_s=UNSEEN_RETRY_AFTER_S)
        case LookResult.HOLD:
            fingerprint, claim = seen.operation.fingerprint, seen.operation.claim
            return await hold(relay, request, intent, fingerprint, claim, evidence=seen.evidence)
        case LookResult.ADOPT:
            return await adopt(relay, request, intent, seen)
        case LookResult.GO:
            return msgspec.structs.replace(intent, condition=seen.unchanged(intent.condition))
