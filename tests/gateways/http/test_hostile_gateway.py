import asyncio
import itertools
import socket
from collections.abc import AsyncIterator
from typing import Final

import pytest
from tests.gateways.http.servers import Link, Server

from payrelay.clock import Clock
from payrelay.gateways.http.exchange import Loss, LossCause, Reply
from payrelay.gateways.http.pool import ConnectionPool, PoolLimits
from payrelay.gateways.payhere.wire.requests import WireRequest, headers_of

pytestmark = pytest.mark.deep

HEADERS: Final = headers_of("Bearer t")
PIECES: Final = 5
HANG_S: Final = 0.05
"""How long a call may go on that waits for bytes that a wrong length promised; nothing is proved by it."""

LENGTH: Final = "HTTP/1.1 200 OK\r\nDate: today\r\nContent-Length: {size}\r\n\r\n{body}"
CHUNKS: Final = (
    "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
    "3\r\n{begin}\r\n{rest_size:x};a=b\r\n{rest}\r\n0\r\nX: y\r\n\r\n"
)
INTERIM: Final = "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n" + LENGTH


def reply_to(path: str, form: str) -> bytes:
    """Writes the reply to one request, which no other request has."""
    body = f'{{"path":"{path}"}}'
    return form.format(size=len(body), body=body, begin=body[:3], rest=body[3:], rest_size=len(body) - 3).encode()


def expected(path: str) -> Reply:
    """Gives what the reply says."""
    return Reply(http_status=200, body=b'{"path":"%b"}' % path.encode())


class Gateway:
    """Answers each request with its own path; the first on each connection in the way that is set."""

    def __init__(self, form: str) -> None:
        self.form = form
        self.way: list[bytes] | None = None
        """What is written in place of the next reply, in pieces."""
        self.ending = "stays"
        self.has_said = asyncio.Event()

    async def serve(self, link: Link) -> None:
        """Serves one connection."""
        while True:
            request = await link.take()
            path = request.split(b" ")[1].decode()
            way, self.way = self.way, None
            if way is None:
                await link.say(reply_to(path, self.form))
                continue
            for piece in way:
                await link.say(piece)
                await asyncio.sleep(0)
            self.has_said.set()
            if self.ending == "closes":
                return
            if self.ending == "half":
                link.writer.write_eof()
            if self.ending == "aborts":
                link.writer.transport.abort()


@pytest.fixture
async def pool(server: Server) -> AsyncIterator[ConnectionPool]:
    """A pool to the server."""
    made = ConnectionPool(server.url, Clock(), PoolLimits(timeout_s=30.0, idle_s=9.0, bytes_max=999))
    yield made
    await made.close()


async def asked(pool: ConnectionPool, path: str) -> Reply | Loss:
    """Makes a call."""
    return await pool.exchange(WireRequest(method="POST", path=path, body=b"{}"), HEADERS)


async def asked_badly(pool: ConnectionPool, gateway: Gateway, path: str, way: list[bytes]) -> Reply | Loss | None:
    """Makes a call that is answered in this way; gives None where it waits for more, and gives it up."""
    gateway.way = way
    gateway.has_said.clear()
    call = asyncio.create_task(asked(pool, path))
    await gateway.has_said.wait()
    await asyncio.wait({call}, timeout=HANG_S)
    if call.done():
        return call.result()
    call.cancel()
    await asyncio.wait({call})
    return None


@pytest.mark.parametrize("ending", ["closes", "half", "aborts"])
@pytest.mark.parametrize("form", [LENGTH, CHUNKS, INTERIM], ids=["length", "chunks", "interim"])
async def test_a_reply_that_is_cut_at_any_byte_is_unknown(
    server: Server, pool: ConnectionPool, form: str, ending: str
) -> None:
    """The request was read, so a charge may have been made; and the next call has its own reply."""
    gateway = Gateway(form)
    server.script = [gateway.serve]
    for size in range(len(reply_to("/1", form))):
        gateway.ending = ending
        loss = await asked_badly(pool, gateway, "/1", [reply_to("/1", form)[:size]])
        gateway.ending = "stays"
        assert isinstance(loss, Loss)
        assert (loss.is_sent, loss.cause in {LossCause.CONNECTION_LOST, LossCause.HALF_REPLY}) == (True, True)
        assert await asked(pool, "/2") == expected("/2")


@pytest.mark.parametrize("change", ["double", "drop", "flip"])
@pytest.mark.parametrize("form", [LENGTH, CHUNKS, INTERIM], ids=["length", "chunks", "interim"])
async def test_one_wrong_byte_gives_no_call_the_reply_of_another(
    server: Server, pool: ConnectionPool, form: str, change: str
) -> None:
    """A length that is one off would leave the end of one reply to the next call, and all later ones out of step."""
    gateway = Gateway(form)
    server.script = [gateway.serve]
    whole = reply_to("/1", form)
    for at in range(len(whole)):
        middle = {"double": whole[at : at + 1] * 2, "drop": b"", "flip": bytes([whole[at] ^ 1])}[change]
        outcome = await asked_badly(pool, gateway, "/1", [whole[:at] + middle + whole[at + 1 :]])
        assert not isinstance(outcome, Loss) or outcome.is_sent
        assert await asked(pool, "/2") == expected("/2")
        assert await asked(pool, "/3") == expected("/3")


@pytest.mark.parametrize("form", [LENGTH, CHUNKS, INTERIM], ids=["length", "chunks", "interim"])
async def test_a_reply_that_comes_byte_by_byte_is_read(server: Server, pool: ConnectionPool, form: str) -> None:
    """Each byte is a packet of its own, and nothing is decided before the last."""
    gateway = Gateway(form)
    server.script = [gateway.serve]
    whole = reply_to("/1", form)
    assert await asked_badly(pool, gateway, "/1", [bytes([each]) for each in whole]) == expected("/1")
    for at in range(0, len(whole), PIECES):
        way: list[bytes] = [whole[:at], whole[at:]]
        assert await asked_badly(pool, gateway, "/1", way) == expected("/1")
    assert await asked(pool, "/2") == expected("/2")


@pytest.mark.parametrize("form", [LENGTH, CHUNKS, INTERIM], ids=["length", "chunks", "interim"])
async def test_two_replies_to_one_request_are_never_two_replies(
    server: Server, pool: ConnectionPool, form: str
) -> None:
    """The second one is dropped with its connection, wherever the network cuts between the two."""
    gateway = Gateway(form)
    server.script = [gateway.serve]
    twice = reply_to("/1", form) * 2
    for at in range(0, len(twice), PIECES):
        await asked_badly(pool, gateway, "/1", [twice[:at], twice[at:]])
        assert await asked(pool, "/2") == expected("/2")


async def test_a_connection_that_ends_behind_its_reply_is_not_used_again(server: Server, pool: ConnectionPool) -> None:
    """A gateway that closes half of an idle connection will not answer on it."""
    gateway = Gateway(LENGTH)
    server.script = [gateway.serve]
    for number, ending in enumerate(itertools.islice(itertools.cycle(["half", "closes"]), 4), start=1):
        gateway.ending = ending
        assert await asked_badly(pool, gateway, "/1", [reply_to("/1", LENGTH)]) == expected("/1")
        gateway.ending = "stays"
        assert server.connections == number


async def test_a_server_that_ends_its_half_before_it_answers_has_lost_the_call(
    server: Server, pool: ConnectionPool
) -> None:
    """It may have read the request, and its answer can't come any more."""

    async def half(link: Link) -> None:
        taken = link.writer.get_extra_info("socket")
        taken.shutdown(socket.SHUT_WR)
        await link.take()
        await link.stay()

    server.script = [half]
    outcome = await asked(pool, "/1")
    assert outcome in {
        Loss(is_sent=True, cause=LossCause.CONNECTION_LOST),
        Loss(is_sent=False, cause=LossCause.NO_CONNECTION),
    }
