"""Whole rows with their digests, each as one value: for those who draw a conclusion from rows of several tables."""

from typing import Final, NamedTuple

import msgspec

from payrelay.store.engine.database import Row, Value
from payrelay.store.engine.tables import Table
from payrelay.store.statements.chargebacks import CHARGEBACKS
from payrelay.store.statements.checkouts import CHECKOUTS
from payrelay.store.statements.gateways.readings import PAYMENTS_SEEN, RETURNS_SEEN
from payrelay.store.statements.imports.payments import IMPORTED_PAYMENTS
from payrelay.store.statements.inbox import ACCEPTED_TOKENS, NOTIFICATIONS
from payrelay.store.statements.payments.operations import FAILED_REFUNDS, OPERATIONS
from payrelay.store.statements.payments.signed_texts import SIGNED_TEXTS
from payrelay.store.statements.subscriptions import INSTALLMENTS, SUBSCRIPTIONS

__all__ = [
    "ACCEPTED_TOKENS",
    "CHARGEBACKS",
    "CHECKOUTS",
    "FAILED_REFUNDS",
    "IMPORTED_PAYMENTS",
    "INSTALLMENTS",
    "NOTIFICATIONS",
    "OPERATIONS",
    "PAYMENTS_SEEN",
    "RETURNS_SEEN",
    "SUBSCRIPTIONS",
    "PackedRow",
    "unpacked",
]


_TABLES: Final = {
    table.name: table
    for table in (
        *(OPERATIONS, CHECKOUTS, SUBSCRIPTIONS, INSTALLMENTS, ACCEPTED_TOKENS, IMPORTED_PAYMENTS),
        *(PAYMENTS_SEEN, RETURNS_SEEN, FAILED_REFUNDS, NOTIFICATIONS, CHARGEBACKS, SIGNED_TEXTS),
    )
}


class PackedRow(NamedTuple):
    """A row with its digest behind it, which a statement gave as one value (``Table.packed``)."""

    table: Table
    row: Row

    @property
    def name(self) -> str:
        """Names the row in alerts: its table and its key."""
        return self.table.name_of(self.row)

    def value(self, column: str) -> Value:
        """Gives a column of the row; None also where the table has no such column."""
        return self.row[self.table.columns.index(column)] if column in self.table.columns else None


def unpacked(value: Value) -> PackedRow:
    """Gives the row that a statement gave as one value."""
    name, *row = msgspec.json.decode(str(value))
    return PackedRow(_TABLES[name], row)
