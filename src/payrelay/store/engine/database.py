"""The interface of both engines, so that every noun of the store is written once for both.

A *unit of work* is a generator. It yields a ``Statement``, gets the rows back, and returns a value at the end:

    def _find(name: str) -> Unit[int | None]:
        rows = yield Statement(statements.AGE_OF, (name,))
        return int(rows[0][0]) if rows else None

It must do nothing else: no await, no I/O, no clock. Both engines drive it on the event loop.
"""

from collections.abc import Callable, Generator, Sequence
from typing import Final, NamedTuple, Protocol, TypeAlias, TypeVar

import msgspec

from payrelay.errors import StoreFault, StoreUnavailable
from payrelay.store.engine.queries import Query

T = TypeVar("T")

Value: TypeAlias = str | int | bytes | None
"""The types of a column. Ids are text; times are milliseconds and money is hundredths, both as integers."""

Row: TypeAlias = Sequence[Value]

LIST_TIMEOUT_S: Final = 3.0
"""How long a list may take: one that has an index takes milliseconds."""
POOL_SIZE: Final = 16
"""Connections of one process, unless it is set otherwise: more would mostly queue inside the server."""
PATIENT_TIMEOUT_S: Final = 3600.0
"""How long a statement may take that reads a whole table, as upgrades and audits do: ten million rows take minutes."""


class Connecting(NamedTuple):
    """How a shared database is opened.

    Attributes:
        is_patient: whether a statement may take as long as it takes to read a whole table.
        pool_size: the connections of the pool.
        wait_s: how long a server is waited for that isn't there yet.
        told: gets a line for the log each time that the server wasn't there.
        list_timeout_s: how long a list may take.
    """

    is_patient: bool = False
    pool_size: int = POOL_SIZE
    wait_s: float = 0.0
    told: Callable[[str], None] = lambda _: None
    list_timeout_s: float = LIST_TIMEOUT_S


USUAL: Final = Connecting()
PATIENT: Final = Connecting(is_patient=True, list_timeout_s=PATIENT_TIMEOUT_S)


class Statement(msgspec.Struct, frozen=True, gc=False):
    """A query of ``statements/`` and its parameters, in the order of their numbers.

    ``begins_effect`` is set on the first statement of a unit that stores what is about to be sent to a gateway. It is
    carried out only by the server that takes the writes, as far as that was seen in the last two seconds.

    ``is_whole`` may be set on the first statement of a unit where it writes everything that the unit writes. Where it
    gives no rows, it must have written nothing. Such a statement needs no transaction around it, which saves PostgreSQL
    two round trips.

    A charge makes ten. So it is a struct: to make a named tuple takes six times as long, and to change one ten times.
    """

    query: Query
    parameters: tuple[Value, ...]
    is_whole: bool = False
    begins_effect: bool = False


Unit: TypeAlias = Generator[Statement, list[Row], T]


def all_rows(statement: Statement) -> Unit[list[Row]]:
    """A unit of one statement that gives its rows."""
    return (yield statement)


def first_row(statement: Statement) -> Unit[Row | None]:
    """A unit of one statement that gives its first row; None where it has none."""
    rows = yield statement
    return rows[0] if rows else None


def count_rows(statement: Statement) -> Unit[int]:
    """A unit of one statement that gives how many rows it has."""
    rows = yield statement
    return len(rows)


def too_long(timeout_s: float) -> StoreUnavailable:
    """Gives the error for a list that took longer than it may."""
    msg = f"the list took longer than {timeout_s:g} s; a filter that leads to fewer rows takes less"
    return StoreUnavailable(msg, fault=StoreFault.TIMEOUT)


class ServerWatcher(Protocol):
    """Hears of another server, and knows the newest commits that this process was told of."""

    @property
    def behind(self) -> str | None:
        """Why the database counts as lacking commits, in words; no effect begins then. None where it doesn't."""
        ...

    def server_changed(self, before: str, now: str) -> None:
        """Hears that another server takes the writes, before anything is read or written there; raises nothing."""
        ...

    async def is_familiar(self, server: str) -> bool:
        """Tells whether the database's writes went to this server last, or nobody knows. Raises StoreError."""
        ...

    def unsettled(self) -> None:
        """Hears that what is missing on the server can't be told yet; raises nothing."""
        ...

    async def compare(self) -> None:
        """Compares the newest commits that this process was told of with the database, and sets ``behind``.

        Until it returns, nothing that begins an effect is stored. Raises StoreError where that can't be known now; it
        is called again then.
        """
        ...

    async def settled(self, server: str) -> None:
        """Hears, after a comparison, that every other process has compared as well; effects begin after it returns.

        Raises StoreError; it is called again then.
        """
        ...


class Database(Protocol):
    """A database; belongs to the event loop on which it was opened."""

    async def write(self, unit: Unit[T], *, is_patient: bool = False) -> T:
        """Carries out a unit of work, whole or not at all; its writes are on disk when this returns.

        One that ``is_patient`` may wait for the commit of others for a moment, where that spares the disk a sync.

        An exception that the unit raises undoes its work and comes out here. Raises StoreUnavailable where the database
        is busy, full or gone. Raises Outdated where the unit met a row that another unit wrote meanwhile. Raises
        StoreDoubtful where the database is lost at the moment of the commit: the work may be stored all the same, and a
        caller that needs to know reads it again.
        """
        ...

    async def read(self, unit: Unit[T]) -> T:
        """Carries out a unit that only reads; each of its statements sees all that was committed before it began.

        Raises StoreUnavailable.
        """
        ...

    async def read_page(self, unit: Unit[T]) -> T:
        """Carries out a reading unit that may pass over many rows, as ``read``, beside what charges need.

        It never takes the connections, or the time of the event loop, that others wait for. Raises StoreUnavailable
        where it takes longer than a list may.
        """
        ...

    async def clear_files(self, table: str) -> bool:
        """Clears the files of rows that were deleted from ``data_keys``; False where another process is in the way.

        ``table`` is that table, or one of its partitions. With SQLite all tables are cleared, and the log. With
        PostgreSQL the files of this table are, and not the log; it refuses any other table. May be repeated. Raises
        StoreUnavailable.
        """
        ...

    async def ping(self) -> None:
        """Returns when the database can be written to; raises StoreUnavailable otherwise."""
        ...

    async def close(self) -> None:
        """Finishes the waiting work, and closes the database. May be called twice."""
        ...
