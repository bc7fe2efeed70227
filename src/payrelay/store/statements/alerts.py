"""Alerts: one for each time that an operation, notification or checkout needs an operator, or an endpoint was stopped.

Rows whose digests are wrong have one each, and of the audit's anchors one a day is told in the same way.

Each kind of subject has a table of its own. The tables differ only in the name of the subject's column.
"""

# ruff: noqa: S608 - only tables and columns named here are put into the texts; values are always parameters

from typing import Final, NamedTuple

from payrelay.store.engine.queries import Query, query


class AlertQueries(NamedTuple):
    """The statements on one of the tables.

    Attributes:
        lease_due: leases alerts that are due until $2, so that no other process gives them meanwhile.
        next_due: reads when the next alert is due.
        end: stores that an alert is not given again, and which channels have it.
        put_off: stores when an alert is due again, unless another process has leased it meanwhile.
    """

    lease_due: Query
    next_due: Query
    end: Query
    put_off: Query


def _queries(table: str, key: str) -> AlertQueries:
    columns = f"{key}, version, created_at_ms, next_try_at_ms, attempts, given_to"
    return AlertQueries(
        lease_due=query(
            f"""
            UPDATE {table} SET next_try_at_ms = $2::bigint
            WHERE ({key}, version) IN (
                SELECT {key}, version FROM {table} WHERE next_try_at_ms <= $1::bigint ORDER BY next_try_at_ms LIMIT $3
                FOR UPDATE SKIP LOCKED
            )
            RETURNING {columns}""",
        ),
        next_due=query(f"SELECT min(next_try_at_ms) FROM {table} WHERE next_try_at_ms IS NOT NULL"),
        end=query(
            f"""
            UPDATE {table} SET next_try_at_ms = NULL, attempts = attempts + 1, given_to = $3
            WHERE {key} = $1 AND version = $2
            RETURNING version""",
        ),
        put_off=query(
            f"""
            UPDATE {table} SET next_try_at_ms = $4, attempts = attempts + 1, given_to = $5
            WHERE {key} = $1 AND version = $2 AND next_try_at_ms = $3
            RETURNING version""",
        ),
    )


OF_OPERATIONS: Final = _queries("alerts", "operation_id")
OF_NOTIFICATIONS: Final = _queries("notification_alerts", "notification_id")
OF_ENDPOINTS: Final = _queries("endpoint_alerts", "endpoint_id")
OF_CHECKOUTS: Final = _queries("checkout_alerts", "checkout_id")
OF_ROWS: Final = _queries("row_alerts", "row_name")
OF_ANCHORS: Final = _queries("anchor_alerts", "anchor")

ADD_OPERATION_ALERT: Final = query(
    """
    INSERT INTO alerts (operation_id, version, created_at_ms, next_try_at_ms)
    SELECT $1::text, $2::bigint, $3::bigint, $3::bigint
    WHERE NOT EXISTS (
        SELECT 1 FROM history WHERE operation_id = $1::text AND version = $2::bigint - 1 AND state = 'needs_attention'
    )""",
)
"""Writes, beside the change, the alert that an operation came to need attention; not where it needed attention before.
"""

ADD_HELD_ALERT: Final = query(
    """
    INSERT INTO alerts (operation_id, version, created_at_ms, next_try_at_ms)
    SELECT $1::text, $2::bigint, $3::bigint, CASE WHEN EXISTS (
        SELECT 1 FROM alerts
        WHERE version = 1 AND created_at_ms > $4::bigint AND (attempts > 0 OR next_try_at_ms IS NOT NULL)
    ) THEN NULL ELSE $3::bigint END""",
)
"""Writes, beside a new held operation, its alert; one that is not given where another was given after $4. Only a held
operation has an alert at its first version."""

ADD_ENDPOINT_ALERT: Final = query(
    """
    INSERT INTO endpoint_alerts (endpoint_id, version, created_at_ms, next_try_at_ms)
    VALUES ($1, $2, $3, $4) ON CONFLICT DO NOTHING""",
)
"""Writes, beside the change, the alert that an endpoint was stopped."""

ADD_CHECKOUT_ALERT: Final = query(
    """
    INSERT INTO checkout_alerts (checkout_id, version, created_at_ms, next_try_at_ms)
    SELECT $1::text, $2::bigint, $3::bigint, $3::bigint
    WHERE NOT EXISTS (
        SELECT 1 FROM notifications
        WHERE merchant = $4 AND order_id = $5 AND subscription_id = $6 AND state = 'needs_attention'
    )
    ON CONFLICT DO NOTHING
    RETURNING version""",
)
"""Writes the alert that a subscription contradicts what its checkout asked for, once for each subscription. Gives no
row where there is an alert, or a notification of the subscription needs attention already."""

ADD_PAYMENT_ALERT: Final = query(
    """
    INSERT INTO checkout_alerts (checkout_id, version, created_at_ms, next_try_at_ms)
    SELECT $1::text, $2::bigint, $3::bigint, $3::bigint
    WHERE NOT EXISTS (
        SELECT 1 FROM notifications
        WHERE merchant = $4 AND order_id = $5 AND payment_id = $6 AND state = 'needs_attention'
    )
    ON CONFLICT DO NOTHING
    RETURNING version""",
)
"""Writes the alert that nothing explains a payment of a checkout's order, once for each payment. Its version is minus
the payment's number: that of a subscription is above 0."""

FORGET_ENDPOINT_ALERTS: Final = query("DELETE FROM endpoint_alerts WHERE endpoint_id = $1")
"""Forgets the alerts about an endpoint."""

ADD_ROW_ALERT: Final = query(
    """
    INSERT INTO row_alerts (row_name, version, created_at_ms, next_try_at_ms)
    VALUES ($1, $2, $3, $4) ON CONFLICT DO NOTHING""",
)
"""Writes the alert that a row was found without its digest; once for each row."""

ADD_ORDER_ALERT: Final = query(
    """
    INSERT INTO row_alerts (row_name, version, created_at_ms, next_try_at_ms)
    VALUES ($1, $2, $3, $3) ON CONFLICT DO NOTHING
    RETURNING version""",
)
"""Writes the alert that an order was paid again; gives no row where it was written before."""

NEWEST_ROW_ALERTS: Final = query(
    """
    SELECT row_name, created_at_ms FROM row_alerts WHERE row_name >= $1 AND row_name < $2 AND created_at_ms >= $3
    ORDER BY created_at_ms DESC, row_name LIMIT $4""",
)
"""Reads the newest alerts since $3 whose names lie from $1 to before $2."""

GET_ROW_ALERT: Final = query("SELECT row_name FROM row_alerts WHERE row_name = $1")
"""Tells whether an alert was ever written under a name."""

ADD_ANCHOR_ALERT: Final = query(
    """
    INSERT INTO anchor_alerts (anchor, version, created_at_ms, next_try_at_ms)
    VALUES ($1, $2, $3, $4) ON CONFLICT DO NOTHING
    RETURNING version""",
)
"""Writes that an anchor is to be told; gives no row where one is told on that day already."""

TOLD_ON: Final = query("SELECT anchor FROM anchor_alerts WHERE version = $1")
"""Reads the anchor that is told on a day."""
