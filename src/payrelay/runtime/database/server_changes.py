"""What follows where another server takes the writes of a shared database: an alert, and a comparison of commits."""

from collections.abc import Awaitable, Callable
from typing import Protocol

from structlog.typing import FilteringBoundLogger

from payrelay.clock import Clock
from payrelay.runtime.database.lost_commits import LostCommits
from payrelay.store.alerts import SERVER_ROW


class ServerMemory(Protocol):
    """Remembers in the database which server took its writes last; ``store.recovery.last_server``."""

    async def read(self) -> str | None:
        """Gives it; None where none is remembered. Raises StoreError."""
        ...

    async def put(self, server: str) -> None:
        """Remembers another one. Raises StoreError."""
        ...


class ServerChanges:
    """Hears from the store's engine of another server (see ``store.engine.database.ServerWatcher``).

    ``last_server`` remembers the server across starts. ``compare`` compares what this process remembers with the
    database, and makes it fall behind where something is missing; ``compare_list`` does so with what is listed outside;
    ``report`` stores an alert under a name, once for each name.
    """

    def __init__(
        self,
        lost_commits: LostCommits,
        clock: Clock,
        log: FilteringBoundLogger,
        *,
        last_server: ServerMemory,
        compare: Callable[[], Awaitable[object]],
        compare_list: Callable[[], Awaitable[object]],
        report: Callable[[str, int], Awaitable[None]],
    ) -> None:
        self._lost_commits = lost_commits
        self._clock = clock
        self._log = log
        self._last_server = last_server
        self._compare = compare
        self._compare_list = compare_list
        self._report = report
        self._untold: str | None = None

    @property
    def behind(self) -> str | None:
        """Why the database counts as behind, in words; None where it doesn't."""
        return self._lost_commits.behind

    def server_changed(self, before: str, now: str) -> None:
        """Logs that another server takes the writes; the alert is stored there once it can be."""
        self._log.error("database_server_changed", before=before, now=now)
        self._untold = now

    async def is_familiar(self, server: str) -> bool:
        """Tells whether this server took the writes last; where none is remembered, it is from now on."""
        last = await self._last_server.read()
        if last is None:
            await self._last_server.put(server)
        return last in {None, server}

    def unsettled(self) -> None:
        """Lets nothing say for good that something isn't there."""
        self._lost_commits.is_settling = True

    async def settled(self, server: str) -> None:
        """Compares what is listed outside, and remembers the server. Raises StoreError."""
        await self._compare_list()
        await self._lost_commits.store_behind()
        await self._last_server.put(server)
        self._lost_commits.is_settling = False

    async def compare(self) -> None:
        """Compares what this process remembers with the database, and stores what is found. Raises StoreError."""
        await self._compare()
        await self._lost_commits.store_behind()
        if self._untold is not None:
            await self._report(f"{SERVER_ROW}{self._untold}", self._clock.now_ms())
            self._untold = None
            self._log.info("database_compared", behind=self.behind)
