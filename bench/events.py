"""Measures how fast queued events are delivered, beside bare sending with the same client.

    python bench/events.py [--events 10000] [--rounds 3] [--only sqlite,postgresql] [--keep-docs]

Bare sending is ``aiohttp`` with as many requests under way as a lane has, of the same bodies, signed beforehand, to
the same receiver, which runs in a process of its own. Each round does both; the ratio is what counts.
"""

import argparse
import asyncio
import contextlib
import ipaddress
import multiprocessing
import statistics
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Iterator
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, Final, NamedTuple, NoReturn

import aiohttp
import asyncpg
import structlog
import uvloop
from aiohttp import web
from tests.digests import CHAIN_KEY, digests_of

import postgresql
import programs
import section
from payrelay.clock import Clock
from payrelay.core.events.destinations import AllowedDestinations
from payrelay.core.events.event import OutgoingEvent, event_id
from payrelay.flows.events.manage_endpoints import NewEndpoint, Owner, create_endpoint
from payrelay.runtime.event_delivery import WIDE, Dispatch, publish_events
from payrelay.runtime.followers import Followers
from payrelay.runtime.webhook_sender import Secrets, Signer, WebhookSender, body_of
from payrelay.store import open_database
from payrelay.store.digests.rows import RowKey
from payrelay.store.engine.database import Database, Unit
from payrelay.store.engine.sealing import Seal
from payrelay.store.events import outbox
from payrelay.store.events.deliveries import Deliveries
from payrelay.store.events.endpoints import Endpoints
from payrelay.store.events.feed import Feed

AIM: Final = 0.5
STORES: Final = ("sqlite", "postgresql")
OWNER: Final = Owner(account="gateway", merchant="m", principal="shop")
LOOPBACK: Final = AllowedDestinations(networks=(ipaddress.ip_network("127.0.0.0/8"),))
AT_ONCE_PUT: Final = 500


HEAD: Final = ["store", "events", "rounds", "bare sending", "delivered", "ratio", f"aim of {AIM:.2f}"]


class Round(NamedTuple):
    """What one round came to, in events a second."""

    bare: float
    delivered: float

    @property
    def ratio(self) -> float:
        """What counts."""
        return self.delivered / self.bare


def main() -> int:
    """Measures, prints, and writes its section of the docs; an aim that is missed is reported and no error."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--events", type=int, default=10_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", default=",".join(STORES), help=f"which stores, by comma ({','.join(STORES)})")
    parser.add_argument("--keep-docs", action="store_true", help="leave docs/ alone")
    wanted = parser.parse_args()
    rows = [HEAD, ["---", *["---:"] * (len(HEAD) - 1)]]
    for store in wanted.only.split(","):
        rounds = rounds_on(store, wanted.rounds, wanted.events)
        rows.append(cells_of(store, rounds, wanted.events))
        print("   ".join(rows[-1]))
    if not wanted.keep_docs:
        section.write("events", [f"| {' | '.join(row)} |" for row in rows])
    return 0


def rounds_on(store: str, count: int, events: int) -> list[Round]:
    """Measures so many rounds on an empty database each."""
    with receiver() as url, contextlib.ExitStack() as stack:
        # Not /tmp, which may be memory: a durable write must cost here what it costs in service.
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="payrelay-bench-", dir="/var/tmp")))
        if store == "postgresql":
            folder.chmod(0o711)
            cluster = postgresql.Cluster(folder)
            stack.enter_context(cluster.running(programs.cores().load))
            uvloop.run(make_schemas(cluster.url, count))
            places = [f"{cluster.url}?search_path=round{number}" for number in range(count)]
        else:
            places = [f"sqlite:///{folder}/{number}.db" for number in range(count)]
        return [uvloop.run(measured(place, url, events)) for place in places]


def cells_of(store: str, rounds: list[Round], events: int) -> list[str]:
    """Gives one row of the table: medians, and of the ratio the lowest and the highest."""
    ratios = sorted(one.ratio for one in rounds)
    ratio = statistics.median(ratios)
    speeds = [statistics.median(one.bare for one in rounds), statistics.median(one.delivered for one in rounds)]
    spread = f"{ratio:.2f} ({ratios[0]:.2f} to {ratios[-1]:.2f})"
    verdict = "met" if ratio >= AIM else "missed"
    return [store, f"{events:,}", str(len(rounds)), *(f"{speed:,.0f}/s" for speed in speeds), spread, verdict]


async def make_schemas(url: str, count: int) -> None:
    """Makes an empty schema for each round."""
    connection = await asyncpg.connect(url)
    for number in range(count):
        await connection.execute(f"CREATE SCHEMA round{number}")
    await connection.close()


async def measured(place: str, url: str, count: int) -> Round:
    """Does one round; gives how the deliveries compare with bare sending."""
    events = [event(number) for number in range(count)]
    database = await open_database(place, clock=Clock(), owner=True)
    async with opened(database) as dispatch:
        secret = await create_endpoint(dispatch, OWNER, NewEndpoint(url=url))
        for start in range(0, count, AT_ONCE_PUT):
            await database.write(put_all(events[start : start + AT_ONCE_PUT]))
        while await dispatch.feed.publish(0):
            pass
        target = await dispatch.endpoints.target(secret.id)
        assert target is not None
        bare_s = await send_bare(url, Signer(Secrets(target.newest)), await dispatch.feed.tail(0, count))
        began_s = time.perf_counter()
        await publish_events(dispatch)
        while dispatch.workers:
            await asyncio.gather(*dispatch.workers.values())
            await asyncio.sleep(0)
        delivered_s = time.perf_counter() - began_s
        waiting, _ = await dispatch.deliveries.waiting()
        assert waiting == 0, f"{waiting} events were not delivered"
    await database.close()
    return Round(count / bare_s, count / delivered_s)


async def send_bare(url: str, signer: Signer, events: list[Any]) -> float:
    """Posts the same, and nothing else; gives the seconds."""
    now_ms = Clock().now_ms()
    ready = iter([(body_of(one), signer.headers(one.id, now_ms, body_of(one).decode())) for one in events])
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session:

        async def send() -> None:
            for body, headers in ready:
                async with session.post(url, data=body, headers=headers, allow_redirects=False) as response:
                    await response.read()

        began_s = time.perf_counter()
        await asyncio.gather(*(send() for _ in range(WIDE)))
        return time.perf_counter() - began_s


@contextlib.asynccontextmanager
async def opened(database: Database) -> AsyncIterator[Dispatch]:
    """Gives what one worker sends with."""
    clock, feed = Clock(), Feed(database, digests_of(database))
    dispatch = Dispatch(
        feed=feed,
        endpoints=Endpoints(database, Seal((b"k" * 32,)), digests_of(database)),
        deliveries=Deliveries(database),
        sender=WebhookSender(LOOPBACK, clock),
        followers=Followers(feed),
        clock=clock,
        log=structlog.wrap_logger(None, processors=[_dropped]),
    )
    yield dispatch
    await dispatch.close()


def _dropped(*_: object) -> NoReturn:
    raise structlog.DropEvent


def event(number: int) -> OutgoingEvent:
    """Gives an event as the journal writes them; each is about an operation of its own."""
    return OutgoingEvent(
        id=event_id(1_790_000_000_000, str(number)),
        type="operation.succeeded",
        account="gateway",
        merchant="m",
        principal="shop",
        subject=f"operation:op_{number:032x}",
        at_ms=1_790_000_000_000,
        data={
            "operation_id": f"op_{number:032x}",
            "kind": "charge",
            "state": "succeeded",
            "version": 2,
            "order_id": f"Order{number}",
            "payment_id": "320025021815",
            "amount": "345.67",
            "currency": "LKR",
        },
    )


def put_all(events: list[OutgoingEvent]) -> Unit[None]:
    """Writes some events."""
    for one in events:
        yield from outbox.put(one, RowKey(CHAIN_KEY))


@contextlib.contextmanager
def receiver() -> Iterator[str]:
    """Runs a receiver in a process of its own."""
    ours, theirs = multiprocessing.Pipe()
    process = multiprocessing.get_context("spawn").Process(target=receive, args=(theirs,), daemon=True)
    process.start()
    try:
        yield f"http://127.0.0.1:{ours.recv()}/"
    finally:
        process.terminate()
        process.join()


def receive(pipe: Connection) -> None:
    """Answers 200 to everything."""

    async def take(request: web.Request) -> web.Response:
        await request.read()
        return web.Response()

    async def serve() -> None:
        app = web.Application()
        app.router.add_post("/", take)
        runner = web.AppRunner(app, access_log=None)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        pipe.send(runner.addresses[0][1])
        await asyncio.Event().wait()

    uvloop.run(serve())


if __name__ == "__main__":
    sys.exit(main())
