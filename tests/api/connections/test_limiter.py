import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from time import perf_counter
from typing import Any

import pytest
from tests.api.fakes import KEY, MovableClock
from tests.api.test_serving import served

from payrelay.api.connections.limiter import limit_connections
from payrelay.api.connections.limits import ConnectionLimits
from payrelay.api.connections.open_connections import OpenConnections
from payrelay.api.connections.sockets import AcceptedSockets, SocketState
from payrelay.api.context import ApiContext
from payrelay.api.serving import until_stopped

LIMITS = ConnectionLimits(address_connections_max=4, principal_connections_max=4, address_unread_max=100_000)
HALF = b"GET /health/live HT"
REST = b"TP/1.1\r\nHost: a\r\n\r\n"
VALID = f"GET /gateway/api/subscriptions HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer {KEY}\r\n\r\n".encode()
LARGE = b"GET /docs/swagger-ui-bundle.js HTTP/1.1\r\nHost: a\r\n\r\n"
WITHIN_S = 10

Wire = tuple[asyncio.StreamReader, asyncio.StreamWriter]


@asynccontextmanager
async def wires(port: int, count: int, sent: bytes) -> AsyncIterator[list[Wire]]:
    """Opens connections, one after the other, and sends the same bytes on each."""
    opened: list[Wire] = []
    try:
        for _ in range(count):
            reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=1_024)
            writer.write(sent)
            opened.append((reader, writer))
        yield opened
    finally:
        for _, writer in opened:
            writer.transport.abort()


async def ended(wire: Wire) -> bool:
    """Reads to the end: True where the service closes the connection."""
    with contextlib.suppress(ConnectionError):
        async with asyncio.timeout(WITHIN_S):
            while await wire[0].read(4_096):
                pass
    return True


async def answer(wire: Wire, sent: bytes) -> bytes:
    """Sends more bytes, reads one answer to its end, and gives its first line up to the status."""
    wire[1].write(sent)
    async with asyncio.timeout(WITHIN_S):
        head = await wire[0].readuntil(b"\r\n\r\n")
        fields = dict(line.split(b": ", 1) for line in head.splitlines()[1:-1])
        await wire[0].readexactly(int(fields[b"content-length"]))
    return head[:12]


async def test_half_requests_are_closed_oldest_first(
    context: ApiContext, log_lines: Callable[[], list[dict[str, Any]]]
) -> None:
    """One address that opens connections without end keeps its newest alone; the log and the metrics say so."""
    async with served(replace(context, limits=LIMITS)) as (port, _), wires(port, 20, HALF) as opened:
        assert all([await ended(wire) for wire in opened[:16]])
        assert await answer(opened[-1], REST) == b"HTTP/1.1 200"
    lines = [line for line in log_lines() if line["event"] == "connections_closed"]
    assert {(line["reason"], line["owner"]) for line in lines} == {("too_many_of_address", "127.0.0.1")}
    assert sum(line["count"] for line in lines) == 16
    assert b'payrelay_closed_connections_total{reason="too_many_of_address"} 16.0' in context.metrics.text()


async def test_a_valid_credential_is_never_refused(context: ApiContext) -> None:
    """Beside a flood from its own address, a connection with a key goes on, and a new one with a key is served."""
    async with served(replace(context, limits=LIMITS)) as (port, _), wires(port, 1, VALID) as (shop,):
        assert await answer(shop, b"") == b"HTTP/1.1 200"
        async with wires(port, 20, HALF) as opened:
            assert all([await ended(wire) for wire in opened[:16]])
            assert await answer(shop, VALID) == b"HTTP/1.1 200"
            async with wires(port, 1, VALID) as (another,):
                assert await answer(another, b"") == b"HTTP/1.1 200"


@asynccontextmanager
async def silent(port: int, count: int) -> AsyncIterator[None]:
    """Opens connections that ask for a large page and read nothing of it."""
    with contextlib.ExitStack() as stack:
        for _ in range(count):
            wire = stack.enter_context(socket.socket())
            wire.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
            wire.connect(("127.0.0.1", port))
            wire.sendall(LARGE)
        yield


async def counted(context: ApiContext, reason: str, clock: MovableClock, step_s: float) -> bool:
    """Moves the clock on until the metrics show that connections were closed for this reason."""
    line = f'payrelay_closed_connections_total{{reason="{reason}"}}'.encode()
    async with asyncio.timeout(WITHIN_S):
        while line not in context.metrics.text():
            clock.at_s += step_s
            await asyncio.sleep(0)
    return True


async def test_unread_answers_are_dropped(context: ApiContext, clock: MovableClock) -> None:
    """Answers that nobody reads take no more memory than one address may have."""
    async with served(replace(context, limits=LIMITS)) as (port, _), silent(port, 1):
        assert await counted(context, "too_much_unread", clock, step_s=0)


async def test_an_answer_waits_so_long_for_its_reader(context: ApiContext, clock: MovableClock) -> None:
    """Whoever takes nothing of an answer until its time is over loses the connection, however few there are."""
    async with served(context) as (port, _), silent(port, 1):
        assert await counted(context, "not_read_in_time", clock, step_s=1)


class SlowSockets(AcceptedSockets):
    """So many sockets that a look at them takes a while."""

    def __init__(self) -> None:
        with socket.socket() as unbound:
            super().__init__(unbound)
        self.looks = 0

    def states(self) -> list[SocketState]:
        """Looks, and finds nothing."""
        self.looks += 1
        end_s = perf_counter() + 0.1
        while perf_counter() < end_s:
            pass
        return []


class BrokenSockets(SlowSockets):
    """Sockets that a kernel shows otherwise than Linux."""

    def states(self) -> list[SocketState]:
        """Fails as a program with a mistake does."""
        raise ValueError("not as expected")


async def test_a_service_whose_connections_nobody_limits_any_more_ends() -> None:
    """It would go on without any limit, and nothing would tell so; whoever runs it starts it anew."""
    connections = OpenConnections(LIMITS, MovableClock(), lambda _: False)
    serving, stop = asyncio.get_running_loop().create_future(), asyncio.Event()
    limiting = asyncio.ensure_future(limit_connections(connections, BrokenSockets(), note=lambda *_: None))
    async with asyncio.timeout(WITHIN_S):
        with pytest.raises(ValueError, match="not as expected"):
            await until_stopped(serving, limiting, stop)


async def test_looks_at_very_many_connections_leave_the_time_to_requests() -> None:
    """With ten thousand connections a look every fifth of a second would take a third of the processor."""
    sockets, connections = SlowSockets(), OpenConnections(replace(LIMITS, places=0), MovableClock(), lambda _: False)
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(0.8):
            await limit_connections(connections, sockets, note=lambda *_: None)
    assert sockets.looks == 1
