"""What follows where another server takes the writes of a shared database: an alert, and a comparison of commits."""

from collections.abc import Awaitable, Callable

from structlog.typing import FilteringBoundLogger

from payrelay.clock import Clock
from payrelay.runtime.recovery.lost_commits import LostCommits
from payrelay.store.alerts import SERVER_ROW


class ServerChanges:
    """Hears from the store's engine of another server (see ``store.engine.database.ServerWatcher``).

    ``compare`` compares what this process remembers with the database, and makes it fall behind where something is
    missing; ``report`` stores an alert under a name, once for each name.
    """

    def __init__(
        self,
        lost_commits: LostCommits,
        clock: Clock,
        log: FilteringBoundLogger,
        *,
        compare: Callable[[], Awaitable[object]],
        report: Callable[[str, int], Awaitable[None]],
    ) -> None:
        self._lost_commits = lost_commits
        self._clock = clock
        self._log = log
        self._compare = compare
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

    async def compare(self) -> None:
        """Compares what this process remembers with the database, and stores the alert. Raises StoreError."""
        await self._compare()
        if self._untold is not None:
            await self._report(f"{SERVER_ROW}{self._untold}", self._clock.now_ms())
            self._untold = None
            self._log.info("database_compared", behind=self.behind)
