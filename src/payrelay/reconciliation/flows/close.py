"""Closes differences and days: a person does, with a reason, and the history of acts has it.

Rules:

1. Nothing closes by itself. A difference that is closed stays so until a run finds that it says something else.
2. A day is closed as a person was shown it: the comparison, and how many of its differences were open. It is compared
   anew, and isn't closed where it comes to something else. What was shown is compared in the unit that closes it.
3. What that comparison read is of the closed day. Everything else is a correction in a later day.
4. A statement that is read meanwhile makes the day be compared again. What changed in our own books within the last
   minute has to wait for that minute.
"""

import hashlib
from collections.abc import AsyncIterator, Iterable, Mapping
from datetime import date, timedelta
from typing import Final, NamedTuple

from payrelay.core.operators.roles import Act
from payrelay.errors import Code, Outdated, Refusal
from payrelay.flows.operators.parts import Actor
from payrelay.flows.relay import Relay
from payrelay.reconciliation.flows.run_day import compare_day, is_changed_lately, report_of, stored_of
from payrelay.reconciliation.flows.scope import BooksScope
from payrelay.reconciliation.rules.changes import changes_between
from payrelay.reconciliation.rules.days import CLOCKS_MS, Closure, DayReport, SeenDay, differences_changed
from payrelay.reconciliation.rules.entries import days_between
from payrelay.reconciliation.rules.verdicts import BooksVerdict
from payrelay.reconciliation.store.differences import Difference, ReconciledDay
from payrelay.reconciliation.store.stores import ReconciliationStores

_NAMED_MAX: Final = 10
"""Days that an error names; a month may lack all of them."""
_COMPARISONS_MAX: Final = 3
"""How often a day is compared anew because a statement was read meanwhile."""


async def close_difference(
    relay: Relay, scope: BooksScope, difference_id: str, actor: Actor, reason: str, *, seen: str | None = None
) -> Difference:
    """Closes a difference as it is stored now; gives it as it was. ``seen`` is its digest as the actor was shown it.

    Raises Refusal: forbidden; not_found; conflict where it is closed, or says something else by now. Raises StoreError.
    """
    actor.require(Act.CLOSE_DIFFERENCE)
    found = await relay.find(ReconciliationStores).differences.get(scope.merchant, difference_id)
    if found is None:
        raise Refusal(Code.NOT_FOUND, f"there is no difference {difference_id} on {scope.account}")
    if not found.is_open:
        raise Refusal(Code.CONFLICT, f"{difference_id} was closed by {found.closed_by}: {found.closed_reason}")
    if seen is not None and found.digest != seen:
        raise Refusal(Code.CONFLICT, f"{difference_id} says something else by now; look again")
    act = actor.did(
        Act.CLOSE_DIFFERENCE,
        difference_id,
        at_ms=relay.clock.now_ms(),
        reason=reason,
        details=f"{scope.account}, {found.movement} {found.identity}, day {found.day}, content {found.content}",
    )
    try:
        await relay.find(ReconciliationStores).differences.close(found, act)
    except Outdated:
        raise Refusal(Code.CONFLICT, f"{difference_id} says something else by now; look again") from None
    return found


async def close_day(
    relay: Relay, scope: BooksScope, day: date, actor: Actor, reason: str, *, shown: SeenDay | None = None
) -> DayReport:
    """Closes a day that still comes to what the last comparison showed. Open differences don't keep it open.

    ``shown`` is the day as the actor was shown it; None stands for the day as it is stored now.

    Raises Refusal: forbidden; conflict where the day isn't over, was not compared, is closed, isn't the next one, is
    not as it was shown, or comes to something else by now, which is named, and stored as the last comparison. Raises
    StoreError.
    """
    actor.require(Act.CLOSE_DAY)
    if relay.clock.now_ms() < scope.zone.ends_ms(day):
        raise Refusal(Code.CONFLICT, f"{day} is not over in {scope.zone.name}")
    if shown is None:
        shown = seen_days(*await _stored(relay, scope, (day, day))).get(day)
    for _ in range(_COMPARISONS_MAX):
        closed = await _closed_once(relay, scope, day, _Closing(actor, reason, shown))
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
    shown: Mapping[date, SeenDay] | None = None,
) -> AsyncIterator[tuple[date, DayReport | None]]:
    """Closes the days from a first to a last one after the other, and gives each; of several None for a closed one.

    It ends at the first day that can't be closed; what was closed before it stays closed, and it may be begun again.
    ``shown`` is each day as the actor was shown it; None stands for the days as they are stored at the beginning.

    Raises Refusal, before anything is closed: forbidden; conflict where a day isn't over, was not compared, is not as
    it was shown, or there is a gap to the last closed day. Raises what ``close_day`` raises.
    """
    actor.require(Act.CLOSE_DAY)
    first, last = days
    if relay.clock.now_ms() < scope.zone.ends_ms(last):
        raise Refusal(Code.CONFLICT, f"{last} is not over in {scope.zone.name}")
    stored, opened = await _stored(relay, scope, days)
    missing = sorted(set(days_between(first, last)) - {each.day for each in stored})
    if missing:
        named = ", ".join(map(str, missing[:_NAMED_MAX])) + (", …" if len(missing) > _NAMED_MAX else "")
        raise Refusal(Code.CONFLICT, f"not compared yet, so that nothing is closed: {named}")
    before = await relay.find(ReconciliationStores).differences.last_closed(scope.merchant)
    if before is not None and before.day < first - timedelta(days=1):
        raise Refusal(Code.CONFLICT, f"the last closed day is {before.day}: days are closed one after the other")
    now = seen_days(stored, opened)
    shown = now if shown is None else shown
    for each in stored:
        is_own = (each.closed_by, each.closed_reason) == (actor.name, reason)  # begun before, and carried on now
        if not is_own:
            _require_as_shown(each.day, shown[each.day], now[each.day])
    for day in days_between(first, last):
        is_closed = now[day].is_closed and first != last
        yield day, None if is_closed else await close_day(relay, scope, day, actor, reason, shown=shown[day])


def seen_days(stored: Iterable[ReconciledDay], opened: Mapping[date, int]) -> dict[date, SeenDay]:
    """Gives days as a person is shown them; ``opened`` counts the open differences of each day that has any."""
    return {
        each.day: SeenDay(each.ran_at_ms, opened.get(each.day, 0), each.closed_at_ms is not None) for each in stored
    }


async def _stored(
    relay: Relay, scope: BooksScope, days: tuple[date, date]
) -> tuple[list[ReconciledDay], dict[date, int]]:
    """Reads the days that were compared, and their open differences, from a first to a last day."""
    stores = relay.find(ReconciliationStores).differences
    return await stores.days(scope.merchant, *days), await stores.open_by_day(scope.merchant, *days)


def _require_as_shown(day: date, shown: SeenDay, now: SeenDay) -> None:
    """Raises Refusal (conflict), which says what of a day is otherwise now."""
    if shown.is_closed != now.is_closed:
        raise Refusal(Code.CONFLICT, f"{day} was closed meanwhile; look again")
    if shown.ran_at_ms != now.ran_at_ms:
        raise Refusal(Code.CONFLICT, f"{day} was compared anew; look again")
    if shown.open_differences != now.open_differences:
        raise differences_changed(day)


class _Closing(NamedTuple):
    """Who closes a day, why, and as they were shown it; None where it was not compared."""

    actor: Actor
    reason: str
    shown: SeenDay | None


async def _closed_once(relay: Relay, scope: BooksScope, day: date, closing: _Closing) -> DayReport | None:
    """Compares a day and closes it; None, and nothing is closed, where something was read meanwhile."""
    stores = relay.find(ReconciliationStores).differences
    turn = await stores.turn(scope.merchant)  # read first: whatever is read behind it is missed by no closing
    last = await stores.last_closed(scope.merchant)
    seen, shown = await _seen(relay, scope, day, last, closing.shown)
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
        is_closed = await stores.close_day(stored, act, shown=shown, before=last, turn=turn)
    except Outdated:
        raise Refusal(Code.CONFLICT, f"{day} is being closed or compared by somebody else; look again") from None
    return report if is_closed else None


async def _seen(
    relay: Relay, scope: BooksScope, day: date, last: Closure | None, shown: SeenDay | None
) -> tuple[ReconciledDay, SeenDay]:
    """Reads the comparison that a person was shown. Raises Refusal (conflict) where the day can't be closed now."""
    stored = await relay.find(ReconciliationStores).differences.day(scope.merchant, day)
    if stored is not None and stored.closed_at_ms is not None:
        raise Refusal(Code.CONFLICT, f"{day} was closed by {stored.closed_by}: {stored.closed_reason}")
    if last is not None and (day - last.day).days != 1:
        raise Refusal(Code.CONFLICT, f"the last closed day is {last.day}: days are closed one after the other")
    if stored is None or shown is None:
        raise Refusal(Code.CONFLICT, f"{day} was not compared yet: payrelay reconcile run --day {day}")
    if stored.ran_at_ms != shown.ran_at_ms:
        raise Refusal(Code.CONFLICT, f"{day} was compared anew; look again")
    return stored, shown
