"""Chargebacks: each payment that a bank took back, once."""

# ruff: noqa: S608 - only columns named here are put into the texts; values are always parameters

from typing import Final

from payrelay.core.orders.chargeback import Chargeback
from payrelay.store.engine.queries import query
from payrelay.store.engine.tables import StructTable, columns_for

CHARGEBACKS: Final = StructTable(name="chargebacks", kind=Chargeback, columns=columns_for(Chargeback), keys=2)

ADD_CHARGEBACK: Final = query(
    f"""
    {CHARGEBACKS.insert()}
    ON CONFLICT (merchant, payment_id) DO NOTHING
    RETURNING payment_id""",
)
"""Stores a chargeback; gives no row where the payment has one already."""

REPLACE_CHARGEBACK: Final = query(
    f"""
    UPDATE chargebacks SET {CHARGEBACKS.replaced}
    WHERE merchant = $1 AND payment_id = $2 AND row_digest = $13
    RETURNING payment_id""",
)
"""Stores a chargeback in the place of one with digest $13, which somebody else has written, or which was won since."""

CHARGEBACKS_OF_OPERATION: Final = query(
    f"{CHARGEBACKS.select} WHERE operation_id = $1 ORDER BY payment_id LIMIT $2",
)
"""Reads the chargebacks of an operation's payments, with their digests."""

CHARGEBACK_OF_PAYMENT: Final = query(
    f"{CHARGEBACKS.select} WHERE merchant = $1 AND payment_id = $2",
)
"""Reads the chargeback of a payment, with its digest."""
