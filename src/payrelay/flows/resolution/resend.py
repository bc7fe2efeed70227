"""The resend to resolve: sends an operation once more to learn its outcome. Each resending is journaled before it.

Only a call that the gateway does only once is ever sent again. That is a capture, a cancellation and, where the gateway
keeps idempotency keys, a call under the key of its first sending. Each has a resolver in a file of its own.
"""

from collections.abc import Awaitable, Callable, Sequence
from typing import Final

from payrelay.core.answers import Trace, of_outcome
from payrelay.core.outcomes import Evidence, Outcome
from payrelay.core.payments.changes import Report
from payrelay.core.payments.operation import EVENT_OF_OUTCOME, Event, JournalEntry
from payrelay.flows.resolution.authorization_of_capture import expected_reply
from payrelay.flows.resolution.case import Case
from payrelay.flows.resolution.lost_sendings import lost_sendings
from payrelay.gateways.gateway import Sending
from payrelay.gateways.pacing.rate_limiter import Priority
from payrelay.runtime.hooks import OperationPoint

SEND_WITHIN_S: Final = 10
"""From the journaling of a resending to the last moment at which it is made."""
GRACE_S: Final = 5
"""Beyond that and the time-out, before a resending without a stored reply counts as lost."""
COMMITS_LOST: Final = "commits_lost"
"""Why an operation needs an operator whose later rows are lost."""
SENDINGS_MAX: Final = 400
"""Resendings of one operation, four days of them, after which it needs an operator's attention. Each leaves up to two
journal entries, of which only so many are read. A gateway that rejected it for days won't accept a later one."""


def under_way_until_ms(history: Sequence[JournalEntry], timeout_s: float, now_ms: int) -> int | None:
    """Returns until when a resending may be under way, by this process or another; None where none can be."""
    newest = history[-1]
    until_ms = newest.at_ms + int((SEND_WITHIN_S + timeout_s + GRACE_S) * 1000)
    return until_ms if newest.event is Event.RESENT_TO_RESOLVE and now_ms < until_ms else None


def resending_until_ms(case: Case) -> int | None:
    """Returns until when a resending of a case may be under way; None where none can be."""
    return under_way_until_ms(case.history, case.account.timeout_s, case.now_ms)


def may_resend_from_ms(case: Case) -> int:
    """Returns from when the first sending can't be under way any more."""
    return case.span.began_ms + int(case.account.timeout_s * 1000)


async def resend(
    case: Case,
    store_outcome: Callable[[Case, Outcome], Awaitable[None]],
    *,
    may_send: Callable[[], Awaitable[bool]] | None = None,
) -> None:
    """Journals a resending and makes it; ``store_outcome`` stores what its outcome says of the first sending.

    ``may_send`` is called once there is a permit, because an operator may have paused the account during the wait.
    Nothing is sent, and nothing concluded, where the database has been found behind meanwhile. Where rows were lost
    since the operation began, an operator decides: a lost row may have told the client that nothing was sent.
    """
    if await lost_sendings(case):
        await case.unclear(Evidence(cause=COMMITS_LOST))
        return
    if sum(entry.event is Event.RESENT_TO_RESOLVE for entry in case.history) >= SENDINGS_MAX:
        await case.unclear(Evidence())
        return
    permit = await case.account.rate_limiter.take(case.until_s, priority=Priority.RESOLUTION)
    if permit is None:
        await case.no_observation()
        return
    is_sending = False
    try:
        if await case.relay.database.lost_commits.is_behind():
            return
        if may_send is not None and not await may_send():
            await case.no_observation()
            return
        expected = await expected_reply(case.relay, case.operation, case.call)
        send_by_s = case.relay.clock.boot_s() + SEND_WITHIN_S
        await case.apply(Report(event=Event.RESENT_TO_RESOLVE, inquire_at_ms=case.operation.inquire_at_ms))
        is_sending = True
    finally:
        if not is_sending:
            permit.release_unused()
    case.reach(OperationPoint.RESENDING_TO_RESOLVE)
    sending = Sending(
        operation_id=case.operation.id,
        permit=permit,
        send_by_s=send_by_s,
        journal_resend=_never,
        # The gateway recognises a call under one key only where it is equal in every part.
        notify_url=case.relay.notify_url(case.operation.account),
    )
    outcome = await case.account.effect(case.call, expected, sending)
    case.reach(OperationPoint.RESENT_TO_RESOLVE)
    await store_outcome(case, outcome)


async def _never(_: Evidence) -> bool:
    """Forbids a retry of a resending with a new token; the operation is resent at its next turn instead."""
    return False


async def conclude(case: Case, outcome: Outcome) -> None:
    """Stores the reply to a resending as the operation's answer."""
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
