"""The heartbeats of processes."""

from typing import Final

from payrelay.store.engine.queries import query

BEAT: Final = query(
    """
    UPDATE heartbeats SET at_ms = $2 WHERE process = $1 AND at_ms >= $3
    RETURNING (extract(epoch FROM clock_timestamp()) * 1000)::bigint""",
    sqlite=("UPDATE heartbeats SET at_ms = $2 WHERE process = $1 AND at_ms >= $3 RETURNING NULL",),
)
"""Stores a heartbeat over the one before, and gives the server's clock; no row where that one is gone or older."""

BEGIN: Final = query(
    """
    INSERT INTO heartbeats (process, at_ms) VALUES ($1, $2)
    ON CONFLICT (process) DO UPDATE SET at_ms = excluded.at_ms
    RETURNING (extract(epoch FROM clock_timestamp()) * 1000)::bigint""",
    sqlite=(
        """
        INSERT INTO heartbeats (process, at_ms) VALUES ($1, $2)
        ON CONFLICT (process) DO UPDATE SET at_ms = excluded.at_ms RETURNING NULL""",
    ),
)
"""Stores a heartbeat, whatever was there before; gives the server's clock."""

FORGET_OLD: Final = query("DELETE FROM heartbeats WHERE at_ms < $1")
"""Deletes the heartbeats of processes that ended long ago without saying so."""

END: Final = query("DELETE FROM heartbeats WHERE process = $1")
"""Deletes the heartbeat of a process that ends."""
