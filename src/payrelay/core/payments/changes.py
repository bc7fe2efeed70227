"""What follows for an operation from what happened to it: the changed row, the line of its history, the answer kept.

Rules:

1. ``what_follows`` alone calls ``advance``, and decides all that is stored of a change; ``flows.apply_change`` alone
   stores it.
2. Some news means something else by the state that it meets. What was never sent, or was lost, while it still waited
   for its place was given up. What shows that an operation took effect, which had been taken for failed, reopens it:
   a late reply to its only sending is told as what it was, anything else as *reappeared*.
3. Some news loses. That nobody knows the outcome says nothing once that is written down. That a sending came to nothing
   says nothing once it was sent once more since. Whatever else the table lacks loses as well.
4. An answer is kept exactly where the state freezes it, and a state that freezes one doesn't come without it.
5. What was asked or known stands, and a report only fills in; but a person's word on a payment replaces what was known.
6. An operation that is opened again takes its guard back. Another one may hold it by now, or the guard of a captured
   hold: then the change is stored without a guard.
7. What is open is always asked for again, at the moment named or by the state. Of what failed it may be said that it
   is not asked for any more.

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
"""Of an operation that waits for its place these say the same: it was given up."""
_CAME_TO_NOTHING: Final = frozenset({Event.NOT_SENT, Event.NOT_EXECUTED, Event.REFUSED, Event.DECLINED})
"""What a sending can come to that tells of no effect, as long as it was the last one."""
_SHOWING: Final = frozenset({Event.SUCCEEDED, Event.DIFFERED, Event.PROVED})
"""What contradicts that an operation failed; so does that it was done already."""
_DECIDED: Final = frozenset({Event.DECIDED_SUCCEEDED, Event.DECIDED_FAILED})


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """What happened to an operation, as whoever knows of it tells.

    Attributes:
        event: what happened.
        evidence: what was seen.
        answer: what its client is told, should that settle it.
        facts: what a reply or a record tells of it beside; of a hold's token the hash is kept.
        send_by_ms: nothing of it is sent after this time; None where that stays as it is.
        inquire_at_ms: when it is asked for next, None for never; unset where that follows from the state.
        is_firsthand: nobody else will ever tell it, such as the reply to a sending: where the row was changed meanwhile
            it is decided anew. What was judged from the row, such as a look, is void together with that row.
        is_retried: it is the reply to a second sending, made to find out what became of the first.
    """

    event: Event
    evidence: Evidence = Evidence()
    answer: Answer | None = None
    facts: Facts | Payment = Facts()
    send_by_ms: int | None = None
    inquire_at_ms: int | msgspec.UnsetType | None = msgspec.UNSET
    is_firsthand: bool = False
    is_retried: bool = False


class Change(msgspec.Struct, frozen=True, kw_only=True):
    """What follows from a report.

    Attributes:
        operation: the changed row.
        entry: the line of history that tells why.
        answer: what is kept as the answer from now on; None where that stays as it is.
        meanwhile: the lines of others that came before this one and after the row that the reporter knew.
    """

    operation: Operation
    entry: JournalEntry
    answer: Answer | None
    meanwhile: tuple[JournalEntry, ...] = ()


def what_follows(
    operation: Operation, report: Report, *, at_ms: int, retention: Retention, meanwhile: Sequence[JournalEntry] = ()
) -> Change:
    """Decides what a report makes of an operation as it stands; ``meanwhile`` is what came since the reporter knew it.

    Raises IllegalTransition where the report loses against what stands.
    """
    changed, entry = advance(
        operation,
        _heard_as(operation.state, report, meanwhile),
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
            **_filled_in(operation, report),
        ),
        entry=entry,
        answer=report.answer if changed.state in FROZEN else None,
        meanwhile=tuple(meanwhile),
    )


def says(report: Report) -> State | None:
    """Tells where a report would have an operation stand of which nothing else is known; None where it says nothing."""
    if _shows_it(report) and report.event is not Event.DIFFERED:
        return State.SUCCEEDED
    return TRANSITIONS.get((State.UNKNOWN, report.event))


def _heard_as(state: State, report: Report, meanwhile: Sequence[JournalEntry]) -> Event:
    """Gives the event that a report is in a state; raises IllegalTransition where it says nothing any more."""
    if state is State.ACCEPTED and report.event in _NEVER_LEFT:
        return Event.GAVE_UP
    is_late_reply = (state, report.event) in TRANSITIONS and report.event in _SHOWING and not report.is_retried
    if state is State.FAILED and _shows_it(report) and not is_late_reply:
        return Event.REAPPEARED
    if report.event is Event.UNKNOWN and state is not State.SENDING:
        raise IllegalTransition("that the outcome is unknown is known already")
    # A process that slept through its time-out finds its row given up, and perhaps sent once more to settle it. That
    # its own sending did nothing says nothing then.
    if report.event in _CAME_TO_NOTHING and any(entry.event is Event.RESENT_TO_RESOLVE for entry in meanwhile):
        raise IllegalTransition(f"{report.event} says nothing of an operation that was sent once more meanwhile")
    return report.event


def _shows_it(report: Report) -> bool:
    return report.event in _SHOWING or report.evidence.seen == MatchResult.ALREADY_DONE


def _filled_in(operation: Operation, report: Report) -> dict[str, str]:
    facts, is_binding = report.facts, report.event in _DECIDED
    known = {"order_id": facts.order_id, "payment_id": facts.payment_id, "currency": facts.currency}
    if isinstance(facts, Facts) and facts.authorization_token is not None:
        known["result_ref"] = secret_hash(facts.authorization_token)
    return {
        name: value
        for name, value in known.items()
        if value is not None and (is_binding or getattr(operation, name) is None)
    }
