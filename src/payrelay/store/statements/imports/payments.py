"""Statements about imported payments."""

# ruff: noqa: S608 - only columns named here are put into the texts; values are always parameters

from typing import Final

from payrelay.core.payments.imported import ImportedPayment
from payrelay.core.payments.operation import PAYMENT_KINDS, Kind
from payrelay.store.engine.queries import query
from payrelay.store.engine.tables import StructTable, columns_for
from payrelay.store.statements.payment_owners import IS_OPEN_OR_FAILED, WAS_NOT_EXECUTED, listed

IMPORTED_PAYMENTS: Final = StructTable(
    name="imported_payments", kind=ImportedPayment, columns=columns_for(ImportedPayment), keys=2
)

GET_IMPORTED: Final = query(
    f"{IMPORTED_PAYMENTS.select} WHERE merchant = $1 AND payment_id = $2",
)
"""Reads one imported payment."""

ADD_IMPORTED: Final = query(
    f"""
    {IMPORTED_PAYMENTS.insert()}
    ON CONFLICT (merchant, payment_id) DO NOTHING
    RETURNING payment_id""",
)
"""Stores an imported payment; gives no row, and writes nothing, where it is there already."""

CHANGE_IMPORTED: Final = query(
    """
    UPDATE imported_payments SET status = $3, row_digest = $4
    WHERE merchant = $1 AND payment_id = $2 AND row_digest = $5 RETURNING payment_id""",
)
"""Stores another status of an imported payment; gives no row where the row was changed since it was read."""

MAY_BE_OURS: Final = query(
    f"""
    SELECT id FROM operations
    WHERE order_id = $1 AND merchant = $2 AND kind IN {listed(PAYMENT_KINDS)} AND NOT {WAS_NOT_EXECUTED}
    UNION ALL
    SELECT id FROM checkouts WHERE order_id = $1 AND merchant = $2
    UNION ALL
    SELECT id FROM operations
    WHERE subscription_id = $3::text AND merchant = $2 AND kind = '{Kind.RETRY}' AND {IS_OPEN_OR_FAILED}
    LIMIT 1""",
)
"""Finds an operation or a checkout here that may own a payment of order $1 or of subscription $3."""

IMPORTED_OF_ORDER: Final = query(
    f"""
    {IMPORTED_PAYMENTS.select}
    WHERE order_id = $1 AND merchant = $2 ORDER BY payment_id LIMIT $3""",
)
"""Reads the imported payments of an order."""

RECEIVED_ORDER: Final = query(
    f"""
    {IMPORTED_PAYMENTS.select}
    WHERE merchant = $1 AND status = 'RECEIVED' AND order_id <> $2
    ORDER BY length(payment_id) DESC, payment_id DESC LIMIT 1""",
)
"""Finds another order that was paid before: the one with the newest imported payment."""
