"""Decides, for a person and with that person's reason, what became of an operation that nothing can prove.

A decision is a line of the history like every other news, and its answer is kept as if the gateway had given it: the
same request gets it from then on.
"""

from collections.abc import Sequence
from typing import Final

import msgspec

from payrelay.core.answers import Answer
from payrelay.core.durations import span_text
from payrelay.core.outcomes import Evidence, Facts
from payrelay.core.payments.changes import Report, what_follows
from payrelay.core.payments.operation import (
    PAYMENT_KINDS,
    Event,
    JournalEntry,
    Kind,
    Operation,
    State,
)
from payrelay.core.payments.proof import CONTRADICTORY, MatchResult
from payrelay.core.payments.resolved_answers import BY_DECISION, failed_answer, resolved_answer
from payrelay.errors import Outdated
from payrelay.flows.apply_change import apply
from payrelay.flows.operators.decidable import (
    Decision,
    UndecidedError,
    UnknownOperationError,
    is_decidable,
    require_decidable,
)
from payrelay.flows.relay import Relay
from payrelay.flows.resolution.authorization_of_capture import charge_behind

EVENT_OF_DECISION: Final = {State.SUCCEEDED: Event.DECIDED_SUCCEEDED, State.FAILED: Event.DECIDED_FAILED}
"""What can be decided."""
DECISIONS_MAX: Final = 5
"""How often a row may change under a decision, by looks that settle nothing, before it is given up."""

_SHOWN: Final = CONTRADICTORY | {MatchResult.MAY_BE_ANOTHERS}
_REPLIES: Final = frozenset({Event.SUCCEEDED, Event.DIFFERED})
_NOUNS: Final = {
    Kind.CHARGE: "order",
    Kind.AUTHORIZATION: "order",
    Kind.CAPTURE: "hold",
    Kind.REFUND: "payment",
    Kind.VOID: "hold",
    Kind.RETRY: "subscription",
    Kind.CANCEL: "subscription",
}


class Consequence(msgspec.Struct, frozen=True, kw_only=True):
    """What a decision makes of an operation: the row, its line of history, and the answer to its client."""

    operation: Operation
    entry: JournalEntry
    answer: Answer


async def decide(relay: Relay, decision: Decision) -> Consequence:
    """Makes a decision and stores it with its answer. May be beaten by better evidence, and then is not made.

    Raises UndecidedError where the state doesn't allow it, or where the payment is another operation's.
    """
    for _ in range(DECISIONS_MAX):
        operation = await relay.journal.get(decision.operation_id)
        if operation is None:
            raise UnknownOperationError(f"there is no operation {decision.operation_id}")
        await require_decidable(relay, operation, decision)
        report, answer = await _report_of(relay, operation, decision)
        try:
            change = await apply(relay, operation, report)
        except Outdated:
            continue
        return Consequence(operation=change.operation, entry=change.entry, answer=answer)
    raise UndecidedError(f"{decision.operation_id} is being changed all the time; try again")


async def consequence_of(relay: Relay, operation: Operation, decision: Decision) -> Consequence:
    """Tells what a decision would make of an operation; stores nothing."""
    report, answer = await _report_of(relay, operation, decision)
    change = what_follows(operation, report, at_ms=relay.clock.now_ms(), retention=relay.retention)
    return Consequence(operation=change.operation, entry=change.entry, answer=answer)


async def _report_of(relay: Relay, operation: Operation, decision: Decision) -> tuple[Report, Answer]:
    """Writes a decision down, and gives it with the answer to the client that it holds."""
    paid = decision.payment_id
    evidence = Evidence(operator=decision.operator, reason=decision.reason, payment_ids=() if paid is None else (paid,))
    report = Report(event=EVENT_OF_DECISION[decision.decided], evidence=evidence, facts=Facts(payment_id=paid))
    if decision.decided is State.FAILED:
        answer = failed_answer(operation)
        if _was_shown(await relay.journal.history(operation.id)):
            report = msgspec.structs.replace(report, inquire_at_ms=None)
    else:
        call = await relay.journal.call_of(operation.id)
        authorization = await charge_behind(relay, call, operation.merchant)
        made = operation if paid is None else msgspec.structs.replace(operation, payment_id=paid)
        answer = resolved_answer(made, call, payment=None, msg=BY_DECISION, authorization=authorization)
    return msgspec.structs.replace(report, answer=answer), answer


async def prospects(relay: Relay, operation: Operation) -> dict[State, Consequence]:
    """Tells what each decision would make of an operation; nothing where none can be made."""
    if not is_decidable(operation.state):
        return {}
    return {
        decided: await consequence_of(
            relay,
            operation,
            Decision(operation_id=operation.id, seen=operation.state, decided=decided, operator="", reason=""),
        )
        for decided in EVENT_OF_DECISION
    }


def sentences_of(consequence: Consequence) -> list[str]:
    """Tells what a decision does beside the answer: what is kept, what is free again, and what goes on."""
    after = consequence.operation
    noun = _NOUNS[after.kind]
    sentences = [_claim_sentence(after)]
    if after.guard is None:
        sentences.append(f"The {noun} is free for another operation.")
    else:
        sentences.append("The hold counts as captured for good: a second capture of it is refused.")
    is_done = after.state is State.SUCCEEDED
    if is_done and after.kind in PAYMENT_KINDS and after.payment_id is None:
        sentences.append("The answer names no payment; --payment-id puts its number there, and makes it this one's.")
    if is_done and after.kind is Kind.AUTHORIZATION:
        sentences.append("The answer has no authorization token: the hold can't be captured with it.")
    if not is_done and after.kind in PAYMENT_KINDS and after.payment_id is not None:
        sentences.append(f"Nothing is given back by this: should payment {after.payment_id} be there, see to it first.")
    if after.inquire_at_ms is not None:
        sentences.append("The gateway is still asked for it once a day; should it show itself, a person is called.")
    return sentences


def _claim_sentence(after: Operation) -> str:
    if after.claim is None:
        return "A repeat of the request is not answered from here any more, and is carried out anew."
    kept_ms = (after.claim_ends_at_ms or 0) - after.updated_at_ms
    what = "An equal request" if after.idempotency_key is None else "The same Idempotency-Key"
    return f"{what} gets this answer for {span_text(kept_ms // 1000)}."


def _was_shown(history: Sequence[JournalEntry]) -> bool:
    """Tells whether the gateway shows what a person has to judge; to find that again the next day would be no news.

    So does the late reply to what had been decided to have failed.
    """
    had_failed = False
    for entry in history:
        is_late_reply = had_failed and entry.event in _REPLIES
        if is_late_reply or entry.event is Event.REAPPEARED:
            return True
        if entry.event is Event.UNCLEAR and entry.evidence.seen in _SHOWN:
            return True
        had_failed = had_failed or entry.state is State.FAILED
    return False
