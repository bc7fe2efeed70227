"""What the overview of the console counts: the newest rows of a table, at most so many, by when they began."""

# ruff: noqa: S608 - only tables and columns named here are put into the texts; values are always parameters

from typing import Final

from payrelay.console.rules.trends import PACES
from payrelay.core.payments.operation import FINAL
from payrelay.store.engine.queries import Query, query

_FINAL: Final = ", ".join(f"'{state}'" for state in sorted(FINAL))
_OPERATIONS: Final = """
    SELECT id, kind, state, amount_minor, currency, created_at_ms,
           CASE WHEN closed_history IS NOT NULL THEN updated_at_ms END AS closed_at_ms
    FROM operations
    WHERE id >= $1 ORDER BY id DESC LIMIT $2"""


def _by_time(newest: str, at_ms: str) -> Query:
    return query(
        f"""
        SELECT ({at_ms} - $3) / $4 AS part, state, count(*), min({at_ms}) FROM ({newest}) AS looked_at
        WHERE {at_ms} >= $3 GROUP BY 1, state""",
    )


OPERATIONS_BY_TIME: Final = _by_time(_OPERATIONS, "created_at_ms")
"""Counts the operations from an id on by part and state."""

CHECKOUTS_BY_TIME: Final = _by_time(
    "SELECT state, created_at_ms FROM checkouts WHERE id >= $1 ORDER BY id DESC LIMIT $2", "created_at_ms"
)
"""Counts the checkouts from an id on by part and state."""

NOTIFICATIONS_BY_TIME: Final = _by_time(
    "SELECT state, received_at_ms FROM notifications WHERE id >= $1 ORDER BY id DESC LIMIT $2", "received_at_ms"
)
"""Counts the notifications from an id on by part and state."""

DELIVERIES_BY_TIME: Final = _by_time(
    "SELECT state, queued_at_ms FROM deliveries WHERE endpoint_id = $1 ORDER BY position DESC LIMIT $2", "queued_at_ms"
)
"""Counts the newest deliveries to an endpoint by part and state."""

SUMS: Final = query(
    f"""
    SELECT kind, currency, count(*), count(amount_minor), CAST(sum(amount_minor) AS BIGINT)
    FROM ({_OPERATIONS}) AS looked_at WHERE state = 'succeeded' GROUP BY kind, currency ORDER BY kind, currency""",
)
"""Adds up what succeeded, by kind and currency."""


def _steps(took: str) -> str:
    steps = " ".join(f"WHEN {took} <= {longest_ms} THEN {number}" for number, (longest_ms, _) in enumerate(PACES))
    return f"CASE WHEN {took} IS NULL THEN -1 {steps} ELSE {len(PACES)} END"


PACES_OF: Final = query(
    f"""
    SELECT {_steps("took_ms")} AS pace, count(*) FROM (
        SELECT COALESCE(closed_at_ms, (
            SELECT min(at_ms) FROM history
            WHERE history.operation_id = looked_at.id AND history.state = looked_at.state
        )) - created_at_ms AS took_ms
        FROM ({_OPERATIONS}) AS looked_at WHERE state IN ({_FINAL})
    ) AS timed GROUP BY 1""",
)
"""Counts how long it took until each operation was in the final state that it is in."""

WAITING_OF: Final = query(
    """
    SELECT count(*) FROM (
        SELECT position FROM deliveries WHERE endpoint_id = $1 AND next_try_at_ms IS NOT NULL LIMIT $2
    ) AS waiting""",
)
"""Counts the waiting deliveries to an endpoint, up to a number."""
