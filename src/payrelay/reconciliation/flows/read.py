"""Reads what days came to and the differences that are stored; for commands and pages alike."""

from datetime import date

import msgspec

from payrelay.flows.relay import Relay
from payrelay.reconciliation.flows.run_day import report_of
from payrelay.reconciliation.flows.scope import BooksScope
from payrelay.reconciliation.rules.days import DayReport
from payrelay.reconciliation.rules.verdicts import BooksFinding
from payrelay.reconciliation.store.differences import PAGE, Difference
from payrelay.reconciliation.store.stores import ReconciliationStores

DAY_MS = 86_400_000


class DifferenceView(msgspec.Struct, frozen=True, kw_only=True):
    """A difference for people: what it is, how old, who closed it, and whether the last run of its day found it still.

    ``age_days`` counts from the day that it belongs to.
    """

    difference: Difference
    finding: BooksFinding
    age_days: int
    is_found_still: bool


class DayView(msgspec.Struct, frozen=True, kw_only=True):
    """A day as it was last compared, or closed, with its differences as they are stored now."""

    report: DayReport
    differences: list[DifferenceView]
    closed_at_ms: int | None
    closed_by: str | None
    closed_reason: str | None


async def show_day(relay: Relay, scope: BooksScope, day: date) -> DayView | None:
    """Gives a day that was compared; None where it never was. Raises StoreError."""
    stored = await relay.find(ReconciliationStores).differences.day(scope.merchant, day)
    if stored is None:
        return None
    found: list[DifferenceView] = []
    while page := await relay.find(ReconciliationStores).differences.of_day(
        scope.merchant, day, after=found[-1].difference.id if found else "", limit=PAGE
    ):
        found += [difference_view(relay, scope, each, stored.ran_at_ms) for each in page]
    return DayView(
        report=report_of(stored),
        differences=found,
        closed_at_ms=stored.closed_at_ms,
        closed_by=stored.closed_by,
        closed_reason=stored.closed_reason,
    )


async def open_differences(relay: Relay, scope: BooksScope, *, limit: int) -> list[DifferenceView]:
    """Gives the open differences of all days, the oldest first. Raises StoreError."""
    found = await relay.find(ReconciliationStores).differences.open(scope.merchant, limit=limit)
    ran: dict[date, int] = {}
    for each in found:
        if each.booked_on not in ran:
            stored = await relay.find(ReconciliationStores).differences.day(scope.merchant, each.booked_on)
            ran[each.booked_on] = 0 if stored is None else stored.ran_at_ms
    return [difference_view(relay, scope, each, ran[each.booked_on]) for each in found]


def difference_view(relay: Relay, scope: BooksScope, difference: Difference, ran_at_ms: int) -> DifferenceView:
    """Gives a stored difference for people; ``ran_at_ms`` is when its day was last compared."""
    today = scope.zone.day(relay.clock.now_ms())
    return DifferenceView(
        difference=difference,
        finding=msgspec.json.decode(difference.finding, type=BooksFinding),
        age_days=(today - difference.day).days,
        is_found_still=difference.last_found_at_ms >= ran_at_ms,
    )
