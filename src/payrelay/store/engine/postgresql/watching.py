"""Watches which server takes the writes, and changes to another one where that is right.

A connection of the pool stays with the server that it was made to, also where the address leads to another server by
now. So a new connection to each host is made each second, only to look. What begins an effect needs a look that is not
older than FRESH_S.
"""

import asyncio
import contextlib
from collections.abc import Callable, Coroutine, Sequence
from typing import Final

from payrelay.clock import Clock
from payrelay.errors import StoreError, StoreFault, StoreUnavailable
from payrelay.store.engine.database import ServerWatcher
from payrelay.store.engine.postgresql.connections import Connections
from payrelay.store.engine.postgresql.faults import NO_ROOM, OtherServerError, first_line, translated
from payrelay.store.engine.postgresql.hosts import Host, hosts_of
from payrelay.store.engine.postgresql.servers import Sighting, Verdict, judge
from payrelay.store.engine.postgresql.sessions import CONNECT_TIMEOUT_S, Access

LOOK_EVERY_S: Final = 1.0
LOOK_TIMEOUT_S: Final = 1.5
"""How long one look may take; one that takes longer is no look."""
OTHERS_WAIT_S: Final = 0.25
"""How long the other hosts are waited for once one has answered."""
FRESH_S: Final = 2.0
"""The age up to which a look allows an effect to begin. It is what an address that moved can cost."""
_AGAIN_AFTER_S: Final = 1.0
"""The pause before a server is looked for again that isn't there yet."""
STALE_WORDS: Final = "only a server that a promotion has left behind takes writes"
"""What is written there is lost."""
SETTLE_S: Final = FRESH_S + 2 * (LOOK_EVERY_S + LOOK_TIMEOUT_S + OTHERS_WAIT_S) + 2.5
"""How long no effect begins after another server took the writes: 10 s. By then every other process has left the
earlier server as well (FRESH_S), and has seen the new one although one of its looks failed. It has connected to that,
compared its commits and told what is missing, and this process has read it."""


async def look_at_hosts(access: Access, known: Sighting | None, timeout_s: float) -> tuple[Verdict, Sighting | None]:
    """Looks at every host of the URL at once. Raises what the last of them raised where none could be reached."""
    looks = await asyncio.gather(
        *(access.look(host, timeout_s) for host in hosts_of(access.url)), return_exceptions=True
    )
    seen = [each for each in looks if isinstance(each, Sighting)]
    for each in looks:
        if isinstance(each, BaseException) and (not seen or not isinstance(each, Exception)):
            raise each
    return judge(known, seen)


async def server_at(access: Access, clock: Clock, *, name: str, wait_s: float, told: Callable[[str], None]) -> Sighting:
    """Finds the server that takes the writes, and waits for it as long as it may.

    ``told`` gets a line for the log each time that it wasn't there; ``name`` is that of the database. Raises what the
    last look raised where the wait is over.
    """
    until_s = clock.boot_s() + wait_s
    while True:
        try:
            _, found = await look_at_hosts(access, None, CONNECT_TIMEOUT_S)
            if found is not None:
                return found
            failure: Exception = OtherServerError("no server takes writes")
        except (OSError, TimeoutError, *NO_ROOM) as error:
            failure = error
        if clock.boot_s() + _AGAIN_AFTER_S > until_s:
            raise failure
        told(f"{name}: {first_line(failure)}")
        await asyncio.sleep(_AGAIN_AFTER_S)


class HostLooks:
    """Looks at every host of the URL again and again, with one look at each at a time: a slow host holds up no other.

    A look that isn't done in time goes on, and counts for the next round.
    """

    def __init__(
        self, hosts: Sequence[Host], look: Callable[[Host, float], Coroutine[None, None, Sighting]], clock: Clock
    ) -> None:
        self._hosts = hosts
        self._look = look
        self._clock = clock
        self._running: dict[Host, tuple[float, asyncio.Task[Sighting]]] = {}

    async def judged(self, known: Sighting) -> tuple[Verdict, Sighting | None, float]:
        """Judges what the looks showed that have ended; gives the time when the oldest of them began, in ``boot_s``.

        Raises what a look raised where none showed a server, and TimeoutError where none has ended.
        """
        for host in self._hosts:
            if host not in self._running:
                look = asyncio.create_task(self._look(host, LOOK_TIMEOUT_S))
                self._running[host] = (self._clock.boot_s(), look)
        looks = [look for _, look in self._running.values()]
        await asyncio.wait(looks, timeout=LOOK_TIMEOUT_S, return_when=asyncio.FIRST_COMPLETED)
        await asyncio.wait(looks, timeout=OTHERS_WAIT_S)
        ended = {host: each for host, each in self._running.items() if each[1].done()}
        for host in ended:
            del self._running[host]
        shown = [(began_s, look.result()) for began_s, look in ended.values() if look.exception() is None]
        if not shown:
            raise next((error for _, look in ended.values() if (error := look.exception())), TimeoutError("no answer"))
        verdict, best = judge(known, [sighting for _, sighting in shown])
        return verdict, best, min(began_s for began_s, _ in shown)

    async def end(self) -> None:
        """Ends the looks that are under way."""
        looks = [look for _, look in self._running.values()]
        for look in looks:
            look.cancel()
        await asyncio.gather(*looks, return_exceptions=True)


class Watching:
    """Watches the servers for a pool, and replaces the pool where another server takes the writes.

    ``connections`` are those to the server that is in use; there are none before ``connect``. ``server_changes`` counts
    how often another server took the writes.
    """

    connections: Connections

    def __init__(self, access: Access, clock: Clock, *, pool_size: int) -> None:
        self._access = access
        self._clock = clock
        self._looks = HostLooks(hosts_of(access.url), access.look, clock)
        self._pool_size = pool_size
        self._watcher: ServerWatcher | None = None
        self._task: asyncio.Task[None] | None = None
        self._looked = asyncio.Condition()
        self._looked_at_s = float("-inf")
        self._closing: set[asyncio.Task[None]] = set()
        self._is_recognized = False
        self._is_settled = True
        self._settles_at_s = 0.0
        self._told: str | None = None
        self._reason = "no answer yet"
        self._fault = StoreFault.UNREACHABLE
        self.server_changes = 0

    async def connect(self, sighting: Sighting) -> None:
        """Makes the connections to a server. Raises what the driver raises, OtherServerError, StoreUnusable."""
        connections = Connections(self._access, sighting, size=self._pool_size)
        connections.is_watched = self._watcher is not None
        await connections.open()
        self.connections = connections

    def begin(self, watcher: ServerWatcher) -> None:
        """Begins to look each second, for as long as the database is open."""
        self._watcher = watcher
        self.connections.is_watched = True
        self._task = asyncio.create_task(self._watch(watcher))

    async def end(self) -> None:
        """Ends the looking, and lets the units end that run on connections to an earlier host. May be called twice."""
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task
        await self._looks.end()
        await asyncio.gather(*self._closing)

    async def require_fresh(self) -> None:
        """Returns where a server was seen lately that takes writes; waits for the next look where that is too long ago.

        Raises StoreUnavailable. Where nobody watches, it always returns.
        """
        if self._watcher is not None and not self._is_fresh():
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(FRESH_S), self._looked:
                    await self._looked.wait_for(self._is_fresh)
        self._require_fresh_now()

    def require_effects_now(self) -> None:
        """Raises StoreUnavailable where no effect may begin at this moment."""
        if self._watcher is None:
            return
        if not self._is_settled:
            msg = "another server takes the writes, and it is not compared yet; this was not stored"
            raise StoreUnavailable(msg, fault=StoreFault.OTHER_SERVER)
        if self._watcher.behind is not None:
            raise StoreUnavailable(f"{self._watcher.behind}; this was not stored")
        self._require_fresh_now()

    def _require_fresh_now(self) -> None:
        if self._watcher is not None and not self._is_fresh():
            msg = f"which server takes the writes can't be told now ({self._reason})"
            raise StoreUnavailable(msg, fault=self._fault)

    def _is_fresh(self) -> bool:
        return self._clock.boot_s() - self._looked_at_s <= FRESH_S

    async def _watch(self, watcher: ServerWatcher) -> None:
        while True:
            began_s = self._clock.boot_s()
            try:
                with translated():
                    looked_at_s = await self._look(watcher)
            except StoreError as error:
                self._reason, self._fault = str(error), error.fault
            except Exception as error:  # noqa: BLE001 - our own fault in one look must not end the looking
                self._reason, self._fault = repr(error), StoreFault.OTHER
            else:
                self._looked_at_s = looked_at_s
                async with self._looked:
                    self._looked.notify_all()
            await asyncio.sleep(max(0.0, began_s + LOOK_EVERY_S - self._clock.boot_s()))

    async def _look(self, watcher: ServerWatcher) -> float:
        """Looks, and follows what was seen; gives the time, in ``boot_s``, from which on that is known."""
        verdict, sighting, began_s = await self._looks.judged(self.connections.sighting)
        if sighting is None:
            if verdict is Verdict.STALE:
                raise OtherServerError(STALE_WORDS)
            raise OtherServerError("no server takes writes", fault=StoreFault.READ_ONLY)
        await self._follow(watcher, verdict, sighting)
        return began_s

    async def _follow(self, watcher: ServerWatcher, verdict: Verdict, sighting: Sighting) -> None:
        """Uses the server that was seen, and compares the commits where they may be others than before.

        Raises StoreError, OtherServerError and what the driver raises. The next look tries again then.
        """
        before = self.connections
        if verdict is Verdict.CHANGED:
            self._unsettle(watcher, SETTLE_S)
            self._tell(watcher, _words_of(before.sighting), sighting)
            before.cut_off()
            await self.connect(sighting)
        elif verdict is Verdict.RESTARTED:
            self._unsettle(watcher, 0.0)
            before.sighting = sighting
        elif sighting.host != before.sighting.host:
            await self.connect(sighting)
            closing = asyncio.create_task(before.close())
            self._closing.add(closing)
            closing.add_done_callback(self._closing.discard)
        if not self._is_recognized:
            await self._recognize(watcher, sighting)
        if not self._is_settled:
            await watcher.compare()
            if self._clock.boot_s() >= self._settles_at_s:
                await watcher.settled(_origin_of(sighting))
                self._is_settled = True

    async def _recognize(self, watcher: ServerWatcher, sighting: Sighting) -> None:
        """Compares the first server that is seen with the one of the last start: it may have changed in between."""
        if not await watcher.is_familiar(_origin_of(sighting)):
            self._unsettle(watcher, SETTLE_S)
            self._tell(watcher, "another one at the last start", sighting)
        self._is_recognized = True

    def _unsettle(self, watcher: ServerWatcher, for_s: float) -> None:
        watcher.unsettled()
        self._is_settled = False
        self._settles_at_s = max(self._settles_at_s, self._clock.boot_s() + for_s)

    def _tell(self, watcher: ServerWatcher, before: str, sighting: Sighting) -> None:
        """Tells of another server, once for each time that one takes the writes."""
        if self._told != (words := _words_of(sighting)):
            self.server_changes += 1
            watcher.server_changed(before, words)
            self._told = words


def _origin_of(sighting: Sighting) -> str:
    return "none" if sighting.server is None else sighting.server.origin


def _words_of(sighting: Sighting) -> str:
    return "none" if sighting.server is None else sighting.server.words
