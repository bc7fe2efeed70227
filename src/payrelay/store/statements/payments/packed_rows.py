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
from payrelay.store.statements.payments.operations import CHAINED_DIGEST, FAILED_REFUNDS, OPERATIONS
from payrelay.store.statements.payments.signed_texts import SIGNED_TEXTS
from payrelay.store.statements.subscriptions import INSTALLMENTS, SUBSCRIPTIONS

__all__ = [
    "ACCEPTED_TOKEN",
    "ACCEPTED_TOKENS",
    "CHARGEBACK",
    "CHARGEBACKS",
    "CHECKOUT",
    "CHECKOUTS",
    "FAILED_REFUND",
    "FAILED_REFUNDS",
    "IMPORTED_PAYMENT",
    "IMPORTED_PAYMENTS",
    "INSTALLMENT",
    "INSTALLMENTS",
    "NOTIFICATION",
    "NOTIFICATIONS",
    "OPERATION",
    "OPERATIONS",
    "PAYMENTS_SEEN",
    "PAYMENT_SEEN",
    "RETURNS_SEEN",
    "RETURN_SEEN",
    "SUBSCRIPTION",
    "SUBSCRIPTIONS",
    "PackedRow",
    "unpacked",
]

OPERATION: Final = OPERATIONS.packed(CHAINED_DIGEST)
CHECKOUT: Final = CHECKOUTS.packed()
SUBSCRIPTION: Final = SUBSCRIPTIONS.packed()
INSTALLMENT: Final = INSTALLMENTS.packed()
ACCEPTED_TOKEN: Final = ACCEPTED_TOKENS.packed()
IMPORTED_PAYMENT: Final = IMPORTED_PAYMENTS.packed()
PAYMENT_SEEN: Final = PAYMENTS_SEEN.packed()
RETURN_SEEN: Final = RETURNS_SEEN.packed()
FAILED_REFUND: Final = FAILED_REFUNDS.packed()
NOTIFICATION: Final = NOTIFICATIONS.packed()
CHARGEBACK: Final = CHARGEBACKS.packed()

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
