"""Decides about operations in the console, and tells beforehand what each decision does."""

from typing import Final

import msgspec

from payrelay.core.answers import Answer
from payrelay.core.operators.act_texts import TITLES_OF_DECISIONS
from payrelay.core.operators.held_decisions import MEANINGS_OF_DECISIONS, HeldDecision
from payrelay.core.payments.operation import PAYMENT_KINDS, Event, Operation, State
from payrelay.errors import Code, Refusal, UndecidedError
from payrelay.flows.operators.acting import ActResult, ConfirmedAct
from payrelay.flows.operators.decidable import EVENT_OF_DECISION, Decision
from payrelay.flows.operators.decide import Consequence, decide, preview_decisions, sentences_of
from payrelay.flows.operators.held.decide_held import decide_held
from payrelay.flows.relay import Relay

_EVENTS: Final[dict[str, Event]] = {
    **{str(state): event for state, event in EVENT_OF_DECISION.items()},
    HeldDecision.DONE: Event.DECIDED_SUCCEEDED,
    HeldDecision.SEND: Event.DECIDED_SEND,
    HeldDecision.REFUSE: Event.DECIDED_REFUSE,
}


class PossibleDecision(msgspec.Struct, frozen=True, kw_only=True):
    """A decision that can be made now: its value in a form, its title, and what it does, in sentences.

    ``takes_payment`` is whether the payment that was made may be named with it.
    """

    value: str
    title: str
    does: tuple[str, ...]
    takes_payment: bool


class _Said(msgspec.Struct, frozen=True):
    msg: str


async def possible_decisions(relay: Relay, operation: Operation) -> list[PossibleDecision]:
    """Returns what can be decided about an operation now, with what each decision does. Raises StoreError."""
    has_payment = operation.kind in PAYMENT_KINDS
    if operation.state is State.HELD:
        return [
            PossibleDecision(
                value=each,
                title=TITLES_OF_DECISIONS[each],
                does=(MEANINGS_OF_DECISIONS[each].partition(": ")[2],),
                takes_payment=has_payment and each is HeldDecision.DONE,
            )
            for each in HeldDecision
        ]
    previews = await preview_decisions(relay, operation)
    return [
        PossibleDecision(
            value=decided,
            title=TITLES_OF_DECISIONS[decided],
            does=(f"The client gets {answer_text(each.answer)}", *sentences(each)),
            takes_payment=has_payment and decided is State.SUCCEEDED,
        )
        for decided, each in previews.items()
    ]


def sentences(consequence: Consequence) -> list[str]:
    """Tells what a decision does beside the answer, for a page and not for a command."""
    return [
        each.replace("with --payment-id it does", "with the payment's number it does")
        for each in sentences_of(consequence)
    ]


def answer_text(answer: Answer) -> str:
    """Tells an answer in words: its status, and its text."""
    return f"the status {answer.http_status} with “{msgspec.json.decode(answer.body, type=_Said).msg}”."


async def carry_out_decision(relay: Relay, act: ConfirmedAct) -> ActResult:
    """Stores a decision, once; better evidence that is stored first prevents it.

    Raises Refusal where the decision can't be made any more, and nothing is stored then; StoreError.
    """
    operation_id, filled = act.target.id, act.confirmation.filled
    seen = int(act.confirmation.seen.rpartition(".")[0])
    if await _is_stored(relay, act, seen):
        return ActResult(said="The decision is stored.", operation_id=operation_id)
    operation = await relay.journal.get(operation_id)
    if operation is None or operation.version != seen:
        raise Refusal(Code.CONFLICT, f"{operation_id} was changed at this moment; look at it again")
    try:
        await _decide(relay, operation, act, filled)
    except UndecidedError as error:
        raise Refusal(Code.CONFLICT, str(error)) from None
    return ActResult(said="The decision is stored.", operation_id=operation_id)


async def _decide(relay: Relay, operation: Operation, act: ConfirmedAct, filled: dict[str, str]) -> None:
    operator, reason, payment_id = act.operator, act.reason, filled.get("payment_id")
    if operation.state is State.HELD:
        choice = HeldDecision(filled["decision"])
        await decide_held(relay, operation, choice, operator=operator, reason=reason, payment_id=payment_id)
        return
    decision = Decision(
        operation_id=operation.id,
        seen=operation.state,
        seen_version=operation.version,
        decided=State(filled["decision"]),
        operator=operator,
        reason=reason,
        payment_id=payment_id,
    )
    await decide(relay, decision)


async def _is_stored(relay: Relay, act: ConfirmedAct, seen: int) -> bool:
    """Tells whether the process that began this decision stored it, and died before it could say so."""
    event = _EVENTS[act.confirmation.filled["decision"]]
    return any(
        entry.version > seen and entry.event is event and entry.evidence.reason == act.reason
        for entry in await relay.journal.history(act.target.id)
    )
