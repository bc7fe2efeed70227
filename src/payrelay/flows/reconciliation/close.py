"""Closes differences and days: a person does, with a reason, and the history of acts has it.

Nothing closes by itself. A difference that is closed stays so until a run finds that it says something else.
"""

import hashlib
from datetime import date

from payrelay.core.console.roles import Act
from payrelay.core.reconciliation.days import DayReport
from payrelay.core.reconciliation.verdicts import BooksVerdict
from payrelay.errors import Code, Outdated, Refusal
from payrelay.flows.console.parts import Actor
from payrelay.flows.reconciliation.run_day import report_of
from payrelay.flows.reconciliation.scope import BooksScope
from payrelay.flows.relay import Relay
from payrelay.store.reconciliation.differences import Difference


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
    """Closes a day as it was last compared. Open differences don't keep it open, and stay open.

    ``seen_ms`` is when it had been compared as the actor was shown it.

    Raises Refusal: forbidden; conflict where the day isn't over, was not compared, is closed, or isn't the next one.
    Raises StoreError.
    """
    actor.require(Act.CLOSE_DAY)
    now_ms = relay.clock.now_ms()
    if now_ms < scope.zone.ends_ms(day):
        raise Refusal(Code.CONFLICT, f"{day} is not over in {scope.zone.name}")
    last = await relay.reconciliation.differences.last_closed(scope.merchant)
    stored = await relay.reconciliation.differences.day(scope.merchant, day)
    if stored is not None and stored.closed_at_ms is not None:
        raise Refusal(Code.CONFLICT, f"{day} was closed by {stored.closed_by}: {stored.closed_reason}")
    if last is not None and (day - last.day).days != 1:
        raise Refusal(Code.CONFLICT, f"the last closed day is {last.day}: days are closed one after the other")
    if stored is None:
        raise Refusal(Code.CONFLICT, f"{day} was not compared yet: payrelay reconcile run --day {day}")
    if seen_ms is not None and stored.ran_at_ms != seen_ms:
        raise Refusal(Code.CONFLICT, f"{day} was compared anew; look again")
    report = report_of(stored)
    digest = hashlib.sha256(stored.report.encode()).hexdigest()
    act = actor.did(
        Act.CLOSE_DAY,
        f"{scope.account}/{day}",
        at_ms=now_ms,
        reason=reason,
        details=f"report {digest}, {report.count(BooksVerdict.AGREED)} agreed",
    )
    try:
        await relay.reconciliation.differences.close_day(stored, act)
    except Outdated:
        raise Refusal(Code.CONFLICT, f"{day} was compared anew; look again") from None
    return report
