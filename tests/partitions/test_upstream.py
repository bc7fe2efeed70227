"""The router's connections: what counts as never sent, and that nothing with an effect is handed over twice."""

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack

import pytest

from payrelay.partitions.table import Partition
from payrelay.partitions.upstream import AnswerLostError, UnreachableError, Upstream, passed_on

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"


@pytest.fixture
async def upstream() -> AsyncIterator[Upstream]:
    """The router's connections, with little patience for silence."""
    made = Upstream(silence_s=0.3)
    yield made
    await made.close()


async def served(stack: AsyncExitStack, *replies: bytes | None) -> tuple[str, list[bytes]]:
    """Answers requests on any connection with the replies, one after the other; None closes without a word.

    Gives the address, and the requests as they come in.
    """
    requests: list[bytes] = []
    ahead = list(replies)

    async def converse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while head := await reader.readuntil(b"\r\n\r\n"):
            requests.append(head)
            reply = ahead.pop(0) if ahead else None
            if reply is None:
                writer.close()
                return
            writer.write(reply)

    async def safely(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await converse(reader, writer)
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()

    server = await stack.enter_async_context(await asyncio.start_server(safely, "127.0.0.1", 0))
    return f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}", requests


def nobody() -> str:
    """An address on which nobody listens."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return f"http://127.0.0.1:{taken.getsockname()[1]}"


async def asked(upstream: Upstream, method: str, *addresses: str) -> bytes:
    """Sends a request; gives the body of the answer."""
    partition = Partition(name="east", addresses=addresses)
    async with upstream.answered(partition, method, "/shop/api/charges?a=%2F", [("A", "b")], b"") as response:
        return await response.read()


@pytest.mark.parametrize("method", ["POST", "DELETE", "PUT"])
async def test_an_effect_is_handed_over_once(upstream: Upstream, method: str) -> None:
    """The HTTP client sends some methods again where a kept connection closes: an effect that nobody asked for."""
    async with AsyncExitStack() as stack:
        address, requests = await served(stack, OK, None, OK)
        assert await asked(upstream, "GET", address) == b"ok"
        with pytest.raises(AnswerLostError):
            await asked(upstream, method, address)

        assert [request.split()[0] for request in requests] == [b"GET", method.encode()]


async def test_the_next_address_is_tried_where_nothing_was_sent(upstream: Upstream) -> None:
    """A process that restarts refuses connections; its siblings serve meanwhile."""
    async with AsyncExitStack() as stack:
        address, requests = await served(stack, OK, OK)

        assert [await asked(upstream, "POST", nobody(), address) for _ in range(2)] == [b"ok", b"ok"]
        assert len(requests) == 2


async def test_the_next_address_is_not_tried_where_something_may_have_been_sent(upstream: Upstream) -> None:
    """The first process may be charging right now."""
    async with AsyncExitStack() as stack:
        first, first_requests = await served(stack, None, None)
        other, other_requests = await served(stack, None, None)
        with pytest.raises(AnswerLostError):
            await asked(upstream, "POST", first, other)

        assert len(first_requests) + len(other_requests) == 1


async def test_nobody_there_is_no_loss(upstream: Upstream) -> None:
    """The client is told that nothing was sent, and only then it is true."""
    with pytest.raises(UnreachableError):
        await asked(upstream, "POST", nobody(), nobody())


async def test_the_path_goes_on_as_it_came(upstream: Upstream) -> None:
    """An order id may have an encoded slash in it; decoded, it would be another path."""
    async with AsyncExitStack() as stack:
        address, requests = await served(stack, OK)
        await asked(upstream, "GET", address)

        assert requests[0].startswith(b"GET /shop/api/charges?a=%2F HTTP/1.1\r\n")


def test_headers_of_one_connection_stay_on_it() -> None:
    """A client could name any header of the router's own as one to be dropped, or smuggle a second length."""
    given = [
        ("Connection", "close, X-Own"),
        ("X-Own", "1"),
        ("Expect", "100-continue"),
        ("TE", "trailers"),
        ("Accept", "a"),
    ]

    assert passed_on(given) == [("Accept", "a")]
