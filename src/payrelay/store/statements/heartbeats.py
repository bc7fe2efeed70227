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

LITTLE_MEMORY: Final = query("SELECT set_config('work_mem', '64kB', true)", sqlite=("SELECT 1",))
"""Lets the statements of this transaction keep little in memory."""

FILL: Final = query(
    """
    WITH filler AS MATERIALIZED (SELECT repeat('x', 65536) AS text FROM generate_series(1, 16))
    SELECT sum(length(text)) FROM filler""",
    sqlite=("SELECT 1",),
)
"""Writes 1 MiB into a temporary file beside the tables, which is gone at once; fails where there is no room for it.

That needs no right beyond a connection, leaves no dead rows and writes nothing to the WAL.
"""
