"""Closes days and differences that an operator has confirmed, by the flows that the commands use.

Each may be begun a second time, where a process died in the midst of it: what is closed already, by the same person and
with the same reason, is done.
"""

from datetime import date
from typing import NoReturn

from payrelay.errors import Code, Refusal
from payrelay.flows.operators.acting import ActResult, ConfirmedAct
from payrelay.flows.operators.parts import Actor
from payrelay.flows.relay import Relay
from payrelay.reconciliation.acts.book_targets import MONTH, day_in, scope_and_name, seen_in
from payrelay.reconciliation.flows.close import close_day, close_days, close_difference
from payrelay.reconciliation.rules.entries import days_between, last_of_month
from payrelay.reconciliation.store.stores import ReconciliationStores

DAY_SAID = "The day is closed. What becomes known later is a correction in a later day."
MONTH_SAID = "The month is closed. What becomes known later is a correction in a later day."
DIFFERENCE_SAID = "The difference is closed."


async def carry_out_close_day(relay: Relay, act: ConfirmedAct) -> ActResult:
    """Closes a day, or a month, as it was shown. Raises Refusal where that can't be done any more; StoreError."""
    if act.target.noun == MONTH:
        return await _close_month(relay, act)
    named = scope_and_name(relay, act.target.id)
    day = None if named is None else day_in(named[1])
    if named is None or day is None:
        _gone()
    stored = await relay.find(ReconciliationStores).differences.day(named[0].merchant, day)
    if stored is not None and (stored.closed_by, stored.closed_reason) == (act.operator, act.reason):
        return ActResult(said=DAY_SAID)
    [shown] = seen_in(act.confirmation)
    await close_day(relay, named[0], day, _actor(act), act.reason, shown=shown)
    return ActResult(said=DAY_SAID)


async def _close_month(relay: Relay, act: ConfirmedAct) -> ActResult:
    """Closes the days of a month one after the other, and passes over those that are closed."""
    named = scope_and_name(relay, act.target.id)
    first = None if named is None else day_in(f"{named[1]}-01")
    if named is None or first is None:
        _gone()
    days, closed = (first, last_of_month(first)), list[date]()
    shown = dict(zip(days_between(*days), seen_in(act.confirmation), strict=True))
    try:
        async for day, report in close_days(relay, named[0], days, _actor(act), act.reason, shown=shown):
            closed += [day] if report is not None else []
    except Refusal as refusal:
        if not closed:
            raise
        raise Refusal(
            refusal.code, f"the days up to {closed[-1]} are closed now, and no other: {refusal.msg}"
        ) from None
    return ActResult(said=MONTH_SAID)


async def carry_out_close_difference(relay: Relay, act: ConfirmedAct) -> ActResult:
    """Closes a difference as it was shown. Raises Refusal where that can't be done any more; StoreError."""
    named = scope_and_name(relay, act.target.id)
    if named is None:
        _gone()
    scope, name = named
    stored = await relay.find(ReconciliationStores).differences.get(scope.merchant, name)
    if stored is not None and not stored.is_open and stored.closed_by == act.operator:
        return ActResult(said=DIFFERENCE_SAID)
    seen = act.confirmation.seen.partition("-")[0]
    await close_difference(relay, scope, name, _actor(act), act.reason, seen=seen)
    return ActResult(said=DIFFERENCE_SAID)


def _actor(act: ConfirmedAct) -> Actor:
    """Gives the operator under the name that the history gets, which has who proposed it too."""
    return Actor(act.operator, act.by.operator)


def _gone() -> NoReturn:
    raise Refusal(Code.NOT_FOUND, "the account is not configured any more")
