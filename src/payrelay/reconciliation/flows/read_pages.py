"""Reads what the console shows of the books: a month with all of its days, and one day page by page.

Everything has a bound: a page of a day lists so many differences, and a month reads no list of findings.
"""

from collections.abc import Mapping
from datetime import date, timedelta
from typing import Final

import msgspec

from payrelay.flows.relay import Relay
from payrelay.reconciliation.flows.read import DifferenceView, difference_view, open_differences
from payrelay.reconciliation.flows.run_day import report_of
from payrelay.reconciliation.flows.scope import BooksScope
from payrelay.reconciliation.rules.days import DayReport, Sum, Unseen
from payrelay.reconciliation.rules.entries import last_of_month
from payrelay.reconciliation.rules.verdicts import BooksFinding
from payrelay.reconciliation.store.differences import ReconciledDay
from payrelay.reconciliation.store.stores import ReconciliationStores

SHOWN_MAX: Final = 100
"""Differences on one page of a day, and of the list of all days."""
OTHERS_MAX: Final = 200
"""Other findings on the page of a day; the table to be saved has all that the report lists."""
SAVED_MAX: Final = 10_000
"""Lines of a table to be saved."""


class DaySums(msgspec.Struct, frozen=True, kw_only=True):
    """What a report says of a day, without its findings; the members are those of ``DayReport``."""

    ran_at_ms: int
    sums: tuple[Sum, ...]
    corrections: tuple[Sum, ...]
    unseen: tuple[Unseen, ...]
    rests_on: tuple[str, ...]


class ListedDay(msgspec.Struct, frozen=True, kw_only=True):
    """One of several days.

    Attributes:
        day, age_days: which day, and how long ago it was.
        sums: what it came to; None where it was not compared.
        closed_at_ms, closed_by: None where it is open.
        open_differences: how many of its differences nobody has closed.
        is_next: it is the first day that can be closed.
    """

    day: date
    age_days: int
    sums: DaySums | None
    closed_at_ms: int | None
    closed_by: str | None
    open_differences: int
    is_next: bool


class DaysView(msgspec.Struct, frozen=True, kw_only=True):
    """Days of an account's books, such as a month, as far as they have come.

    Attributes:
        first, last: the first and the last day.
        days: from the first day to today, or to the last one.
        closed_to: the newest closed day of all; None where none is.
        oldest: the oldest open differences of all days, at most SHOWN_MAX.
    """

    account: str
    timezone: str
    first: date
    last: date
    days: list[ListedDay]
    closed_to: date | None
    oldest: list[DifferenceView]


class BooksDayView(msgspec.Struct, frozen=True, kw_only=True):
    """One day for the console's page of it.

    Attributes:
        report: as it was last compared, or closed.
        age_days: how long ago it was.
        closed_at_ms, closed_by, closed_reason: None where it is open.
        differences: a page of its differences, as they are stored now.
        more: the id behind which the next page begins; None at the end.
        others: what else the report lists: what is open or can't be known, and corrections that agree.
        others_left_out: how many of them are not among ``others``.
        is_next: it is the first day that can be closed, and is over.
    """

    report: DayReport
    age_days: int
    closed_at_ms: int | None
    closed_by: str | None
    closed_reason: str | None
    differences: list[DifferenceView]
    more: str | None
    others: list[BooksFinding]
    others_left_out: int
    is_next: bool

    @property
    def is_closed(self) -> bool:
        """True where a person has closed it."""
        return self.closed_at_ms is not None


async def default_month(relay: Relay, scope: BooksScope) -> date:
    """Gives the month of the next day to be closed, or else this one, as its first day. Raises StoreError."""
    closure = await relay.find(ReconciliationStores).differences.last_closed(scope.merchant)
    today = scope.zone.day(relay.clock.now_ms())
    day = today if closure is None else min(today, closure.day + timedelta(days=1))
    return day.replace(day=1)


async def read_month(relay: Relay, scope: BooksScope, first: date) -> DaysView:
    """Gives the month that begins on a day, up to today. Raises StoreError."""
    return await read_days(relay, scope, first, last_of_month(first))


async def read_days(relay: Relay, scope: BooksScope, first: date, last: date) -> DaysView:
    """Gives the days from the first to the last, up to today. Raises StoreError."""
    stores, today = relay.find(ReconciliationStores).differences, scope.zone.day(relay.clock.now_ms())
    stored = {each.day: each for each in await stores.days(scope.merchant, first, last)}
    opened = await stores.open_by_day(scope.merchant, first, last)
    closure = await stores.last_closed(scope.merchant)
    shown = max([min(last, today), *stored], default=first)
    days = (first + timedelta(days=number) for number in range((shown - first).days + 1))
    closed_to = None if closure is None else closure.day
    return DaysView(
        account=scope.account,
        timezone=scope.zone.name,
        first=first,
        last=last,
        days=[_listed_day(each, today, stored, opened, closed_to) for each in days],
        closed_to=closed_to,
        oldest=await open_differences(relay, scope, limit=SHOWN_MAX),
    )


async def read_books_day(
    relay: Relay, scope: BooksScope, day: date, *, after: str = "", limit: int = SHOWN_MAX, others: int = OTHERS_MAX
) -> BooksDayView | None:
    """Gives a day that was compared, with its differences behind an id; None where it never was. Raises StoreError."""
    stores = relay.find(ReconciliationStores).differences
    stored = await stores.day(scope.merchant, day)
    if stored is None:
        return None
    report, now_ms = report_of(stored), relay.clock.now_ms()
    page = await stores.of_day(scope.merchant, day, after=after, limit=limit + 1)
    closure = await stores.last_closed(scope.merchant)
    else_listed = [each for each in report.listed if not each.is_difference]
    if stored.closed_at_ms is not None:
        else_listed += await _moved(relay, scope, report, {each.id for each in page})
    is_next = closure is None or (day - closure.day).days == 1
    return BooksDayView(
        report=report,
        age_days=(scope.zone.day(now_ms) - day).days,
        closed_at_ms=stored.closed_at_ms,
        closed_by=stored.closed_by,
        closed_reason=stored.closed_reason,
        differences=[difference_view(relay, scope, each, stored.ran_at_ms) for each in page[:limit]],
        more=page[limit - 1].id if len(page) > limit else None,
        others=else_listed[:others],
        others_left_out=max(0, len(else_listed) - others),
        is_next=is_next and stored.closed_at_ms is None and now_ms >= scope.zone.ends_ms(day),
    )


async def _moved(relay: Relay, scope: BooksScope, report: DayReport, here: set[str]) -> list[BooksFinding]:
    """Gives the differences that a closed day was closed with, and that a later day has by now."""
    found = []
    for each in report.listed:
        if each.is_difference and each.id not in here:
            stored = await relay.find(ReconciliationStores).differences.get(scope.merchant, each.id)
            if stored is None or stored.booked_on != report.day:
                found.append(each)
    return found


def _listed_day(
    day: date, today: date, stored: Mapping[date, ReconciledDay], opened: Mapping[date, int], closed_to: date | None
) -> ListedDay:
    known = stored.get(day)
    is_closed = known is not None and known.closed_at_ms is not None
    follows = closed_to is not None and (day - closed_to).days == 1
    is_first = closed_to is None and known is not None and not any(each < day for each in stored)
    return ListedDay(
        day=day,
        age_days=(today - day).days,
        sums=None if known is None else msgspec.json.decode(known.report, type=DaySums),
        closed_at_ms=None if known is None else known.closed_at_ms,
        closed_by=None if known is None else known.closed_by,
        open_differences=opened.get(day, 0),
        is_next=(follows or is_first) and not is_closed and day < today,
    )
