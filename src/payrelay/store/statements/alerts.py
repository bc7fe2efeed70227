"""Alerts: one for each time that an operation came to need a person, or that an endpoint was stopped."""

# ruff: noqa: S608 - what is put into the texts are names given here; values are always parameters

from typing import Final, NamedTuple

from payrelay.store.queries import Query, query


class AlertQueries(NamedTuple):
    """What is asked of one of the tables.

    Attributes:
        take: takes alerts that are due, and puts them off for as long as giving them may last, so that no other process
            gives the same at the same time.
        next_due: reads when the next alert is to be given.
        end: says that an alert is not given again, and to whom it was.
        put_off: says when an alert is tried again, unless somebody else has taken it meanwhile.
    """

    take: Query
    next_due: Query
    end: Query
    put_off: Query


def _of(table: str, id_column: str) -> AlertQueries:
    take = f"""
        UPDATE {table} SET next_try_at_ms = $2::bigint
        WHERE ({id_column}, version) IN (
            SELECT {id_column}, version FROM {table}
            WHERE next_try_at_ms <= $1::bigint ORDER BY next_try_at_ms LIMIT $3 {{lock}}
        )
        RETURNING {id_column}, version, created_at_ms, next_try_at_ms, attempts, given_to"""
    return AlertQueries(
        take=query(
            f"take_{table}",
            take.format(lock="FOR UPDATE SKIP LOCKED"),
            sqlite=(take.format(lock=""),),
        ),
        next_due=query(f"next_of_{table}", f"SELECT min(next_try_at_ms) FROM {table} WHERE next_try_at_ms IS NOT NULL"),
        end=query(
            f"end_of_{table}",
            f"""
            UPDATE {table} SET next_try_at_ms = NULL, attempts = attempts + 1, given_to = $3
            WHERE {id_column} = $1 AND version = $2
            RETURNING version""",
        ),
        put_off=query(
            f"put_off_{table}",
            f"""
            UPDATE {table} SET next_try_at_ms = $4, attempts = attempts + 1, given_to = $5
            WHERE {id_column} = $1 AND version = $2 AND next_try_at_ms = $3
            RETURNING version""",
        ),
    )


OF_OPERATIONS: Final = _of("alerts", "operation_id")
OF_ENDPOINTS: Final = _of("endpoint_alerts", "endpoint_id")

ADD_ENDPOINT_ALERT: Final = query(
    "add_endpoint_alert",
    """
    INSERT INTO endpoint_alerts (endpoint_id, version, created_at_ms, next_try_at_ms)
    VALUES ($1, $2, $3, $4) ON CONFLICT DO NOTHING""",
)
"""Notes, beside the change that did it, that an endpoint was stopped."""

FORGET_ENDPOINT_ALERTS: Final = query("forget_endpoint_alerts", "DELETE FROM endpoint_alerts WHERE endpoint_id = $1")
"""Forgets the alerts about an endpoint."""
