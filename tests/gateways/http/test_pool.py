import asyncio
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from typing import Final

import pytest
from aiohappyeyeballs import AddrInfoType
from tests.gateways.http.servers import Link, Server

from payrelay.clock import Clock
from payrelay.gateways.http.connecting import NOT_CONNECTED, Connector, NotConnected, not_connected
from payrelay.gateways.http.connection import GatewayConnection
from payrelay.gateways.http.exchange import CallHeaders, Loss, LossCause, Reply
from payrelay.gateways.http.pool import STALE_MAX, ConnectionPool, PoolLimits, loss_of
from payrelay.gateways.payhere.wire.requests import WireRequest, headers_of

POST: Final = WireRequest(method="POST", path="/charge", body=b"{}")
HEADERS: Final = headers_of("Bearer t")
REPLY: Final = Reply(http_status=200, body=b"{}")
LOST: Final = Loss(is_sent=True, cause=LossCause.CONNECTION_LOST)
LONG_S: Final = 30.0
SHORT_S: Final = 0.3
"""Waited for in full where nobody answers."""

Make = Callable[..., ConnectionPool]


class HandClock(Clock):
    """Stands still until it is moved, and does something at each look."""

    def __init__(self) -> None:
        self.now_s = 1_000.0
        self.looks: list[Callable[[], object]] = []

    def boot_s(self) -> float:
        """Gives the time that it was moved to."""
        if self.looks:
            self.looks.pop(0)()
        return self.now_s


@pytest.fixture
async def make(server: Server) -> AsyncIterator[Make]:
    """Makes pools to the server, and closes them."""
    made: list[ConnectionPool] = []

    def pool(
        clock: Clock | None = None, *, url: str | None = None, connections: int = 9, timeout_s: float = LONG_S
    ) -> ConnectionPool:
        limits = PoolLimits(timeout_s=timeout_s, idle_s=2.0, bytes_max=99, connections_max=connections)
        made.append(ConnectionPool(url or server.url, clock or Clock(), limits))
        return made[-1]

    yield pool
    for each in made:
        await each.close()


async def answer(link: Link) -> None:
    """Answers every request."""
    while True:
        await link.take()
        await link.answer(b"{}")


class Gate:
    """Answers each request when it is let through."""

    def __init__(self) -> None:
        self.has_request = asyncio.Event()
        self.is_open = asyncio.Event()

    async def serve(self, link: Link) -> None:
        """Serves one connection."""
        while True:
            await link.take()
            self.has_request.set()
            await self.is_open.wait()
            await link.answer(b"{}")


@pytest.mark.parametrize("how", ["speaks", "ends"])
async def test_what_the_loop_has_not_read_yet_is_seen_before_the_writing(server: Server, make: Make, how: str) -> None:
    """Between the last look of the event loop and the writing, bytes or an end may lie in the socket."""
    links: list[Link] = []

    async def note(link: Link) -> None:
        links.append(link)
        await answer(link)

    def spoil() -> None:
        taken = links[0].writer.get_extra_info("socket")
        os_socket = socket.socket(fileno=socket.dup(taken.fileno()))
        if how == "speaks":
            os_socket.send(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n[]")
        else:
            os_socket.shutdown(socket.SHUT_WR)
        os_socket.close()

    server.script = [note]
    clock = HandClock()
    pool = make(clock)
    assert await pool.exchange(POST, HEADERS) == REPLY
    clock.looks = [spoil]
    assert await pool.exchange(POST, HEADERS, send_by_s=1_000.0) == REPLY
    assert server.connections == 2


async def test_a_server_that_speaks_first_is_never_written_to(server: Server, make: Make) -> None:
    """A reply that comes before the request is nobody's; after a few such connections the call is *not sent*."""
    got: list[bytes] = []
    links: list[Link] = []

    async def listen(link: Link) -> None:
        links.append(link)
        got.append(await link.reader.read())

    class Impatient(Clock):
        """Lets the server speak before each writing."""

        def boot_s(self) -> float:
            taken = links[-1].writer.get_extra_info("socket")
            with socket.socket(fileno=socket.dup(taken.fileno())) as os_socket:
                os_socket.send(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}")
            return 0.0

    server.script = [listen]
    loss = await make(Impatient()).exchange(POST, HEADERS, send_by_s=1.0)
    assert loss == Loss(is_sent=False, cause=LossCause.NO_CONNECTION)
    await server.end()
    assert (server.connections, b"".join(got)) == (STALE_MAX, b"")


async def test_a_call_that_is_given_up_is_not_written_later(server: Server, make: Make) -> None:
    """What waits in a connection's buffer would be sent by closing it: a charge after its caller was told otherwise."""
    big = WireRequest(method="POST", path="/charge", body=b"x" * 50_000_000)
    arrived: asyncio.Future[int] = asyncio.get_running_loop().create_future()
    begun, goes_on = asyncio.Event(), asyncio.Event()

    async def read_late(link: Link) -> None:
        size = len(await link.reader.readexactly(1))
        begun.set()
        await goes_on.wait()
        with suppress(ConnectionError):
            while part := await link.reader.read(1_000_000):
                size += len(part)
        arrived.set_result(size)

    server.script = [read_late]
    call = asyncio.create_task(make().exchange(big, HEADERS))
    await begun.wait()
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    goes_on.set()
    assert await arrived < 50_000_000


async def test_calls_beyond_the_limit_wait_for_a_connection(server: Server, make: Make) -> None:
    """A connection that becomes free goes to the call that has waited longest."""
    gate = Gate()
    server.script = [gate.serve]
    pool = make(connections=2)
    calls = [asyncio.create_task(pool.exchange(POST, HEADERS)) for _ in range(9)]
    await gate.has_request.wait()
    gate.is_open.set()
    assert await asyncio.gather(*calls) == [REPLY] * 9
    assert server.connections == 2


async def test_a_call_that_gets_no_connection_in_time_is_not_sent(server: Server, make: Make) -> None:
    """It has waited in our own line, and nobody has heard of it."""
    gate = Gate()
    server.script = [gate.serve]
    pool = make(connections=1, timeout_s=2 * SHORT_S)
    first = asyncio.create_task(pool.exchange(POST, HEADERS))
    await gate.has_request.wait()
    assert await pool.exchange(POST, HEADERS) == Loss(is_sent=False, cause=LossCause.CONNECT_TIMEOUT)
    gate.is_open.set()
    assert await first == REPLY
    assert await pool.exchange(POST, HEADERS) == REPLY


async def test_who_stops_waiting_leaves_the_connection_to_others(server: Server, make: Make) -> None:
    """A place that was given to a call at the moment at which it was cancelled must not be lost for good."""
    gate = Gate()
    server.script = [gate.serve]
    pool = make(connections=1)
    first = asyncio.create_task(pool.exchange(POST, HEADERS))
    await gate.has_request.wait()
    waiting = [asyncio.create_task(pool.exchange(POST, HEADERS)) for _ in range(3)]
    first.add_done_callback(lambda _: waiting[0].cancel())  # it has been given the connection by then
    await asyncio.sleep(0)
    waiting[1].cancel()
    gate.is_open.set()
    assert await first == REPLY
    assert await waiting[2] == REPLY
    assert await pool.exchange(POST, HEADERS) == REPLY
    assert server.connections <= 2


@pytest.mark.parametrize("ending", ["lost", "cancelled"])
async def test_a_connection_that_ends_leaves_its_place(server: Server, make: Make, ending: str) -> None:
    """A pool whose places leak would stop the service after some hundred faults."""

    async def end(link: Link) -> None:
        await link.take()

    gate = Gate()
    server.script = [*[end if ending == "lost" else gate.serve] * 3, answer]
    pool = make(connections=1)
    for _ in range(3):
        gate.has_request.clear()
        call = asyncio.create_task(pool.exchange(POST, HEADERS))
        if ending == "cancelled":
            await gate.has_request.wait()
            call.cancel()
            with suppress(asyncio.CancelledError):
                await call
        else:
            assert await call == LOST
    assert await pool.exchange(POST, HEADERS) == REPLY


async def test_places_of_failed_connections_are_given_back(make: Make) -> None:
    """While the gateway is away, each call fails by itself, and none waits for a place."""
    pool = make(url="http://127.0.0.1:1", connections=1)
    refused = Loss(is_sent=False, cause=LossCause.NO_CONNECTION)
    assert [await pool.exchange(POST, HEADERS) for _ in range(3)] == [refused] * 3


async def test_an_idle_connection_is_used_until_its_time(server: Server, make: Make) -> None:
    """One that was idle for longer may be closing at the other end while we write; a suspended machine counts too."""
    server.script = [answer]
    clock = HandClock()
    pool = make(clock)
    for at_s, connections in ((1_000.0, 1), (1_002.0, 1), (1_004.1, 2)):
        clock.now_s = at_s
        assert await pool.exchange(POST, HEADERS) == REPLY
        assert server.connections == connections


async def test_calls_under_way_are_lost_when_the_pool_closes(server: Server, make: Make) -> None:
    """What was written is unknown; what waits for a connection is not sent."""
    gate = Gate()
    server.script = [gate.serve]
    pool = make(connections=1)
    sent = asyncio.create_task(pool.exchange(POST, HEADERS))
    await gate.has_request.wait()
    waiting = asyncio.create_task(pool.exchange(POST, HEADERS))
    await asyncio.sleep(0)
    await pool.close()
    assert await sent == LOST
    assert await waiting == Loss(is_sent=False, cause=LossCause.CLOSED)


async def test_the_next_address_is_tried_where_one_is_dead(server: Server) -> None:
    """A gateway with addresses of both families is reached from a machine that has one of them alone."""

    class Found(Connector):
        """Finds a dead address first."""

        async def _addresses(self) -> list[AddrInfoType]:
            port = int(server.url.rpartition(":")[2])
            dead = (socket.AF_INET6, socket.SOCK_STREAM, socket.IPPROTO_TCP, "", ("::1", 1, 0, 0))
            return [dead, (socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP, "", ("127.0.0.1", port))]

    server.script = [answer]
    loop = asyncio.get_running_loop()
    connector = Found("gateway.invalid", 1, None)
    connection = await connector.connect(lambda: GatewayConnection(99, lambda _: None), by_s=loop.time() + LONG_S)
    assert connection.is_fit()
    connection.abort()
    await connection.lost


async def test_a_name_is_looked_up_once_for_all_who_wait(server: Server, make: Make) -> None:
    """A burst at start would otherwise take every thread of the machine's resolver."""
    server.script = [answer]
    pool = make(url=server.url.replace("127.0.0.1", "localhost"))
    assert await asyncio.gather(*(pool.exchange(POST, HEADERS) for _ in range(5))) == [REPLY] * 5


@pytest.mark.parametrize("path", ["/a b", "/a\r\nX: y", "/a\x00", "/ü", "/a\x7f"])
async def test_a_path_that_would_end_its_line_is_not_written(server: Server, make: Make, path: str) -> None:
    """Nobody may put a header, or a second request, into ours; that nothing was sent is not claimed either."""
    server.script = [answer]
    assert await make().exchange(WireRequest(method="GET", path=path), HEADERS) == LOST
    assert server.connections == 0


@pytest.mark.parametrize("value", ["a\r\nX: y", "a\x00", "ü"])
def test_a_header_that_would_end_its_line_is_refused(value: str) -> None:
    """An access token comes from outside."""
    with pytest.raises(ValueError, match=r"not a value|ordinal"):
        CallHeaders(value, "application/json")


def test_the_authorization_is_not_shown() -> None:
    """A traceback with a pool in it goes to a log."""
    assert "secret-token" not in repr(headers_of("Bearer secret-token"))


@pytest.mark.parametrize("cause", list(LossCause))
def test_not_sent_needs_two_grounds(cause: LossCause) -> None:
    """A failure that is listed counts only where nothing was written; everything else counts as sent."""
    assert loss_of(NotConnected(cause), is_begun=False) == Loss(is_sent=False, cause=cause)
    assert loss_of(NotConnected(cause), is_begun=True) == LOST


@pytest.mark.parametrize("error", [OSError(), TimeoutError(), RuntimeError(), ValueError(), ConnectionResetError()])
def test_what_is_not_listed_counts_as_sent(error: Exception) -> None:
    """It may have come at any time."""
    assert loss_of(error, is_begun=False) == LOST


def test_the_failures_of_a_connection_are_these() -> None:
    """Written out, so that a new one is looked at by a person."""
    assert [kind.__name__ for kind, _ in NOT_CONNECTED] == [
        "gaierror",
        "UnicodeError",
        "SSLError",
        "TimeoutError",
        "OSError",
    ]
    assert not_connected(RuntimeError()) is None
