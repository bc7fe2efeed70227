import asyncio
import datetime as dt
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Final

import pytest
import trustme
from tests.gateways.http.servers import Link, Server

from payrelay.clock import Clock
from payrelay.gateways.http.exchange import Loss, LossCause, Reply
from payrelay.gateways.http.pool import ConnectionPool, PoolLimits
from payrelay.gateways.payhere.wire.requests import WireRequest, headers_of

POST: Final = WireRequest(method="POST", path="/merchant/v1/payment/charge", body=b"{}")
HEADERS: Final = headers_of("Bearer t")
LIMITS: Final = PoolLimits(timeout_s=30.0, idle_s=9.0, bytes_max=99)
FAILED: Final = Loss(is_sent=False, cause=LossCause.TLS_FAILED)
CUT: Final = Loss(is_sent=False, cause=LossCause.NO_CONNECTION)
NOW: Final = dt.datetime.now(dt.UTC)

OURS: Final = trustme.CA()
"""The authority that the client trusts."""
Identity = Callable[[], trustme.LeafCert]


def trusting(authority: trustme.CA) -> ssl.SSLContext:
    """Makes a client's side as the program has it, with this authority in place of the machine's."""
    context = ssl.create_default_context()
    authority.configure_trust(context)
    return context


def serving(certificate: trustme.LeafCert, *, version: ssl.TLSVersion | None = None) -> ssl.SSLContext:
    """Makes a server's side."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    certificate.configure_cert(context)
    if version is not None:
        context.minimum_version = context.maximum_version = version
    return context


async def answer(link: Link) -> None:
    """Answers every request."""
    while True:
        await link.take()
        await link.answer(b"{}")


@asynccontextmanager
async def served(server: Server, context: ssl.SSLContext) -> AsyncIterator[str]:
    """Gives the address of the server behind TLS."""
    listener = await asyncio.start_server(server.connected, "127.0.0.1", 0, ssl=context)
    yield f"https://127.0.0.1:{listener.sockets[0].getsockname()[1]}"
    await server.end()
    listener.close()
    await listener.wait_closed()


@asynccontextmanager
async def pooled(url: str) -> AsyncIterator[ConnectionPool]:
    """Gives a pool that trusts our authority."""
    pool = ConnectionPool(url, Clock(), LIMITS, tls=trusting(OURS))
    yield pool
    await pool.close()


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
async def test_calls_go_over_a_verified_connection(server: Server, version: ssl.TLSVersion) -> None:
    """The tickets that TLS 1.3 sends of itself are no reply, and don't make a connection stale."""
    server.script = [answer]
    async with (
        served(server, serving(OURS.issue_cert("127.0.0.1"), version=version)) as url,
        pooled(url) as pool,
    ):
        for _ in range(3):
            assert await pool.exchange(POST, HEADERS) == Reply(http_status=200, body=b"{}")
    assert server.connections == 1


@pytest.mark.parametrize(
    "identity",
    [
        lambda: OURS.issue_cert(
            "127.0.0.1", not_before=NOW - dt.timedelta(days=9), not_after=NOW - dt.timedelta(days=1)
        ),
        lambda: OURS.issue_cert(
            "127.0.0.1", not_before=NOW + dt.timedelta(days=1), not_after=NOW + dt.timedelta(days=9)
        ),
        lambda: OURS.issue_cert("sandbox.payhere.lk"),
        lambda: OURS.issue_cert("127.0.0.2"),
        lambda: trustme.CA().issue_cert("127.0.0.1"),
    ],
    ids=["expired", "not yet valid", "wrong name", "wrong address", "unknown authority"],
)
async def test_a_server_that_is_not_who_it_says_gets_nothing(server: Server, identity: Identity) -> None:
    """Whoever sits between us and the gateway gets neither our token nor the customer's, and the call is *not sent*."""
    got: list[bytes] = []

    async def listen(link: Link) -> None:
        got.append(await link.reader.read())

    server.script = [listen]
    async with served(server, serving(identity())) as url, pooled(url) as pool:
        assert await pool.exchange(POST, HEADERS) == FAILED
    assert b"".join(got) == b""


async def test_the_machines_authorities_are_the_default(server: Server) -> None:
    """An account has no setting that turns verification off, and a certificate of our own making is refused."""
    server.script = [answer]
    async with served(server, serving(OURS.issue_cert("127.0.0.1"))) as url:
        pool = ConnectionPool(url, Clock(), LIMITS)
        assert await pool.exchange(POST, HEADERS) == FAILED
        await pool.close()


async def test_an_old_version_of_tls_is_not_accepted(server: Server) -> None:
    """A server that speaks no version since TLS 1.2 is not one to give a token to."""
    context = serving(OURS.issue_cert("127.0.0.1"))
    with pytest.warns(DeprecationWarning, match="TLSv1_1"):
        context.minimum_version = context.maximum_version = ssl.TLSVersion.TLSv1_1
    server.script = [answer]
    async with served(server, context) as url, pooled(url) as pool:
        loss = await pool.exchange(POST, HEADERS)
    assert not loss.is_sent if isinstance(loss, Loss) else False


@pytest.mark.parametrize("how", ["close", "abort"])
@pytest.mark.parametrize("taken", [0, 1, 100])
async def test_a_handshake_that_is_cut_is_not_sent(server: Server, how: str, taken: int) -> None:
    """The connection ends before anything was verified, so that nothing of the request can have left."""

    async def cut(link: Link) -> None:
        await link.reader.readexactly(taken)
        await link.say(b"\x16\x03\x03\x00\x7a"[:taken])
        if how == "abort":
            link.writer.transport.abort()

    server.script = [cut]
    async with pooled(server.url.replace("http:", "https:")) as pool:
        loss = await pool.exchange(POST, HEADERS)
    assert loss in {FAILED, CUT}


async def test_plain_http_behind_the_handshakes_port_is_not_sent(server: Server) -> None:
    """A server that answers a handshake with HTTP has not been asked anything."""

    async def reject(link: Link) -> None:
        await link.reader.readexactly(5)
        await link.say(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n")
        await link.stay()

    server.script = [reject]
    async with pooled(server.url.replace("http:", "https:")) as pool:
        assert await pool.exchange(POST, HEADERS) == FAILED


async def test_a_connection_that_is_cut_after_the_request_is_sent(server: Server) -> None:
    """Behind TLS too, what the server may have read is unknown."""

    async def read_and_abort(link: Link) -> None:
        await link.take()
        link.writer.transport.abort()

    server.script = [read_and_abort]
    async with served(server, serving(OURS.issue_cert("127.0.0.1"))) as url, pooled(url) as pool:
        assert await pool.exchange(POST, HEADERS) == Loss(is_sent=True, cause=LossCause.CONNECTION_LOST)


async def test_unrequested_bytes_behind_tls_are_not_the_next_reply(server: Server) -> None:
    """What a server says of itself on an idle connection is dropped with the connection."""
    is_read, has_spoken = asyncio.Event(), asyncio.Event()

    async def chatter(link: Link) -> None:
        await link.take()
        await link.answer(b'{"asked":1}')
        await is_read.wait()
        await link.answer(b'{"unasked":1}')
        has_spoken.set()
        await link.stay()

    server.script = [chatter, answer]
    async with served(server, serving(OURS.issue_cert("127.0.0.1"))) as url, pooled(url) as pool:
        assert await pool.exchange(POST, HEADERS) == Reply(http_status=200, body=b'{"asked":1}')
        is_read.set()
        await has_spoken.wait()
        assert await pool.exchange(POST, HEADERS) == Reply(http_status=200, body=b"{}")
    assert server.connections == 2
