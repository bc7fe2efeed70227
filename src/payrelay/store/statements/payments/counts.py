"""The numbers of open operations, for the metrics."""

# ruff: noqa: S608 - only columns named here are put into the texts; values are always parameters

from typing import Final

from payrelay.store.engine.queries import query
from payrelay.store.statements.payments.operations import RARE

COUNT_OPEN: Final = query(
    f"""
    SELECT counted.state, counted.total, oldest.created_at_ms
    FROM (
        SELECT state, count(*) AS total, min(id) AS id FROM operations
        WHERE state IN ('pending', 'unknown', 'needs_attention', 'held') AND {RARE.text} GROUP BY state
    ) AS counted JOIN operations AS oldest ON oldest.id = counted.id""",
)
"""Counts the open operations by state, and reads when the oldest of each was made; ids sort by that."""
