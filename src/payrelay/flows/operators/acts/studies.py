"""What the page of one thing shows: what is known of it, what can be decided, and what people wrote about it."""

import msgspec

from payrelay.core.operators.operator import OperatorAct
from payrelay.core.operators.roles import Act
from payrelay.core.payments.explanations import phrases_of, reason_phrase, sentence_of
from payrelay.core.payments.operation import JournalEntry
from payrelay.flows.operators.acting import ActTarget
from payrelay.flows.operators.acts.decisions import PossibleDecision, possible_decisions
from payrelay.flows.operators.acts.stale import LINES_MAX, seen_now
from payrelay.flows.operators.parts import Actor, OperatorParts
from payrelay.flows.operators.shown import entries_for
from payrelay.flows.relay import Relay


class TargetStudy(msgspec.Struct, frozen=True, kw_only=True):
    """What the page of one thing shows of it.

    Attributes:
        seen: what the forms of the page name as what it shows.
        history: moments and sentences, oldest first; empty where it is no operation.
        why: why it needs a person, and ``look``: where to look at the gateway; None where it doesn't.
        decisions: what can be decided about it.
        lines: what operators did and noted about it, newest first.
        assigned: who sees to it; None for nobody.
    """

    seen: str
    history: list[tuple[int, str]]
    why: str | None
    look: str | None
    decisions: list[PossibleDecision]
    lines: list[OperatorAct]
    assigned: str | None


async def study_target(parts: OperatorParts, relay: Relay, actor: Actor, target: ActTarget) -> TargetStudy:
    """Returns what the page of a thing shows the actor of it. Raises StoreError."""
    history: list[JournalEntry] = []
    decisions: list[PossibleDecision] = []
    if target.operation is not None:
        history = await relay.journal.history(target.id)
        if Act.DECIDE in target.acts:
            decisions = await possible_decisions(relay, target.operation)
    # Read before the lines: whoever sends the form has then seen every line that it names.
    seen = await seen_now(parts, target)
    lines = await parts.acts.about(target.subject, LINES_MAX)
    return TargetStudy(
        seen=seen,
        history=[(entry.at_ms, _words_of(entry)) for entry in entries_for(actor, history)],
        why=f"{_capital(reason_phrase(history))}." if decisions else None,
        look=_where_to_look(target) if decisions else None,
        decisions=decisions,
        lines=[actor.without_words(each, reason="", details="") for each in lines],
        assigned=assigned_in(lines),
    )


def assigned_in(lines: list[OperatorAct]) -> str | None:
    """Tells who sees to a thing, by the lines about it, newest first; None for nobody."""
    newest = next((line for line in lines if line.act == Act.ASSIGN_CASE), None)
    return None if newest is None or not newest.details else newest.details


def _words_of(entry: JournalEntry) -> str:
    seen = "; ".join(phrases_of(entry.evidence))
    return f"{sentence_of(entry)} {_capital(seen)}." if seen else sentence_of(entry)


def _capital(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}"


def _where_to_look(target: ActTarget) -> str:
    """Says what to look for on the gateway's own pages."""
    what = f"order {target.order_id}" if target.order_id is not None else "the payments of that day"
    if target.payment_id is not None:
        what = f"payment {target.payment_id}" + ("" if target.order_id is None else f" of order {target.order_id}")
    amount = "" if target.amount is None else f", with the amount {target.amount}"
    return (
        f"On the gateway's own pages, in the merchant account that is called {target.account} here, look for"
        f" {what}{amount}. Compare its time with the history above, which is in UTC."
    )
