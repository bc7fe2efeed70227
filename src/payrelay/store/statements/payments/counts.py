"""What the metrics tell of open operations."""

from typing import Final

from payrelay.store.engine.queries import query

COUNT_OPEN: Final = query(
    "count_open",
    """
    SELECT counted.state, counted.total, oldest.created_at_ms
    FROM (
        SELECT state, count(*) AS total, min(id) AS id FROM operations
        WHERE state IN ('pending', 'unknown', 'needs_attention') GROUP BY state
    ) AS counted JOIN operations AS oldest ON oldest.id = counted.id""",
)
"""Counts the operations that are open by state, with when the oldest of them was made; ids sort by that."""
