"""Pages that go on piece by piece: whoever ends them, what made them is closed."""

import asyncio
from collections.abc import AsyncGenerator

import structlog
from tests.api.fakes import MovableClock

from payrelay.api.address import AddressBeside, ServedAddress
from payrelay.api.connections.limits import ConnectionLimits
from payrelay.api.connections.open_connections import OpenConnections
from payrelay.api.console_door import ConsoleDoor
from payrelay.api.console_exchange import ConsoleAnswer, ConsoleRequest
from payrelay.api.http.incoming_request import Message
from payrelay.api.http.outgoing import send_pieces
from payrelay.api.http.sampled_lines import RequestLines

LOG = structlog.wrap_logger(None, processors=[], wrapper_class=structlog.make_filtering_bound_logger("critical"))


class Client:
    """Takes what is sent, for as long as it reads; ``has_some`` is set with the first piece."""

    def __init__(self, *, reads: int = 100) -> None:
        self.taken: list[Message] = []
        self.has_left = asyncio.Event()
        self.has_some = asyncio.Event()
        self._reads = reads

    async def send(self, message: Message) -> None:
        """Takes a message, or leaves it."""
        if len(self.taken) >= self._reads:
            await asyncio.Event().wait()
        self.taken.append(message)
        if message.get("body"):
            self.has_some.set()

    async def receive(self) -> Message:
        """Says that the client has left, once it has."""
        await self.has_left.wait()
        return {"type": "http.disconnect"}


class Pieces:
    """Makes pieces; with ``is_endless`` the last one is followed by a wait."""

    def __init__(self, *, is_endless: bool = False) -> None:
        self.is_closed = False
        self._is_endless = is_endless

    async def made(self) -> AsyncGenerator[bytes, None]:
        """Makes two, and waits or ends."""
        try:
            yield b"one"
            yield b"two"
            if self._is_endless:
                await asyncio.Event().wait()
        finally:
            self.is_closed = True


async def test_pieces_are_sent_as_they_come_and_then_the_end() -> None:
    """Each by itself, with the headers before the first."""
    client, pieces = Client(), Pieces()
    await send_pieces(client.send, client.receive, 200, [(b"a", b"b")], pieces.made())

    assert client.taken[0] == {"type": "http.response.start", "status": 200, "headers": [(b"a", b"b")]}
    assert [message["body"] for message in client.taken[1:]] == [b"one", b"two", b""]
    assert [message["more_body"] for message in client.taken[1:]] == [True, True, False]
    assert pieces.is_closed


async def test_a_client_that_leaves_ends_them() -> None:
    """Otherwise what reads for an open page would read on for nobody."""
    client, pieces = Client(), Pieces(is_endless=True)
    sending = asyncio.ensure_future(send_pieces(client.send, client.receive, 200, [], pieces.made()))
    await client.has_some.wait()
    client.has_left.set()
    await sending

    assert pieces.is_closed


async def test_a_client_that_is_closed_while_it_takes_nothing_ends_them() -> None:
    """The limiter closes it after a while; until then the piece that it doesn't take waits."""
    client, pieces = Client(reads=2), Pieces()
    sending = asyncio.ensure_future(send_pieces(client.send, client.receive, 200, [], pieces.made()))
    await client.has_some.wait()
    client.has_left.set()
    await sending

    assert len(client.taken) == 2
    assert pieces.is_closed


async def test_the_consoles_own_address_sends_streams_too() -> None:
    """Without a length, which nobody knows yet."""
    pieces = Pieces()

    async def console(_request: ConsoleRequest) -> ConsoleAnswer:
        return ConsoleAnswer(status=200, headers=((b"a", b"b"),), body=b"", route="/x", stream=pieces.made())

    connections = OpenConnections(ConnectionLimits(), MovableClock(), lambda _: False)
    lines = RequestLines(LOG, lambda *_: None)
    address = AddressBeside(ConsoleDoor(console), ServedAddress(connections, lines))
    client = Client()
    scope = {"type": "http", "method": "GET", "path": "/x", "query_string": b"", "headers": [], "client": ("::1", 1)}
    await address(scope, client.receive, client.send)

    assert b"content-length" not in dict(client.taken[0]["headers"])
    assert client.taken[1]["body"] == b"one"
    assert pieces.is_closed
