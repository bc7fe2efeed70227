"""What high-water marks name, as it lies in the database."""

from typing import Final

from payrelay.store.engine.queries import query

ENTRY_HASH: Final = query(
    """
    SELECT hash FROM history WHERE operation_id = $1 AND version = $2
    UNION ALL
    SELECT chain FROM operations WHERE id = $1 AND version = $2 AND closed_history IS NOT NULL""",
)
"""Reads the hash of one journal entry."""

CHECKOUT_VERSION: Final = query("SELECT version FROM checkouts WHERE id = $1")
"""Reads the version of a checkout."""

NEWEST_ENTRY_AT: Final = query(
    """
    SELECT max(at_ms) FROM (
      SELECT max(at_ms) AS at_ms FROM history WHERE at_ms <= $1
      UNION ALL
      SELECT max(updated_at_ms) FROM operations WHERE closed_history IS NOT NULL AND updated_at_ms <= $1
    ) AS newest""",
)
"""Reads the time of the newest journal entry up to a time."""
