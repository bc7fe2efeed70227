"""What people look for in the console: by what a client or a customer names, and what hangs on one order."""

# ruff: noqa: S608 - only columns named here are put into the texts; values are always parameters

from typing import Final

from payrelay.store.engine.queries import Query, query
from payrelay.store.events.feed import EVENTS
from payrelay.store.statements.checkouts import CHECKOUTS
from payrelay.store.statements.events.deliveries import DELIVERY_COLUMNS
from payrelay.store.statements.payments.operations import READ_COLUMNS as OPERATION_COLUMNS
from payrelay.store.statements.subscriptions import INSTALLMENTS

OPERATIONS_OF_REQUEST: Final = query(
    f"SELECT {OPERATION_COLUMNS} FROM operations WHERE request_id = $1 ORDER BY id DESC LIMIT $2",
)
"""Finds the operations that a request began, newest first."""

OPERATIONS_OF_KEY: Final = query(
    f"""
    SELECT {OPERATION_COLUMNS} FROM operations WHERE claim = $2
    UNION ALL
    SELECT {OPERATION_COLUMNS} FROM operations WHERE idempotency_key = $1 AND claim IS NULL
    ORDER BY id DESC LIMIT $3""",
)
"""Finds the operations of all accounts and principals under an Idempotency-Key, by the key or by its claim."""


def _checkouts_of(column: str) -> Query:
    return query(f"{CHECKOUTS.select} WHERE {column} = $1 ORDER BY id DESC LIMIT $2")


CHECKOUTS_OF: Final = {
    column: _checkouts_of(column)
    for column in (
        *("request_id", "key_hash", "reference_hash", "payment_id", "subscription_id"),
        *("customer_id", "bound_customer_id"),
    )
}
"""Finds the checkouts of all accounts and principals that have a value in one column, newest first."""

PLANS_OF_PAYMENT: Final = query(
    "SELECT DISTINCT merchant, subscription_id FROM installments WHERE payment = $1 LIMIT $2",
)
"""Finds the subscriptions of which a payment is an installment."""

INSTALLMENTS_OF: Final = query(
    f"""
    {INSTALLMENTS.select}
    WHERE merchant = $1 AND subscription_id = $2 ORDER BY at_ms DESC LIMIT $3""",
)
"""Reads the installments of a subscription with their digests, the newest first."""

EVENTS_ABOUT: Final = query(
    f"{EVENTS.select} WHERE subject = $1 AND merchant = $2 ORDER BY position LIMIT $3",
)
"""Reads the events about one subject, whoever gets them, the oldest first."""

_COLUMNS: Final = ", ".join(f"deliveries.{name}" for name in DELIVERY_COLUMNS.split(", "))
_DELIVERIES: Final = f"""
    SELECT {_COLUMNS}, events.type, endpoints.id, endpoints.label
    FROM endpoints
    JOIN deliveries ON deliveries.endpoint_id = endpoints.id
    JOIN events ON events.position = deliveries.position
    WHERE endpoints.merchant = $1 AND deliveries.position {{among}}
    ORDER BY deliveries.position, endpoints.id LIMIT $3"""

DELIVERIES_AT: Final = query(
    _DELIVERIES.format(among="= ANY (ARRAY(SELECT wanted::bigint FROM json_array_elements_text($2::json) AS wanted))"),
    sqlite=(_DELIVERIES.format(among="IN (SELECT value FROM json_each($2))"),),
)
"""Reads what became of the events at some positions, a JSON list, at each endpoint of a merchant."""
