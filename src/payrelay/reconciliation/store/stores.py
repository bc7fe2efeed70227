"""The stores of a reconciliation, as one process has opened them."""

from typing import NamedTuple

from payrelay.reconciliation.store.books import Books
from payrelay.reconciliation.store.differences import Differences
from payrelay.reconciliation.store.lines import Lines
from payrelay.store.digests.rows import RowDigests
from payrelay.store.engine.database import Database
from payrelay.store.operators.acts import OperatorActs


class ReconciliationStores(NamedTuple):
    """Our books, what the statements say, and what a comparison of both found.

    ``timezone`` is that in which the days of the books end; None for each gateway's own.
    """

    books: Books
    lines: Lines
    differences: Differences
    timezone: str | None = None


def reconciliation_stores(
    database: Database, rows: RowDigests, secret: bytes, timezone: str | None = None
) -> ReconciliationStores:
    """Makes the stores of a database; ``secret`` is the key of the audit chain."""
    acts = OperatorActs(database, secret)
    return ReconciliationStores(Books(database, rows), Lines(database), Differences(database, acts), timezone)
