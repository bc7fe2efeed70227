"""Gives compared days for a journal, one at a time, however many they are."""

from collections.abc import AsyncIterator
from datetime import date
from typing import Final

from payrelay.errors import Code, Refusal
from payrelay.flows.relay import Relay
from payrelay.reconciliation.flows.run_day import report_of
from payrelay.reconciliation.flows.scope import BooksScope
from payrelay.reconciliation.rules.entries import days_between
from payrelay.reconciliation.rules.journal import JournalDay
from payrelay.reconciliation.store.stores import ReconciliationStores

DAYS_MAX: Final = 400
"""Days of one journal: a year, and the month before it."""


async def journal_days(relay: Relay, scope: BooksScope, first: date, last: date) -> AsyncIterator[JournalDay]:
    """Gives each day from the first to the last, as it was closed, or last compared.

    Raises Refusal (invalid_request) where there is no day between them, or too many are; StoreError.
    """
    if not 0 <= (last - first).days < DAYS_MAX:
        raise Refusal(Code.INVALID_REQUEST, f"{first} to {last} must be 1 to {DAYS_MAX} days")
    for day in days_between(first, last):
        stored = await relay.find(ReconciliationStores).differences.day(scope.merchant, day)
        report = None if stored is None else report_of(stored)
        is_closed = stored is not None and stored.closed_at_ms is not None
        yield JournalDay(day=day, report=report, is_closed=is_closed)
