"""Sends an operation once more to find out what became of it; the second sending is journaled before it is made.

Only what the gateway does only once is ever sent again: captures, cancellations, and, where the gateway keeps
idempotency keys, what was sent under one and is sent again under the same. Each has its story in a file of its own.
"""

from collections.abc import Awaitable, Callable, Sequence
from typing import Final

from payrelay.core.answers import Trace, of_outcome
from payrelay.core.outcomes import Evidence, Outcome
from payrelay.core.payments.changes import Report
from payrelay.core.payments.operation import EVENT_OF_OUTCOME, Event, JournalEntry
from payrelay.flows.resolution.case import Case
from payrelay.gateways.gateway import ExpectedReply, Sending
from payrelay.gateways.pacing.rate_limiter import Priority
from payrelay.runtime.hooks import OperationPoint

SEND_WITHIN_S: Final = 10
"""From the journaling of a second sending to the last moment at which it is made."""
GRACE_S: Final = 5
"""Beyond that and the time-out, before a second sending that left no trace is taken for lost."""
SENDINGS_MAX: Final = 400
"""Tries of one operation, four days of them, after which it is for a person. Each leaves up to two lines in a history
of which only so many are read, and a gateway that has turned it away for days won't be won over by more."""


def under_way_until_ms(history: Sequence[JournalEntry], timeout_s: float, now_ms: int) -> int | None:
    """Tells until when a second sending may be under way, by this process or another; None where none can be."""
    newest = history[-1]
    until_ms = newest.at_ms + int((SEND_WITHIN_S + timeout_s + GRACE_S) * 1000)
    return until_ms if newest.event is Event.RESENT_TO_RESOLVE and now_ms < until_ms else None


def sending_until_ms(case: Case) -> int | None:
    """Tells until when a second sending of a case may be under way; None where none can be."""
    return under_way_until_ms(case.history, case.account.timeout_s, case.now_ms)


async def send_again(
    case: Case,
    read: Callable[[Case, Outcome], Awaitable[None]],
    *,
    may_send: Callable[[], Awaitable[bool]] | None = None,
) -> None:
    """Journals a second sending and makes it; ``read`` stores what its outcome says of the first one.

    ``may_send`` is asked once there is a place: whoever waited for it may have been overtaken by a pause.
    """
    if sum(entry.event is Event.RESENT_TO_RESOLVE for entry in case.history) >= SENDINGS_MAX:
        await case.unclear(Evidence())
        return
    permit = await case.account.rate_limiter.take(case.until_s, priority=Priority.RESOLUTION)
    if permit is None:
        await case.could_not_inquire()
        return
    is_sending = False
    try:
        if may_send is not None and not await may_send():
            await case.could_not_inquire()
            return
        send_by_s = case.relay.clock.boot_s() + SEND_WITHIN_S
        await case.apply(Report(event=Event.RESENT_TO_RESOLVE, inquire_at_ms=case.operation.inquire_at_ms))
        is_sending = True
    finally:
        if not is_sending:
            permit.release_unused()
    case.reach(OperationPoint.RESENT_TO_RESOLVE)
    expected = ExpectedReply(order_id=case.operation.order_id, currency=case.operation.currency)
    sending = Sending(
        operation_id=case.operation.id,
        permit=permit,
        send_by_s=send_by_s,
        is_retry=_never,
        # Under one key only one and the same call is known again.
        notify_url=case.relay.notify_url(case.operation.account),
    )
    outcome = await case.account.effect(case.call, expected, sending)
    case.reach(OperationPoint.INQUIRED)
    await read(case, outcome)


async def _never(_: Evidence) -> bool:
    """Forbids the resending of what is itself sent for the second time; it is tried again at its next turn."""
    return False


async def conclude(case: Case, outcome: Outcome) -> None:
    """The reply to the second sending is the answer."""
    trace = Trace(request_id=case.operation.request_id, operation_id=case.operation.id)
    await case.apply(
        Report(
            event=EVENT_OF_OUTCOME[outcome.kind],
            evidence=outcome.evidence,
            answer=of_outcome(outcome, trace),
            facts=outcome.facts,
            is_firsthand=True,
            is_retried=True,
        )
    )
