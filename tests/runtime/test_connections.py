"""Connections to servers of others: none of them keeps the event loop busy."""

import asyncio
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Final

import aiohttp
import pytest
import trustme
from tests.runtime.receivers import LOOPBACK

from payrelay.clock import Clock
from payrelay.core.events.destinations import AllowedDestinations
from payrelay.runtime.clients.receiver_names import ForbiddenAddressError, GuardedResolver, NameThreads
from payrelay.runtime.clients.webhooks import WebhookClient
from payrelay.runtime.connections import INTERIM_MAX, connector_to_others, session_to_others, tls_to_others

INTERIM: Final = b"HTTP/1.1 103 Early\r\n\r\n"
DONE: Final = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"
SENT_MAX: Final = 4_000_000
"""Bytes that a server sends at most: some times what lies in the kernel's buffers of both ends."""
Answered = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@asynccontextmanager
async def listening(answered: Answered, tls: ssl.SSLContext | None = None) -> AsyncIterator[int]:
    """Answers connections on a port of its own."""
    server = await asyncio.start_server(answered, "127.0.0.1", 0, ssl=tls)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()


async def asked(*addresses: str) -> list[int]:
    """Asks addresses one after the other, over connections that are kept; gives the statuses."""
    async with aiohttp.ClientSession(connector=connector_to_others()) as session:
        return [(await session.post(each, allow_redirects=False)).status for each in addresses]


def guarded(*names: str) -> GuardedResolver:
    """Gives what looks up names where some of them may lead anywhere."""
    return GuardedResolver(AllowedDestinations(names=frozenset(names)), NameThreads())


async def test_a_name_of_somebody_elses_leads_to_no_private_address() -> None:
    """What a sign-in provider publishes is looked up like an endpoint's address, and only what is named is open."""
    connected = 0

    async def answered(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal connected
        connected += 1
        await reader.readuntil(b"\r\n\r\n")
        writer.write(DONE)
        writer.close()

    async with listening(answered) as port:
        async with session_to_others(5, guarded("login.example")) as session:
            with pytest.raises(aiohttp.ClientConnectorDNSError) as raised:
                await session.get(f"http://localhost:{port}/")
        assert isinstance(raised.value.os_error, ForbiddenAddressError)
        assert connected == 0
        async with session_to_others(5, guarded("localhost")) as session:
            assert (await session.get(f"http://localhost:{port}/")).status == 200
    assert connected == 1


async def test_interim_replies_without_end_end_the_connection() -> None:
    """Each costs little, and the event loop reads them one after the other, for as long as they come."""
    sent = 0
    left = asyncio.Event()

    async def answered(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal sent
        await reader.readuntil(b"\r\n\r\n")
        try:
            while sent < SENT_MAX:
                writer.write(INTERIM * 100)
                await writer.drain()
                sent += len(INTERIM) * 100
        except ConnectionError:
            left.set()
        writer.close()

    async with listening(answered) as port:
        with pytest.raises(aiohttp.ServerDisconnectedError, match="without end"):
            await asked(f"http://127.0.0.1:{port}/")
        await asyncio.wait_for(left.wait(), 10)

    assert sent < SENT_MAX


async def test_a_few_before_each_reply_are_no_harm() -> None:
    """They are counted for each reply, and not for the connection, which is kept."""

    async def answered(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while not reader.at_eof():
            try:
                await reader.readuntil(b"\r\n\r\n")
            except asyncio.IncompleteReadError:
                break
            writer.write(INTERIM * INTERIM_MAX + DONE)
        writer.close()

    async with listening(answered) as port:
        assert await asked(*[f"http://127.0.0.1:{port}/"] * 3) == [200, 200, 200]


@pytest.mark.parametrize(
    ("curve", "is_answered"), [("prime256v1", True), ("X25519", False)], ids=["everybody's", "another"]
)
async def test_a_server_chooses_no_group_that_we_have_not_named(curve: str, is_answered: bool) -> None:  # noqa: FBT001
    """A group of Diffie-Hellman may be as large as the server likes, and we would calculate in it."""
    authority = trustme.CA()
    serving = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    authority.issue_cert("127.0.0.1").configure_cert(serving)
    serving.set_ecdh_curve(curve)
    authority.configure_trust(tls_to_others())

    async def answered(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(DONE)
        writer.close()

    async with listening(answered, serving) as port:
        asking = asked(f"https://127.0.0.1:{port}/")
        if is_answered:
            assert await asking == [200]
        else:
            with pytest.raises(aiohttp.ClientConnectorError):
                await asking


async def test_a_certificate_of_nobody_we_trust_is_told_as_that() -> None:
    """Whoever runs the endpoint must know whether to look at its certificate or at its server's TLS."""
    serving = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    trustme.CA().issue_cert("127.0.0.1").configure_cert(serving)
    client = WebhookClient(LOOPBACK, Clock(), limit_s=10.0, resolver=None, spans=None)

    async def answered(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.close()

    async with listening(answered, serving) as port:
        tried = await client.post(f"https://127.0.0.1:{port}/", b"{}", {})
    await client.close()

    assert tried.failure == "has no certificate that is trusted"


def test_no_cipher_lets_a_server_name_a_group() -> None:
    """Those of TLS 1.2 that begin with DHE do, and OpenSSL takes one of 10,000 bits."""
    kinds = {each["kea"] for each in tls_to_others().get_ciphers()}

    assert kinds == {"kx-any", "kx-ecdhe"}
