"""Alerts: one for each time that an operation came to need a person."""

from typing import Final

from payrelay.store.queries import query

TAKE_ALERTS: Final = query(
    "take_alerts",
    """
    UPDATE alerts SET next_try_at_ms = $2::bigint
    WHERE (operation_id, version) IN (
        SELECT operation_id, version FROM alerts
        WHERE next_try_at_ms <= $1::bigint ORDER BY next_try_at_ms LIMIT $3 FOR UPDATE SKIP LOCKED
    )
    RETURNING operation_id, version, created_at_ms, next_try_at_ms, attempts, given_to""",
    sqlite=(
        """
        UPDATE alerts SET next_try_at_ms = $2
        WHERE (operation_id, version) IN (
            SELECT operation_id, version FROM alerts WHERE next_try_at_ms <= $1 ORDER BY next_try_at_ms LIMIT $3
        )
        RETURNING operation_id, version, created_at_ms, next_try_at_ms, attempts, given_to""",
    ),
)
"""Takes alerts that are due, and puts them off for as long as giving them may last, so that no other process gives the
same at the same time."""

NEXT_ALERT: Final = query("next_alert", "SELECT min(next_try_at_ms) FROM alerts WHERE next_try_at_ms IS NOT NULL")
"""Reads when the next alert is to be given."""

END_ALERT: Final = query(
    "end_alert",
    """
    UPDATE alerts SET next_try_at_ms = NULL, attempts = attempts + 1, given_to = $3
    WHERE operation_id = $1 AND version = $2
    RETURNING version""",
)
"""Says that an alert is not given again, and to whom it was."""

PUT_OFF_ALERT: Final = query(
    "put_off_alert",
    """
    UPDATE alerts SET next_try_at_ms = $4, attempts = attempts + 1, given_to = $5
    WHERE operation_id = $1 AND version = $2 AND next_try_at_ms = $3
    RETURNING version""",
)
"""Says when an alert is tried again, unless somebody else has taken it meanwhile."""
