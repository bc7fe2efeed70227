"""Every address that listens gets the same attacks over real sockets, and does the same about each of them."""

import asyncio
import socket
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, replace
from typing import Any, Final

import pytest
from tests.api.connections.test_limiter import WITHIN_S, answer, ended, wires
from tests.api.fakes import KEY, MovableClock

from payrelay.api import serving
from payrelay.api.address import AddressBeside, ServedAddress
from payrelay.api.app import Api
from payrelay.api.connections.limits import UNREAD_MAX_S, ConnectionLimits
from payrelay.api.console_door import ConsoleDoor
from payrelay.api.console_exchange import ConsoleAnswer, ConsoleRequest
from payrelay.api.context import ApiContext
from payrelay.api.http.sampled_lines import LINES_OF_A_KIND
from payrelay.api.http.streams import StreamedAnswer
from payrelay.core.events.event import Plain
from payrelay.flows.events.event_views import EventView
from payrelay.flows.events.read_events import EventStream

FEW: Final = ConnectionLimits(address_connections_max=4, principal_connections_max=4, address_unread_max=500_000)
FLOOD: Final = 20
READERS: Final = 4
LARGE_BYTES: Final = 400_000
PLAIN: Final = ((b"content-type", b"text/plain"),)
REQUESTS: Final = 60
ANSWERS: Final = 24
AT_ONCE: Final = 500_000

LogLines = Callable[[], list[dict[str, Any]]]


@dataclass(frozen=True, kw_only=True)
class Door:
    """An address, with what is asked there: a large page, and one that leaves a line in the log each time."""

    app: ServedAddress
    large: str
    logged: str


async def pages(request: ConsoleRequest) -> ConsoleAnswer:
    """Stands for the console: a large page, and nothing else."""
    body = b"x" * LARGE_BYTES if request.path == b"/console" else b""
    return ConsoleAnswer(status=200 if body else 404, headers=PLAIN, body=body, route="/console")


def doors(context: ApiContext, limits: ConnectionLimits) -> dict[str, Door]:
    """Makes every address that the program can have."""
    api = Api(replace(context, limits=limits))
    return {
        "the API's": Door(app=api, large="/docs/swagger-ui-bundle.js", logged="/nothing"),
        "the console's own": Door(app=AddressBeside(ConsoleDoor(pages), api), large="/console", logged="/nothing"),
        "the metrics' own": Door(app=AddressBeside(api.metrics, api), large="/metrics", logged="/metrics"),
    }


@asynccontextmanager
async def listening(app: ServedAddress) -> AsyncIterator[int]:
    """Serves on a free port, which it gives."""
    stop, started = asyncio.Event(), asyncio.get_running_loop().create_future()
    task = asyncio.create_task(
        serving.serve(
            app,
            "127.0.0.1",
            0,
            stop=stop,
            drain_s=5,
            on_started=lambda _, port: started.set_result(port),
        )
    )
    try:
        yield await started
    finally:
        stop.set()
        await task


def get(path: str) -> bytes:
    """Writes a request."""
    return f"GET {path} HTTP/1.1\r\nHost: a\r\n\r\n".encode()


async def half_requests(door: Door, port: int) -> str:
    """Sends headers without an end: the newest connections are served."""
    whole = get(door.logged)
    async with wires(port, FLOOD, whole[:-2]) as opened:
        closed = [await ended(wire) for wire in opened[: -FEW.address_connections_max]]
        served = await answer(opened[-1], whole[-2:])
    return f"{closed.count(True)} closed, the newest {served[:8].decode()}"


async def half_bodies(door: Door, port: int) -> str:
    """Announces bodies that never come."""
    headers = f"POST {door.large} HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\n".encode()
    async with wires(port, FLOOD, headers) as opened:
        closed = [await ended(wire) for wire in opened[: -FEW.address_connections_max]]
    return f"{closed.count(True)} closed"


async def many_requests(door: Door, port: int) -> str:
    """Asks again and again, on one connection."""
    async with wires(port, 1, b"") as (wire,):
        statuses = {await answer(wire, get(door.logged)) for _ in range(REQUESTS)}
    return f"{len(statuses)} kind of answer"


async def unread_answers(door: Door, port: int) -> str:
    """Asks for more and more large pages on a few connections, and reads none."""
    async with AsyncExitStack() as stack:
        opened = [stack.enter_context(socket.socket()) for _ in range(READERS)]
        for wire in opened:
            wire.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
            wire.connect(("127.0.0.1", port))
            wire.sendall(get(door.large) * 40)
            wire.setblocking(False)  # noqa: FBT003 - positional in the standard library
        async with asyncio.timeout(WITHIN_S):
            while not any(map(is_reset, opened)):  # noqa: ASYNC110 - nothing tells of it
                await asyncio.sleep(0)
    return "closed"


def is_reset(wire: socket.socket) -> bool:
    """True where the other end has dropped the connection; reads nothing."""
    return wire.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR) != 0


ATTACKS: Final = (half_requests, half_bodies, many_requests, unread_answers)


async def test_every_address_holds_the_same_attacks(context: ApiContext, log_lines: LogLines) -> None:
    """Whoever shuts the console keeps the operators out, and whoever shuts the metrics hides what he does."""
    found: dict[str, list[object]] = {}
    for name, door in doors(context, FEW).items():
        async with listening(door.app) as port:
            before = len(log_lines())
            did = [await attack(door, port) for attack in ATTACKS]
            door.app.lines.log_counts()
            lines = log_lines()[before:]
            logged = [line for line in lines if line["event"] == "request"]
            reasons = {line["reason"] for line in lines if line["event"] == "connections_closed"}
            left_out = sum(line["count"] for line in lines if line["event"] == "lines_left_out")
            found[name] = [*did, len(logged) <= 3 * LINES_OF_A_KIND, left_out >= REQUESTS // 2, reasons]

    same = [
        f"{FLOOD - FEW.address_connections_max} closed, the newest HTTP/1.1",
        f"{FLOOD - FEW.address_connections_max} closed",
        "1 kind of answer",
        "closed",
        True,
        True,
        {"too_many_of_address", "too_much_unread"},
    ]
    assert found == dict.fromkeys(found, same)


class EndlessStream(EventStream):
    """Stands for a stream of events that come as quickly as they are taken."""

    is_over = False

    def __init__(self) -> None:
        self.has_ended = asyncio.Event()

    async def events(self) -> AsyncIterator[EventView]:
        """Gives events."""
        data: dict[str, Plain] = {"text": "x" * 8_192}
        while True:
            await asyncio.sleep(0)
            yield EventView(position=1, id="evt_1", type="a", timestamp="", account="a", subject="a", data=data)

    def close(self) -> None:
        """Notes the end."""
        self.has_ended.set()

    async def pieces(self) -> AsyncGenerator[bytes, None]:
        """Gives the pieces of a live page."""
        try:
            while True:
                await asyncio.sleep(0)
                yield b"x" * 8_192
        finally:
            self.close()


async def looked(app: ServedAddress, clock: MovableClock, step_s: float) -> None:
    """Moves the clock on, and waits until the connections were looked at since."""
    clock.at_s += step_s
    app.connections.is_crowded.set()
    async with asyncio.timeout(WITHIN_S):
        while app.connections.is_crowded.is_set():  # noqa: ASYNC110 - a look clears it, and tells nobody
            await asyncio.sleep(0)


@asynccontextmanager
async def asking(port: int, sent: bytes) -> AsyncIterator[Callable[[int], Awaitable[int]]]:
    """Sends requests on one connection; gives what reads so many bytes of the answers, or fewer at the end of it."""
    loop = asyncio.get_running_loop()
    with socket.socket() as wire:
        wire.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65_536)
        wire.connect(("127.0.0.1", port))
        wire.sendall(sent)
        wire.setblocking(False)  # noqa: FBT003 - positional in the standard library

        async def read(count: int) -> int:
            done = 0
            with suppress(ConnectionError):
                async with asyncio.timeout(WITHIN_S):
                    while done < count and (piece := await loop.sock_recv(wire, min(65_536, count - done))):
                        done += len(piece)
            return done

        yield read


async def test_who_reads_on_gets_every_answer(context: ApiContext, clock: MovableClock) -> None:
    """A phone in a bad network reads one large answer after another for minutes, and never has read all of them.

    What it has read is no burden any more: together they are many times what one address may leave unread.
    """
    api = Api(replace(context, limits=replace(FEW, address_unread_max=1_500_000)))
    large = get("/docs/swagger-ui-bundle.js")
    async with listening(api) as port:
        async with wires(port, 1, large.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n")) as (wire,):
            size = len(await wire[0].read(-1))
        async with asking(port, large * ANSWERS) as read:
            expected = (size - len("connection: close\r\n")) * ANSWERS
            done = 0
            while done < expected:
                got = await read(min(AT_ONCE, expected - done))
                done += got
                if not got:
                    break
                await looked(api, clock, step_s=20)
            assert done == expected
            assert expected > 5 * api.connections.limits.address_unread_max


@pytest.mark.parametrize("path", ["/gateway/api/subscriptions", "/console/live"])
async def test_a_stream_waits_for_a_slow_reader_and_not_for_one_who_does_not_read(
    context: ApiContext, clock: MovableClock, path: str
) -> None:
    """A follower in a bad network stays behind, and is told everything; one that reads nothing loses its place."""
    stream = EndlessStream()

    async def events(*_: object) -> StreamedAnswer:
        return StreamedAnswer(stream=stream)

    async def live(_: ConsoleRequest) -> ConsoleAnswer:
        return ConsoleAnswer(status=200, headers=PLAIN, body=b"", route="/console/live", stream=stream.pieces())

    api = Api(replace(context, routes=tuple(replace(route, handler=events) for route in context.routes)))
    app = AddressBeside(ConsoleDoor(live), api) if path == "/console/live" else api
    request = get(path).replace(b"Host: a", f"Host: a\r\nAuthorization: Bearer {KEY}".encode())
    async with listening(app) as port, asking(port, request) as read:
        for _ in range(10):
            assert await read(AT_ONCE) == AT_ONCE
            await looked(app, clock, step_s=20)
        assert not stream.has_ended.is_set()
        await looked(app, clock, step_s=UNREAD_MAX_S)
        await looked(app, clock, step_s=UNREAD_MAX_S)
        async with asyncio.timeout(WITHIN_S):
            await stream.has_ended.wait()
