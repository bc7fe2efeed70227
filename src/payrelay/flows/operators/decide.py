"""Stores an operator's decision on an operation whose outcome nothing can prove.

A decision is a journal entry with the operator's name and reason. Its answer is stored as if the gateway had given it,
and a repeat of the request gets it from then on.
"""

from collections.abc import Sequence
from typing import Final

import msgspec

from payrelay.core.answers import Answer
from payrelay.core.moments import span_text
from payrelay.core.outcomes import Evidence, Facts
from payrelay.core.payments.changes import Report, what_follows
from payrelay.core.payments.operation import PAYMENT_KINDS, Event, JournalEntry, Kind, Operation, State
from payrelay.core.payments.proof import CONTESTED, CONTRADICTORY
from payrelay.core.payments.resolved_answers import BY_DECISION, failed_answer, resolved_answer
from payrelay.errors import Outdated, UndecidedError
from payrelay.flows.apply_change import apply
from payrelay.flows.operators.decidable import (
    EVENT_OF_DECISION,
    Decision,
    UnknownOperationError,
    decisions_on,
    require_decidable,
)
from payrelay.flows.relay import Relay
from payrelay.flows.resolution.authorization_of_capture import charge_behind

ATTEMPTS_MAX: Final = 5
"""Attempts to store a decision on an operation that inquiries change at the same time, before it is given up."""

_SHOWN: Final = CONTRADICTORY | CONTESTED
_REPLIES: Final = frozenset({Event.SUCCEEDED, Event.DIFFERED})
_NOUNS: Final = {
    Kind.CHARGE: "order",
    Kind.AUTHORIZATION: "order",
    Kind.CAPTURE: "authorization",
    Kind.REFUND: "payment",
    Kind.VOID: "authorization",
    Kind.RETRY: "subscription",
    Kind.CANCEL: "subscription",
}


class Consequence(msgspec.Struct, frozen=True, kw_only=True):
    """What a decision makes of an operation: the row, its journal entry, and the answer to its client."""

    operation: Operation
    entry: JournalEntry
    answer: Answer


async def decide(relay: Relay, decision: Decision) -> Consequence:
    """Makes a decision and stores it with its answer. Better evidence that is stored first prevents the decision.

    Raises UndecidedError where the state doesn't allow it, the payment is another operation's or a resending may be
    under way; its subclass UnknownOperationError where there is no such operation; and StoreError.
    """
    for _ in range(ATTEMPTS_MAX):
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


async def preview_decision(relay: Relay, operation: Operation, decision: Decision) -> Consequence:
    """Returns what a decision would make of an operation; stores nothing."""
    report, answer = await _report_of(relay, operation, decision)
    change = what_follows(operation, report, at_ms=relay.clock.now_ms(), retention=relay.settings.retention)
    return Consequence(operation=change.operation, entry=change.entry, answer=answer)


async def _report_of(relay: Relay, operation: Operation, decision: Decision) -> tuple[Report, Answer]:
    """Composes the report that stores a decision, and the answer that the client gets."""
    payment_id = decision.payment_id
    payment_ids = () if payment_id is None else (payment_id,)
    evidence = Evidence(operator=decision.operator, reason=decision.reason, payment_ids=payment_ids)
    report = Report(event=EVENT_OF_DECISION[decision.decided], evidence=evidence, facts=Facts(payment_id=payment_id))
    if decision.decided is State.FAILED:
        answer = failed_answer(operation)
        if _was_shown(await relay.journal.history(operation.id)):
            report = msgspec.structs.replace(report, inquire_at_ms=None)
    else:
        call = await relay.journal.call_of(operation.id)
        authorization = await charge_behind(relay, call, operation.merchant)
        paid = operation if payment_id is None else msgspec.structs.replace(operation, payment_id=payment_id)
        answer = resolved_answer(paid, call, payment=None, msg=BY_DECISION, authorization=authorization)
    return msgspec.structs.replace(report, answer=answer), answer


async def preview_decisions(relay: Relay, operation: Operation) -> dict[State, Consequence]:
    """Returns what each possible decision would make of an operation; nothing where none can be made."""
    return {
        decided: await preview_decision(
            relay,
            operation,
            Decision(operation_id=operation.id, seen=operation.state, decided=decided, operator="", reason=""),
        )
        for decided in decisions_on(operation.state)
    }


def sentences_of(consequence: Consequence) -> list[str]:
    """Tells in sentences what a decision does beside the answer: what stays, what is free again, what goes on."""
    after = consequence.operation
    noun = _NOUNS[after.kind]
    sentences = [_claim_sentence(after)]
    if after.guard is None:
        sentences.append(f"The {noun} is free for another operation.")
    else:
        sentences.append("The authorization counts as captured for good: a second capture of it is refused.")
    is_done = after.state is State.SUCCEEDED
    if is_done and after.kind in PAYMENT_KINDS and after.payment_id is None:
        sentences.append("The answer names no payment; with --payment-id it does, and the payment is this operation's.")
    if is_done and after.kind is Kind.AUTHORIZATION:
        sentences.append("The answer has no authorization token: the authorization can't be captured with it.")
    if not is_done and after.kind in PAYMENT_KINDS and after.payment_id is not None:
        sentences.append(f"This refunds nothing: if payment {after.payment_id} was made, see to it first.")
    if after.inquire_at_ms is not None:
        sentences.append("Payrelay still inquires once a day; it raises an alert if the gateway shows the effect.")
    return sentences


def _claim_sentence(after: Operation) -> str:
    if after.claim is None:
        return "A repeat of the request no longer gets a stored answer; the service carries it out as a new one."
    if after.claim_ends_at_ms is None:
        return "The same Idempotency-Key gets this answer for as long as the answer is kept."
    kept_ms = after.claim_ends_at_ms - after.updated_at_ms
    repeat = "An equal request" if after.idempotency_key is None else "The same Idempotency-Key"
    return f"{repeat} gets this answer for {span_text(kept_ms // 1000)}."


def _was_shown(history: Sequence[JournalEntry]) -> bool:
    """Tells whether the gateway has shown already what an operator has to judge, so that no further inquiry is needed.

    A late reply to an operation that had been decided to have failed shows it too.
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
