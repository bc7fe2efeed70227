import asyncio
import gzip
from collections.abc import AsyncIterator, Callable
from typing import Final

import pytest
from tests.gateways.http.servers import Link, Server, Step

from payrelay.clock import Clock
from payrelay.gateways.http.exchange import Loss, LossCause, Reply
from payrelay.gateways.http.pool import STALE_MAX, ConnectionPool
from payrelay.gateways.payhere.connections import EFFECT_REPLY_BYTES_MAX, GatewayConnections
from payrelay.gateways.payhere.wire.requests import WireRequest, headers_of

POST: Final = WireRequest(method="POST", path="/merchant/v1/payment/charge", body=b'{"amount":345.67}')
GET: Final = WireRequest(method="GET", path="/merchant/v1/payment/search?order_id=a%2Fb%26c")
HEADERS: Final = headers_of("Bearer t")
LONG_S: Final = 30.0
SHORT_S: Final = 0.3
"""Waited for in full by the tests in which the other side never answers."""


@pytest.fixture
def dates() -> list[str]:
    """Gives the Date headers that were seen."""
    return []


@pytest.fixture
async def pools(dates: list[str]) -> AsyncIterator[Callable[..., ConnectionPool]]:
    """Makes pools, and closes them."""
    made: list[GatewayConnections] = []

    def make(
        url: str, *, timeout_s: float = LONG_S, clock: Clock | None = None, is_read: bool = False
    ) -> ConnectionPool:
        connections = GatewayConnections(url, clock or Clock(), timeout_s=timeout_s, date_seen=dates.append)
        made.append(connections)
        return connections.reads if is_read else connections.effects

    yield make
    for connections in made:
        await connections.close()


async def dated(link: Link) -> None:
    """Answers with the time of the gateway."""
    await link.take()
    await link.answer(b"{}", "Date: Mon, 23 Nov 2026 03:00:00 GMT\r\n")


async def hang_up(_: Link) -> None:
    """Closes without reading."""


async def read_and_close(link: Link) -> None:
    """Has the request, and goes."""
    await link.take()


async def read_and_reset(link: Link) -> None:
    """Has the request, and resets the connection."""
    await link.take()
    link.writer.transport.abort()


async def answer_by_half(link: Link) -> None:
    """Promises more than it gives."""
    await link.take()
    await link.say(b'HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{"status":1,')


async def answer_half_a_head(link: Link) -> None:
    """Stops in the middle of a header."""
    await link.take()
    await link.say(b"HTTP/1.1 200 OK\r\nContent-Le")


async def hang(link: Link) -> None:
    """Has the request and never answers."""
    await link.take()
    await link.stay()


async def drip(link: Link) -> None:
    """Gives one byte at a time and never comes to an end."""
    await link.take()
    await link.say(b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n")
    while True:
        await link.say(b" ")
        await asyncio.sleep(SHORT_S / 20)  # nobody waits for it: this is the fault


async def flood(link: Link) -> None:
    """Answers with more than anybody asked for."""
    await link.take()
    await link.say(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
    while True:
        await link.say(b"10000\r\n" + b" " * 0x10000 + b"\r\n")


async def promise_too_much(link: Link) -> None:
    """Names a length that nobody wants to read."""
    await link.take()
    await link.say(b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n")
    await link.stay()


async def bomb(link: Link) -> None:
    """Answers with few bytes that become many."""
    await link.take()
    await link.answer(gzip.compress(b" " * (64 * EFFECT_REPLY_BYTES_MAX)), "Content-Encoding: gzip\r\n")


async def garbage_chunks(link: Link) -> None:
    """Breaks off the chunked encoding."""
    await link.take()
    await link.say(b'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n{"st\r\nzzz\r\n')


async def no_http(link: Link) -> None:
    """Speaks another protocol."""
    await link.take()
    await link.say(b"220 mail.example ESMTP\r\n")


async def endless_head(link: Link) -> None:
    """Sends one header after the other."""
    await link.take()
    await link.say(b"HTTP/1.1 200 OK\r\n" + b"".join(b"X-%d: y\r\n" % number for number in range(1_000)) + b"\r\n")


FAULTS: Final = [
    (hang_up, LossCause.CONNECTION_LOST),
    (read_and_close, LossCause.CONNECTION_LOST),
    (read_and_reset, LossCause.CONNECTION_LOST),
    (answer_by_half, LossCause.HALF_REPLY),
    (answer_half_a_head, LossCause.CONNECTION_LOST),
    (hang, LossCause.TIMEOUT),
    (drip, LossCause.TIMEOUT),
    (flood, LossCause.TOO_LARGE),
    (promise_too_much, LossCause.TOO_LARGE),
    (bomb, LossCause.NOT_HTTP),
    (garbage_chunks, LossCause.NOT_HTTP),
    (no_http, LossCause.NOT_HTTP),
    (endless_head, LossCause.NOT_HTTP),
]


@pytest.mark.parametrize(("fault", "cause"), FAULTS)
async def test_every_fault_after_the_connection_is_sent(
    server: Server, pools: Callable[..., ConnectionPool], fault: Step, cause: LossCause
) -> None:
    """Whatever the server does once it has taken the connection, the request may have been read: never *not sent*."""
    server.script = [fault]
    timeout_s = SHORT_S if cause is LossCause.TIMEOUT else LONG_S
    assert await pools(server.url, timeout_s=timeout_s).exchange(POST, HEADERS) == Loss(is_sent=True, cause=cause)
    assert server.connections == 1


async def test_the_date_of_a_reply_is_told(
    server: Server, pools: Callable[..., ConnectionPool], dates: list[str]
) -> None:
    """A clock that is wrong misdates payments, and the gateway's is the one that the bank believes."""
    server.script = [dated]
    await pools(server.url).exchange(POST, HEADERS)
    assert dates == ["Mon, 23 Nov 2026 03:00:00 GMT"]


async def test_a_refused_connection_is_not_sent(pools: Callable[..., ConnectionPool]) -> None:
    """Nobody listens: not a byte has left."""
    loss = await pools("http://127.0.0.1:1").exchange(POST, HEADERS)
    assert loss == Loss(is_sent=False, cause=LossCause.NO_CONNECTION)


async def test_a_name_that_is_not_found_is_not_sent(pools: Callable[..., ConnectionPool]) -> None:
    """There is nobody to send to."""
    loss = await pools("http://gateway.invalid").exchange(POST, HEADERS)
    assert loss == Loss(is_sent=False, cause=LossCause.NAME_NOT_FOUND)


async def test_failed_tls_is_not_sent(server: Server, pools: Callable[..., ConnectionPool]) -> None:
    """A server that doesn't speak TLS, or isn't who it says, never sees the request or our token."""

    async def greet(link: Link) -> None:
        await link.say(b"220 mail.example ESMTP\r\n")

    server.script = [greet]
    loss = await pools(server.url.replace("http:", "https:")).exchange(POST, HEADERS)
    assert loss == Loss(is_sent=False, cause=LossCause.TLS_FAILED)


async def test_a_handshake_without_end_is_not_sent(server: Server, pools: Callable[..., ConnectionPool]) -> None:
    """The time for the connection runs out before the time for the call does, so that this can be told."""

    async def say_nothing(link: Link) -> None:
        await link.stay()

    server.script = [say_nothing]
    loss = await pools(server.url.replace("http:", "https:"), timeout_s=2 * SHORT_S).exchange(POST, HEADERS)
    assert loss == Loss(is_sent=False, cause=LossCause.CONNECT_TIMEOUT)


async def test_a_post_on_a_kept_alive_connection_that_closes_is_sent_once(
    server: Server, pools: Callable[..., ConnectionPool]
) -> None:
    """The HTTP client repeats some methods by itself in this case. A charge must never be among them."""

    async def answer_once(link: Link) -> None:
        await server.read(link)
        await link.answer(b"{}")
        await server.read(link)

    server.script = [answer_once]
    pool = pools(server.url)
    assert await pool.exchange(POST, HEADERS) == Reply(http_status=200, body=b"{}")
    assert await pool.exchange(POST, HEADERS) == Loss(is_sent=True, cause=LossCause.CONNECTION_LOST)
    assert (len(server.requests), server.connections) == (2, 1)


async def test_a_read_is_not_repeated_behind_our_back(server: Server, pools: Callable[..., ConnectionPool]) -> None:
    """A repeat takes a permit in the gateway's budget: it is ours to make, not the HTTP client's."""

    async def answer_once(link: Link) -> None:
        await server.read(link)
        await link.answer(b"{}")
        await server.read(link)

    server.script = [answer_once]
    pool = pools(server.url, is_read=True)
    await pool.exchange(GET, HEADERS)
    assert await pool.exchange(GET, HEADERS) == Loss(is_sent=True, cause=LossCause.CONNECTION_LOST)
    assert len(server.requests) == 2


class LateClock(Clock):
    """A clock on which the time to send is over as soon as the connection stands."""

    def boot_s(self) -> float:
        """Gives a time after every deadline of these tests."""
        return 1_000.0


async def test_nothing_is_written_after_its_time(server: Server, pools: Callable[..., ConnectionPool]) -> None:
    """The connection may take long, or the machine sleep: the last look at the clock is after that."""
    seen: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()

    async def note(link: Link) -> None:
        seen.set_result(await link.reader.read())

    server.script = [note]
    loss = await pools(server.url, clock=LateClock()).exchange(POST, HEADERS, send_by_s=999.0)
    assert loss == Loss(is_sent=False, cause=LossCause.TOO_LATE)
    # The connection is closed and not left lying about: the server reads its end.
    assert await seen == b""


async def test_nothing_is_written_after_its_time_on_a_kept_connection(
    server: Server, pools: Callable[..., ConnectionPool]
) -> None:
    """A connection that stands already is no way around the clock, and is given back all the same."""

    async def answer(link: Link) -> None:
        while True:
            await server.read(link)
            await link.answer(b"{}")

    server.script = [answer]
    pool = pools(server.url, clock=LateClock())
    await pool.exchange(POST, HEADERS, send_by_s=1_001.0)
    assert await pool.exchange(POST, HEADERS, send_by_s=999.0) == Loss(is_sent=False, cause=LossCause.TOO_LATE)
    assert await pool.exchange(POST, HEADERS, send_by_s=1_001.0) == Reply(http_status=200, body=b"{}")
    assert len(server.requests) == 2


class Chatterbox:
    """Says one thing too much on each connection, once its answer has been read."""

    def __init__(self, server: Server, connections: int) -> None:
        self._server = server
        self._have_met = asyncio.Barrier(connections)
        self._is_read = asyncio.Event()
        self._have_spoken = asyncio.Barrier(connections + 1)

    async def serve(self, link: Link) -> None:
        """Answers when all connections have their request, and speaks again when it is told to."""
        await self._server.read(link)
        await self._have_met.wait()
        await link.answer(b'{"asked":1}')
        await self._is_read.wait()
        await link.answer(b'{"unasked":1}')
        await self._have_spoken.wait()
        await link.stay()

    async def speak(self) -> None:
        """Lets all of them speak, and waits until it has arrived."""
        self._is_read.set()
        await self._have_spoken.wait()
        for _ in range(5):  # what lies in the socket is read in the next rounds of the loop
            await asyncio.sleep(0)


async def answer_second(link: Link) -> None:
    """Answers as a server should."""
    await link.take()
    await link.answer(b'{"second":1}')


async def test_a_reply_that_nobody_asked_for_is_not_taken_for_the_next_one(
    server: Server, pools: Callable[..., ConnectionPool]
) -> None:
    """Read from the connection as it is, it would tell the next customer that their refund went through."""
    chatterbox = Chatterbox(server, 1)
    server.script = [chatterbox.serve, answer_second]
    pool = pools(server.url)
    await pool.exchange(POST, HEADERS)
    await chatterbox.speak()
    assert await pool.exchange(POST, HEADERS) == Reply(http_status=200, body=b'{"second":1}')
    assert (len(server.requests), server.connections) == (1, 2)


async def test_many_such_connections_are_all_dropped(server: Server, pools: Callable[..., ConnectionPool]) -> None:
    """They are thrown away as soon as they speak, and nothing more is written to any; the next call has a fresh one."""
    chatterbox = Chatterbox(server, STALE_MAX + 1)
    server.script = [*[chatterbox.serve] * (STALE_MAX + 1), answer_second]
    pool = pools(server.url)
    await asyncio.gather(*(pool.exchange(POST, HEADERS) for _ in range(STALE_MAX + 1)))
    await chatterbox.speak()
    assert await pool.exchange(POST, HEADERS) == Reply(http_status=200, body=b'{"second":1}')
    assert (len(server.requests), server.connections) == (STALE_MAX + 1, STALE_MAX + 2)


async def test_what_is_sent(server: Server, pools: Callable[..., ConnectionPool]) -> None:
    """Path, headers and body as they were built; no cookie, and no word about the version of anything."""

    async def answer(link: Link) -> None:
        while True:
            await server.read(link)
            await link.answer(b"{}", "Set-Cookie: a=b\r\n")

    server.script = [answer]
    pool = pools(server.url, is_read=True)
    await pool.exchange(GET, HEADERS)
    await pool.exchange(POST, HEADERS)
    get, post = (request.decode().split("\r\n") for request in server.requests)
    assert get[0] == "GET /merchant/v1/payment/search?order_id=a%2Fb%26c HTTP/1.1"
    assert post[-1] == '{"amount":345.67}'
    names = {line.partition(":")[0] for line in post[1:-2]}
    assert names == {
        "Host",
        "Authorization",
        "Content-Type",
        "Accept",
        "Accept-Encoding",
        "User-Agent",
        "Content-Length",
    }
    assert "User-Agent: payrelay" in post


@pytest.mark.parametrize("http_status", [301, 307])
async def test_redirects_are_not_followed(
    server: Server, pools: Callable[..., ConnectionPool], http_status: int
) -> None:
    """The token and the charge go to the configured address and nowhere else."""

    async def redirect(link: Link) -> None:
        await server.read(link)
        await link.say(f"HTTP/1.1 {http_status} X\r\nLocation: /elsewhere\r\nContent-Length: 0\r\n\r\n".encode())

    server.script = [redirect]
    assert await pools(server.url).exchange(POST, HEADERS) == Reply(http_status=http_status, body=b"")
    assert len(server.requests) == 1


async def test_a_reply_in_pieces_is_put_together(server: Server, pools: Callable[..., ConnectionPool]) -> None:
    """A long list comes in many chunks."""
    body = b"x" * 1_000_000

    async def answer(link: Link) -> None:
        await link.take()
        await link.answer(body)

    server.script = [answer]
    assert await pools(server.url, is_read=True).exchange(GET, HEADERS) == Reply(http_status=200, body=body)


async def test_a_cancelled_call_is_cancelled(server: Server, pools: Callable[..., ConnectionPool]) -> None:
    """Who goes away is not told that the gateway was lost."""
    is_there = asyncio.Event()

    async def wait(link: Link) -> None:
        await link.take()
        is_there.set()
        await link.stay()

    server.script = [wait]
    call = asyncio.create_task(pools(server.url).exchange(POST, HEADERS))
    await is_there.wait()
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call


async def test_nothing_is_sent_on_a_closed_pool(server: Server, pools: Callable[..., ConnectionPool]) -> None:
    """While the program stops, what comes too late is not sent."""
    server.script = [hang_up]
    pool = pools(server.url)
    await pool.close()
    assert await pool.exchange(POST, HEADERS) == Loss(is_sent=False, cause=LossCause.CLOSED)
