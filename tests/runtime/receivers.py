"""A receiver of events on a real socket, and what is needed to send to it, with a clock that is moved by hand."""

import asyncio
import ipaddress
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, NoReturn

import msgspec
import structlog
from aiohttp import web
from aiohttp.abc import AbstractResolver
from tests.digests import CHAIN_KEY, digests_of

from payrelay.clock import Clock
from payrelay.core.events.destinations import AllowedDestinations
from payrelay.core.events.event import OutgoingEvent, event_id
from payrelay.flows.events.manage_endpoints import IssuedEndpoint, NewEndpoint, Owner, create_endpoint
from payrelay.runtime.event_delivery import Dispatch, publish_events
from payrelay.runtime.followers import Followers
from payrelay.runtime.webhook_sender import WebhookSender
from payrelay.store.digests.rows import RowKey
from payrelay.store.engine.database import Database
from payrelay.store.engine.sealing import Seal
from payrelay.store.events import outbox
from payrelay.store.events.deliveries import Deliveries
from payrelay.store.events.endpoints import Endpoints
from payrelay.store.events.feed import Feed

OWNER = Owner(account="gateway", merchant="m", principal="shop")
LOOPBACK = AllowedDestinations(networks=(ipaddress.ip_network("127.0.0.0/8"),))
STARTED_MS = 1_790_000_000_000
TURN_S = 0.002


class SetClock(Clock):
    """Stands where it is put."""

    def __init__(self) -> None:
        self.at_ms = STARTED_MS

    def now_ms(self) -> int:
        """Gives where it was put."""
        return self.at_ms

    def boot_s(self) -> float:
        """Gives the same in seconds."""
        return self.at_ms / 1000


@dataclass(frozen=True)
class ReceivedWebhook:
    """One request as it came."""

    headers: dict[str, str]
    body: bytes

    @property
    def id(self) -> str:
        """The event's id."""
        return self.headers["webhook-id"]

    @property
    def message(self) -> Any:  # noqa: ANN401 - JSON
        """What the body says."""
        return msgspec.json.decode(self.body)


Answering = Callable[[ReceivedWebhook], Awaitable[web.Response]]


@dataclass
class Receiver:
    """Takes what is posted, and answers as the test says: by the number of a subject in ``data``, else 200."""

    port: int = 0
    received: list[ReceivedWebhook] = field(default_factory=list)
    answers: list[web.Response] = field(default_factory=list)
    answering: Answering | None = None
    at_once: int = 0
    at_once_max: int = 0

    @property
    def url(self) -> str:
        """Where it listens."""
        return f"http://127.0.0.1:{self.port}/events"

    async def take(self, request: web.Request) -> web.Response:
        """Answers one request."""
        headers = {name.lower(): value for name, value in request.headers.items()}
        received = ReceivedWebhook(headers, await request.read())
        self.received.append(received)
        self.at_once += 1
        self.at_once_max = max(self.at_once, self.at_once_max)
        try:
            if self.answering is not None:
                return await self.answering(received)
            return self.answers.pop(0) if self.answers else web.Response()
        finally:
            self.at_once -= 1


@asynccontextmanager
async def receiving() -> AsyncIterator[Receiver]:
    """Listens while the context is open."""
    receiver = Receiver()
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", receiver.take)
    runner = web.AppRunner(app, shutdown_timeout=0)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    receiver.port = runner.addresses[0][1]
    try:
        yield receiver
    finally:
        await runner.cleanup()


def dispatch_on(
    database: Database,
    clock: Clock,
    *,
    allowed: AllowedDestinations = LOOPBACK,
    limit_s: float = 5.0,
    resolver: AbstractResolver | None = None,
) -> Dispatch:
    """Gives what one process sends with; no jitter."""
    feed = Feed(database, digests_of(database))
    return Dispatch(
        feed=feed,
        endpoints=Endpoints(database, Seal((b"k" * 32,)), digests_of(database)),
        deliveries=Deliveries(database),
        sender=WebhookSender(allowed, clock, limit_s=limit_s, resolver=resolver),
        followers=Followers(feed),
        clock=clock,
        log=structlog.wrap_logger(None, processors=[_dropped]),
        chance=lambda: 0.0,
    )


def _dropped(*_: object) -> NoReturn:
    raise structlog.DropEvent


def event(number: int, **members: object) -> OutgoingEvent:
    """Gives an event by its number, but for what is named."""
    own: dict[str, Any] = {
        "id": event_id(STARTED_MS, str(number)),
        "type": "customer.created",
        "account": "gateway",
        "merchant": "m",
        "principal": "shop",
        "subject": f"customer:cus_{number}",
        "at_ms": STARTED_MS,
        "data": {"number": number},
    }
    return OutgoingEvent(**(own | members))


async def put(database: Database, *events: OutgoingEvent) -> None:
    """Writes events, each in a unit of its own."""
    for one in events:
        await database.write(outbox.put(one, RowKey(CHAIN_KEY)))


async def register(dispatch: Dispatch, url: str, *types: str) -> IssuedEndpoint:
    """Registers an endpoint of the shop's."""
    return await create_endpoint(dispatch, OWNER, NewEndpoint(url=url, types=types or ("*",)))


async def deliver(*dispatches: Dispatch) -> None:
    """Publishes and sends until nothing more is due at this moment."""
    for dispatch in dispatches:
        await publish_events(dispatch)
    while workers := [worker for dispatch in dispatches for worker in dispatch.workers.values()]:
        await asyncio.gather(*workers)
        await asyncio.sleep(0)
        for dispatch in dispatches:
            await publish_events(dispatch)


async def eventually(condition: Callable[[], bool]) -> None:
    """Gives others their turns until a condition holds."""
    async with asyncio.timeout(20):
        while not condition():  # noqa: ASYNC110 - what it waits for happens on a real socket
            await asyncio.sleep(TURN_S)  # the receiver is on a real socket


def numbers(receiver: Receiver) -> list[int]:
    """Gives the numbers of the events that came, in their order."""
    return [one.message["data"]["number"] for one in receiver.received]
