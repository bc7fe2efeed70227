"""The stores of a reconciliation, as one process has opened them."""

from typing import NamedTuple

from payrelay.reconciliation.store.books import Books
from payrelay.reconciliation.store.differences import Differences
from payrelay.reconciliation.store.lines import Lines
from payrelay.store.digests.rows import RowDigests
from payrelay.store.engine.database import Database
from payrelay.store.operators.acts import OperatorActs


class ReconciliationStores(NamedTuple):
    """Our books, what the statements say, and what a comparison of both found."""

    books: Books
    lines: Lines
    differences: Differences


def reconciliation_stores(database: Database, rows: RowDigests, secret: bytes) -> ReconciliationStores:
    """Makes the stores of a database; ``secret`` is the key of the audit chain."""
    acts = OperatorActs(database, secret)
    return ReconciliationStores(Books(database, rows), Lines(database), Differences(database, acts))
