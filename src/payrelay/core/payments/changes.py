"""What a report changes in an operation: the row, the journal entry, and the stored answer.

Rules:

1. ``what_follows`` alone calls ``advance``, and decides all that is stored of a change. ``flows.apply_change`` alone
   stores it.
2. The meaning of some reports depends on the state. NOT_SENT or LOST for an operation that still waited for its permit
   means that it was given up. Evidence that a failed operation took effect reopens it. A late reply to its only sending
   keeps its own event; any other such evidence becomes *reappeared*.
3. Some reports lose, and change nothing: "unknown" once that is stored, and "no effect" of a sending after which the
   operation was sent again. So does every other report that the table of transitions lacks.
4. An answer is stored exactly where the state freezes it. An operation can't enter such a state without an answer.
5. A report only fills in facts that aren't known yet. An operator's decision about a payment replaces the known facts.
6. An operation that is reopened takes its guard back. Another operation may hold that guard by now, or the guard of a
   captured authorization. Then the change is stored without a guard.
7. An open operation always has a next status inquiry, at the time that the report names or by its state. A failed
   operation may have none.

To be changed together: ``core.payments.operation`` (the table), ``flows.apply_change`` (what is atomic) and this file.
"""

from collections.abc import Sequence
from typing import Final

import msgspec

from payrelay.core.answers import Answer
from payrelay.core.outcomes import Evidence, Facts
from payrelay.core.payments.operation import (
    FROZEN,
    OPEN_STATES,
    TRANSITIONS,
    Event,
    JournalEntry,
    Operation,
    Retention,
    State,
    advance,
)
from payrelay.core.payments.payment import Payment
from payrelay.core.payments.proof import MatchResult
from payrelay.core.secret import secret_hash
from payrelay.errors import IllegalTransition

_NEVER_LEFT: Final = frozenset({Event.NOT_SENT, Event.LOST})
"""For an operation that waits for its permit, both mean that it was given up."""
_NO_EFFECT: Final = frozenset({Event.NOT_SENT, Event.NOT_EXECUTED, Event.REFUSED, Event.DECLINED})
"""Outcomes of a sending without an effect. They count only for the last sending."""
_EFFECT: Final = frozenset({Event.SUCCEEDED, Event.DIFFERED, Event.PROVED})
"""Events that contradict a failure. The match result ALREADY_DONE contradicts it too."""
_DECIDED: Final = frozenset({Event.DECIDED_SUCCEEDED, Event.DECIDED_FAILED})


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """What happened to an operation, as its source reports it.

    Attributes:
        event: what happened.
        evidence: what was seen.
        answer: the client's answer, should the report make the operation final.
        facts: further facts from a reply or a record. Of an authorization token only the hash is stored.
        send_by_ms: the operation is not sent after this time; None leaves the time as it is.
        inquire_at_ms: when the next status inquiry is due, None for never; unset where it follows from the state.
        is_firsthand: the report has no other source, such as the reply to a sending. Where the row has changed since it
            was read, such a report is decided anew. A conclusion from the old row, such as a ruling, is void instead.
        is_retried: the report is the reply to a second sending, made to learn the outcome of the first.
        may_be_paid_again: a payment that it makes may be a further one of its order. Only the sender of a charge may
            know that it isn't: it looked at the order while it held the order's guard.
    """

    event: Event
    evidence: Evidence = Evidence()
    answer: Answer | None = None
    facts: Facts | Payment = Facts()
    send_by_ms: int | None = None
    inquire_at_ms: int | msgspec.UnsetType | None = msgspec.UNSET
    is_firsthand: bool = False
    is_retried: bool = False
    may_be_paid_again: bool = True


class Change(msgspec.Struct, frozen=True, kw_only=True):
    """What follows from a report.

    Attributes:
        operation: the changed row.
        entry: the journal entry of this change.
        answer: the answer to store; None where the stored answer stays as it is.
        meanwhile: journal entries of others, stored after the row that the reporter read and before this entry.
    """

    operation: Operation
    entry: JournalEntry
    answer: Answer | None
    meanwhile: tuple[JournalEntry, ...] = ()


def what_follows(
    operation: Operation, report: Report, *, at_ms: int, retention: Retention, meanwhile: Sequence[JournalEntry] = ()
) -> Change:
    """Decides what a report changes in an operation; ``meanwhile`` are the entries since the reporter read the row.

    Raises IllegalTransition where the report loses against the present state, and ValueError where the new state
    freezes an answer and the report has none.
    """
    changed, entry = advance(
        operation,
        _event_of(report, operation.state, meanwhile),
        at_ms=at_ms,
        retention=retention,
        evidence=report.evidence,
        inquire_at_ms=report.inquire_at_ms,
    )
    if changed.state in FROZEN and operation.state is not changed.state and report.answer is None:
        raise ValueError(f"an operation that comes to be {changed.state} needs an answer")
    is_reopened = operation.state not in OPEN_STATES and changed.state in OPEN_STATES
    return Change(
        operation=msgspec.structs.replace(
            changed,
            guard=changed.subject if is_reopened else changed.guard,
            send_by_ms=changed.send_by_ms if report.send_by_ms is None else report.send_by_ms,
            **_new_facts(operation, report),
        ),
        entry=entry,
        answer=report.answer if changed.state in FROZEN else None,
        meanwhile=tuple(meanwhile),
    )


def state_implied_by(report: Report) -> State | None:
    """Gives the state that a report alone would give an operation; None where it implies no state."""
    if _shows_effect(report) and report.event is not Event.DIFFERED:
        return State.SUCCEEDED
    return TRANSITIONS.get((State.UNKNOWN, report.event))


def _event_of(report: Report, state: State, meanwhile: Sequence[JournalEntry]) -> Event:
    """Gives the event that a report is in a state; raises IllegalTransition where the report no longer counts."""
    if state is State.ACCEPTED and report.event in _NEVER_LEFT:
        return Event.GAVE_UP
    is_late_reply = (state, report.event) in TRANSITIONS and report.event in _EFFECT and not report.is_retried
    if state is State.FAILED and _shows_effect(report) and not is_late_reply:
        return Event.REAPPEARED
    if report.event is Event.UNKNOWN and state is not State.SENDING:
        raise IllegalTransition("the unknown outcome is known already")
    # A process that was suspended past its time-out finds that another process took its row for lost, and perhaps sent
    # the operation again to resolve it. That the first sending had no effect proves nothing then.
    if report.event in _NO_EFFECT and any(entry.event is Event.RESENT_TO_RESOLVE for entry in meanwhile):
        raise IllegalTransition(f"{report.event} proves nothing about an operation that was sent once more since")
    return report.event


def _shows_effect(report: Report) -> bool:
    return report.event in _EFFECT or report.evidence.seen == MatchResult.ALREADY_DONE


def _new_facts(operation: Operation, report: Report) -> dict[str, str]:
    facts, is_binding = report.facts, report.event in _DECIDED
    known = {"order_id": facts.order_id, "payment_id": facts.payment_id, "currency": facts.currency}
    if isinstance(facts, Facts) and facts.authorization_token is not None:
        known["result_ref"] = secret_hash(facts.authorization_token)
    return {
        name: value
        for name, value in known.items()
        if value is not None and (is_binding or getattr(operation, name) is None)
    }
