"""Something fails beneath the service, and comes back, while clients go on; nothing that was committed is lost."""

import asyncio
import os
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Final

import asyncpg
from tests.drills.intentions import Wishes
from tests.drills.operator import Recovered
from tests.drills.row import Row, p99_s
from tests.drills.site import DATABASE, Site, embedded_site, shared_site
from tests.postgresql_server import PostgresqlServer, running_postgresql

LOAD_S: Final = 6.0
FAULT_AFTER_S: Final = 2.0
LASTS_S: Final = 10.0
"""How long a pause, a full disk or a shortage lasts: longer than the service waits for the gateway."""
SERVED_WITHIN_S: Final = 120.0
DISK_MB: Final = 32
CONNECTIONS: Final = 40
Fault = Callable[[], None]


def killed_service(operations: int, seed: int) -> Row:
    """The only process is killed, and started again."""
    with embedded_site() as site:

        def fail() -> None:
            site.kill()
            site.watch.hold()
            site.start_again()

        return _outage("kill-service", site, (operations, seed), fail)


def killed_database(operations: int, seed: int) -> Row:
    """PostgreSQL is killed, and started again."""
    with running_postgresql() as server, shared_site(server) as site:

        def fail() -> None:
            server.kill()
            site.watch.hold()  # while it is down, clients hear that
            server.start()

        return _outage("kill-database", site, (operations, seed), fail, processes=2)


def paused_service(operations: int, seed: int) -> Row:
    """One of two processes stands still, as a virtual machine that is moved, and goes on."""
    with running_postgresql() as server, shared_site(server) as site:
        return _outage("pause-service", site, (operations, seed), lambda: _pause(site, [site.pids()[0]]), processes=2)


def paused_database(operations: int, seed: int) -> Row:
    """All of PostgreSQL stands still, and goes on."""
    with running_postgresql() as server, shared_site(server) as site:
        return _outage("pause-database", site, (operations, seed), lambda: _pause(site, server.pids()), processes=2)


def full_disk(operations: int, seed: int) -> Row:
    """The disk of an embedded database is full for a while."""
    with ExitStack() as stack:
        try:
            disk = stack.enter_context(_small_disk())
        except (OSError, subprocess.CalledProcessError):
            return Row(name="disk-full", skipped="no small disk can be mounted here")
        site = stack.enter_context(embedded_site(folder=disk / "site"))

        def fail() -> None:
            ballast = disk / "ballast"
            with suppress(OSError), ballast.open("wb", buffering=0) as file:
                while file.write(bytes(4096)):
                    pass
            time.sleep(LASTS_S)  # as long as nobody makes room
            site.watch.hold()
            ballast.unlink()

        return _outage("disk-full", site, (operations, seed), fail)


def exhausted_connections(operations: int, seed: int) -> Row:
    """Others take all connections of PostgreSQL, and give them back."""
    with running_postgresql() as server, shared_site(server) as site:
        server.stop()
        server.start(f"max_connections={CONNECTIONS}")
        fail = lambda: asyncio.run(_take_connections(site, server))  # noqa: E731 - a fault without arguments
        return _outage("connections", site, (operations, seed), fail, processes=2)


def _outage(name: str, site: Site, size: tuple[int, int], fail: Fault, *, processes: int = 1) -> Row:
    """Tells one outage: load, the fault in its midst, and clients that repeat until they have their answers."""
    operations, seed = size
    shop, wishes = site.new_shop(), Wishes(site.gateway, seed, "thing")
    everything = wishes.draw(operations)
    shop.ports = site.start(processes)

    async def go_on() -> float:
        clients = asyncio.ensure_future(
            shop.bring(everything, within_s=SERVED_WITHIN_S, lasts_s=LOAD_S, loses_answers=True)
        )
        await asyncio.sleep(FAULT_AFTER_S)  # the load goes before the fault
        began_s = time.monotonic()
        site.watch.begin()
        await asyncio.to_thread(fail)
        await clients
        return began_s

    began_s = asyncio.run(go_on())
    answers = shop.answers()
    served_s = max(each.at_s for heard in shop.told.values() for each in heard) - began_s
    asyncio.run(shop.bring(wishes.shuffled(everything), within_s=SERVED_WITHIN_S))
    asyncio.run(shop.read_all(shop.operation_ids()))
    return Row(
        name=name,
        operations=operations,
        verdict=site.verdict(shop, everything),
        recovered=Recovered(clients_s=served_s, all_s=served_s),
        p99_s=p99_s(shop, began_s, began_s + served_s),
        told_by=site.watch.noticed(),
        notes=[f"during the outage: {answers}"],
    )


def _pause(site: Site, pids: list[int]) -> None:
    """Has processes stand still for a while; who has ended meanwhile is no matter."""
    for number in (signal.SIGSTOP, signal.SIGCONT):
        for pid in pids:
            with suppress(ProcessLookupError):
                os.kill(pid, number)
        if number is signal.SIGSTOP:
            time.sleep(LASTS_S)  # the pause is what is drilled
            site.watch.hold()


@contextmanager
def _small_disk() -> Iterator[Path]:
    """Mounts a small disk in memory while the context is open, with a folder for a site."""
    folder = Path(tempfile.mkdtemp(prefix="payrelay-disk-"))
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={DISK_MB}m", "drill", folder], check=True, capture_output=True)
    try:
        (folder / "site").mkdir()
        yield folder
    finally:
        subprocess.run(["umount", "-l", folder], check=True)
        folder.rmdir()


async def _take_connections(site: Site, server: PostgresqlServer) -> None:
    """Takes every connection that is free, and those that the service has; gives all back after a while."""
    taken = await _taken(server)
    await taken[0].execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = $1", DATABASE)
    end_s = time.monotonic() + LASTS_S
    while time.monotonic() < end_s:
        taken += await _taken(server)
        await asyncio.sleep(0.05)  # the service tries again at any time
    site.watch.hold()
    for connection in taken:
        await connection.close()


async def _taken(server: PostgresqlServer) -> list["asyncpg.Connection"]:
    """Connects until there is no room."""
    taken: list[asyncpg.Connection] = []
    with suppress(asyncpg.TooManyConnectionsError, OSError):
        while len(taken) < CONNECTIONS:
            taken.append(await asyncpg.connect(server.url()))
    return taken
