"""Closes differences and days: a person does, with a reason, and the history of acts has it.

Rules:

1. Nothing closes by itself. A difference that is closed stays so until a run finds that it says something else.
2. A day is closed as a person saw it. It is compared anew, and isn't closed where it comes to something else.
3. What that comparison read is of the closed day. Everything else is a correction in a later day.
4. A statement that is read meanwhile makes the day be compared again. What changed in our own books within the last
   minute has to wait for that minute.
"""

import hashlib
from collections.abc import AsyncIterator
from datetime import date, timedelta
from typing import Final, NamedTuple

from payrelay.core.console.roles import Act
from payrelay.core.reconciliation.changes import changes_between
from payrelay.core.reconciliation.days import CLOCKS_MS, Closure, DayReport
from payrelay.core.reconciliation.entries import days_between
from payrelay.core.reconciliation.verdicts import BooksVerdict
from payrelay.errors import Code, Outdated, Refusal
from payrelay.flows.console.parts import Actor
from payrelay.flows.reconciliation.run_day import compare_day, is_changed_lately, report_of, stored_of
from payrelay.flows.reconciliation.scope import BooksScope
from payrelay.flows.relay import Relay
from payrelay.store.reconciliation.differences import Difference, ReconciledDay

_NAMED_MAX: Final = 10
"""Days that an error names; a month may lack all of them."""
_COMPARISONS_MAX: Final = 3
"""How often a day is compared anew because a statement was read meanwhile."""


async def close_difference(
    relay: Relay, scope: BooksScope, difference_id: str, actor: Actor, reason: str, *, seen: str | None = None
) -> Difference:
    """Closes a difference as it is stored now; gives it as it was. ``seen`` is the content that the actor was shown.

    Raises Refusal: forbidden; not_found; conflict where it is closed, or says something else by now. Raises StoreError.
    """
    actor.require(Act.CLOSE_DIFFERENCE)
    found = await relay.reconciliation.differences.get(scope.merchant, difference_id)
    if found is None:
        raise Refusal(Code.NOT_FOUND, f"there is no difference {difference_id} on {scope.account}")
    if not found.is_open:
        raise Refusal(Code.CONFLICT, f"{difference_id} was closed by {found.closed_by}: {found.closed_reason}")
    if seen is not None and found.content != seen:
        raise Refusal(Code.CONFLICT, f"{difference_id} says something else by now; look again")
    act = actor.did(
        Act.CLOSE_DIFFERENCE,
        difference_id,
        at_ms=relay.clock.now_ms(),
        reason=reason,
        details=f"{scope.account}, {found.movement} {found.identity}, day {found.day}, content {found.content}",
    )
    try:
        await relay.reconciliation.differences.close(found, act)
    except Outdated:
        raise Refusal(Code.CONFLICT, f"{difference_id} says something else by now; look again") from None
    return found


async def close_day(
    relay: Relay, scope: BooksScope, day: date, actor: Actor, reason: str, *, seen_ms: int | None = None
) -> DayReport:
    """Closes a day that still comes to what the last comparison showed. Open differences don't keep it open.

    ``seen_ms`` is when it had been compared as the actor was shown it; None stands for the last comparison.

    Raises Refusal: forbidden; conflict where the day isn't over, was not compared, is closed, isn't the next one, or
    comes to something else by now, which is named, and stored as the last comparison. Raises StoreError.
    """
    actor.require(Act.CLOSE_DAY)
    if relay.clock.now_ms() < scope.zone.ends_ms(day):
        raise Refusal(Code.CONFLICT, f"{day} is not over in {scope.zone.name}")
    for _ in range(_COMPARISONS_MAX):
        closed = await _closed_once(relay, scope, day, _Closing(actor, reason, seen_ms))
        if closed is not None:
            return closed
    raise Refusal(Code.CONFLICT, f"statements are being read, or another day is being closed: close {day} behind that")


async def close_days(
    relay: Relay,
    scope: BooksScope,
    days: tuple[date, date],
    actor: Actor,
    reason: str,
    *,
    shown_ms: int | None = None,
) -> AsyncIterator[tuple[date, DayReport | None]]:
    """Closes the days from a first to a last one after the other, and gives each; of several None for a closed one.

    It ends at the first day that can't be closed; what was closed before it stays closed, and it may be begun again.
    ``shown_ms`` is when a person was shown the days: one that was compared since is not closed.

    Raises Refusal, before anything is closed: forbidden; conflict where a day isn't over, was not compared, or there is
    a gap to the last closed day. Raises what ``close_day`` raises.
    """
    actor.require(Act.CLOSE_DAY)
    first, last = days
    if relay.clock.now_ms() < scope.zone.ends_ms(last):
        raise Refusal(Code.CONFLICT, f"{last} is not over in {scope.zone.name}")
    stored = await relay.reconciliation.differences.days(scope.merchant, first, last)
    missing = sorted(set(days_between(first, last)) - {each.day for each in stored})
    if missing:
        named = ", ".join(map(str, missing[:_NAMED_MAX])) + (", …" if len(missing) > _NAMED_MAX else "")
        raise Refusal(Code.CONFLICT, f"not compared yet, so that nothing is closed: {named}")
    before = await relay.reconciliation.differences.last_closed(scope.merchant)
    if before is not None and before.day < first - timedelta(days=1):
        raise Refusal(Code.CONFLICT, f"the last closed day is {before.day}: days are closed one after the other")
    newer = [each.day for each in stored if shown_ms is not None and each.ran_at_ms > shown_ms and not each.act]
    if newer:
        raise Refusal(Code.CONFLICT, f"{newer[0]} was compared anew; look again")
    closed = {each.day for each in stored if each.closed_at_ms is not None and first != last}
    for day in days_between(first, last):
        yield day, None if day in closed else await close_day(relay, scope, day, actor, reason)


class _Closing(NamedTuple):
    """Who closes a day, why, and which comparison they saw."""

    actor: Actor
    reason: str
    seen_ms: int | None


async def _closed_once(relay: Relay, scope: BooksScope, day: date, closing: _Closing) -> DayReport | None:
    """Compares a day and closes it; None, and nothing is closed, where something was read meanwhile."""
    stores = relay.reconciliation.differences
    turn = await stores.turn(scope.merchant)  # read first: whatever is read behind it is missed by no closing
    last = await stores.last_closed(scope.merchant)
    seen = await _seen(relay, scope, day, last, closing.seen_ms)
    report = await compare_day(relay, scope, day, last)
    changes = changes_between(report_of(seen), report)
    if changes:
        await stores.put_day(stored_of(scope, report))
        raise Refusal(Code.CONFLICT, f"{day} comes to something else by now; look again: {'; '.join(changes)}")
    if await is_changed_lately(relay, scope, day, last, report.ran_at_ms - CLOCKS_MS):
        raise Refusal(Code.CONFLICT, f"something of {day} has changed within this minute: close it in a minute")
    stored = stored_of(scope, report)
    act = closing.actor.did(
        Act.CLOSE_DAY,
        f"{scope.account}/{day}",
        at_ms=max(relay.clock.now_ms(), report.ran_at_ms),
        reason=closing.reason,
        details=f"report {hashlib.sha256(stored.report.encode()).hexdigest()},"
        f" {report.count(BooksVerdict.AGREED)} agreed",
    )
    try:
        is_closed = await stores.close_day(stored, act, seen=last, turn=turn)
    except Outdated:
        raise Refusal(Code.CONFLICT, f"{day} is being closed by somebody else; look again") from None
    return report if is_closed else None


async def _seen(relay: Relay, scope: BooksScope, day: date, last: Closure | None, seen_ms: int | None) -> ReconciledDay:
    """Reads the comparison that a person saw. Raises Refusal (conflict) where the day can't be closed now."""
    stored = await relay.reconciliation.differences.day(scope.merchant, day)
    if stored is not None and stored.closed_at_ms is not None:
        raise Refusal(Code.CONFLICT, f"{day} was closed by {stored.closed_by}: {stored.closed_reason}")
    if last is not None and (day - last.day).days != 1:
        raise Refusal(Code.CONFLICT, f"the last closed day is {last.day}: days are closed one after the other")
    if stored is None:
        raise Refusal(Code.CONFLICT, f"{day} was not compared yet: payrelay reconcile run --day {day}")
    if seen_ms is not None and stored.ran_at_ms != seen_ms:
        raise Refusal(Code.CONFLICT, f"{day} was compared anew; look again")
    return stored
