"""The heartbeat of this process in the database: one small write, which shows whether the database takes writes.

Rules:

1. A heartbeat is one statement over the process's own row. It locks nothing that anybody else writes.
2. A row that is written over needs no room: PostgreSQL takes it on a full disk, too. So a heartbeat also asks whether a
   table could grow.
3. A row that is gone, or older than this process was told, shows that the database went back or is another one.
"""

from collections.abc import Callable
from typing import Final, NamedTuple

from payrelay.errors import StoreFault, StoreUnavailable
from payrelay.store.engine.database import Database, Row, Statement, Unit, count_rows
from payrelay.store.engine.queries import query

KEPT_MS: Final = 7 * 86_400_000
"""How long the row of a process is kept that was killed; longer than any machine is suspended by mistake."""

ROOM_BYTES: Final = 1 << 20
"""What must be free on the disk: far more than one operation stores."""


class Beat(NamedTuple):
    """A heartbeat that was stored.

    Attributes:
        at_ms: the time that was stored.
        database_ms: the clock of the database's server; None for an embedded database, whose clock is ours.
        is_own_lost: whether the heartbeat before it was gone or older than this process was told.
    """

    at_ms: int
    database_ms: int | None
    is_own_lost: bool


class Heartbeats:
    """Stores the heartbeats of one process, which has a name of its own.

    ``free_bytes`` gives the room beside an embedded database; None where only the server knows, and is asked.
    """

    def __init__(self, database: Database, process: str, free_bytes: Callable[[], int | None] = lambda: None) -> None:
        self._database = database
        self._process = process
        self._free_bytes = free_bytes
        self._told_ms: int | None = None

    async def beat(self, now_ms: int) -> Beat:
        """Stores a heartbeat; on disk when this returns. May be repeated.

        Raises StoreUnavailable, also where it was stored and the disk has no ROOM_BYTES left.

        A heartbeat whose end isn't known may be stored all the same, and is no sign that the database went back.
        """
        told_ms = self._told_ms
        at_ms = now_ms if told_ms is None else max(now_ms, told_ms + 1)
        if told_ms is not None and at_ms - told_ms > KEPT_MS:
            told_ms = None  # another process may have deleted the row meanwhile, as it may
        beat = await self._database.write(_beat(self._process, at_ms, told_ms))
        self._told_ms = at_ms
        await self._require_room()
        return beat

    async def _require_room(self) -> None:
        free = self._free_bytes()
        if free is None:
            await self._database.write(_filling())
        elif free < ROOM_BYTES:
            raise StoreUnavailable("the disk of the database is full", fault=StoreFault.DISK_FULL)

    async def end(self) -> None:
        """Deletes the row of this process. May be repeated. Raises StoreUnavailable."""
        self._told_ms = None
        await self._database.write(count_rows(Statement(END, (self._process,))))


def _beat(process: str, at_ms: int, told_ms: int | None) -> Unit[Beat]:
    if told_ms is not None:
        rows = yield Statement(BEAT, (process, at_ms, told_ms), is_whole=True)
        if rows:
            return Beat(at_ms, _clock_of(rows[0]), is_own_lost=False)
    rows = yield Statement(BEGIN, (process, at_ms))
    yield Statement(FORGET_OLD, (at_ms - KEPT_MS,))
    return Beat(at_ms, _clock_of(rows[0]), is_own_lost=told_ms is not None)


def _filling() -> Unit[None]:
    yield Statement(LITTLE_MEMORY, ())
    yield Statement(FILL, ())


def _clock_of(row: Row) -> int | None:
    return row[0] if isinstance(row[0], int) else None


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
