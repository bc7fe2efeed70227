"""Chargebacks: each payment that a bank took back, once."""

# ruff: noqa: S608 - only columns named here are put into the texts; values are always parameters

from typing import Final

from payrelay.store.engine.queries import query

CHARGEBACK_COLUMNS: Final = (
    "merchant, payment_id, order_id, account, principal, operation_id, amount_minor, currency, notification_id,"
    " noted_at_ms, part_minor"
)

ADD_CHARGEBACK: Final = query(
    f"""
    INSERT INTO chargebacks ({CHARGEBACK_COLUMNS}, row_digest)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)
    ON CONFLICT (merchant, payment_id) DO NOTHING
    RETURNING payment_id""",
)
"""Stores a chargeback; gives no row where the payment has one already."""

REPLACE_CHARGEBACK: Final = query(
    """
    UPDATE chargebacks
    SET order_id = $3, account = $4, principal = $5, operation_id = $6, amount_minor = $7, currency = $8,
        notification_id = $9, noted_at_ms = $10, part_minor = $11, row_digest = $12
    WHERE merchant = $1 AND payment_id = $2 AND row_digest = $13
    RETURNING payment_id""",
)
"""Stores a chargeback in the place of one with digest $13, which somebody else has written, or which was won since."""

READ_COLUMNS: Final = f"{CHARGEBACK_COLUMNS}, row_digest"

CHARGEBACKS_OF_OPERATION: Final = query(
    f"SELECT {READ_COLUMNS} FROM chargebacks WHERE operation_id = $1 ORDER BY payment_id LIMIT $2",
)
"""Reads the chargebacks of an operation's payments, with their digests."""

CHARGEBACK_OF_PAYMENT: Final = query(
    f"SELECT {READ_COLUMNS} FROM chargebacks WHERE merchant = $1 AND payment_id = $2",
)
"""Reads the chargeback of a payment, with its digest."""
