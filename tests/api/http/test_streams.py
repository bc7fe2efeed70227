"""Server-sent events, as they go over the wire."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from tests.databases import sqlite_url
from tests.runtime.receivers import OWNER, SetClock, dispatch_on, event, put

from payrelay.api.http.incoming_request import Message
from payrelay.api.http.streams import KEEP_ALIVE, RETRY_MS, MayGoOn, StreamedAnswer, send_stream
from payrelay.clock import Clock
from payrelay.flows.events.read_events import STREAM_S_MAX, EventStream
from payrelay.runtime.event_delivery import Dispatch
from payrelay.runtime.followers import Holder
from payrelay.store import open_database
from payrelay.store.engine.database import Database

SUBJECT = "customer:cus_1"
LAST = {"type": "http.response.body", "body": b"", "more_body": False}


@pytest.fixture
async def database(tmp_path: Path) -> AsyncIterator[Database]:
    """Opens an empty database."""
    opened = await open_database(sqlite_url(tmp_path / "payrelay.db"), clock=Clock(), owner=True)
    yield opened
    await opened.close()


@pytest.fixture
async def dispatch(database: Database) -> AsyncIterator[Dispatch]:
    """Gives what is followed."""
    made = dispatch_on(database, SetClock())
    yield made
    await made.close(0)


class Wire:
    """The server's side of a connection."""

    def __init__(self) -> None:
        self.sent: list[Message] = []
        self.gone = asyncio.Event()
        self.came = asyncio.Event()

    async def send(self, message: Message) -> None:
        """Takes a message."""
        self.sent.append(message)
        self.came.set()

    async def receive(self) -> Message:
        """Tells when the client goes."""
        await self.gone.wait()
        return {"type": "http.disconnect"}

    @property
    def text(self) -> bytes:
        """What the client has read by now."""
        return b"".join(message.get("body", b"") for message in self.sent[1:])

    async def until(self, part: bytes) -> None:
        """Waits until the client has read something."""
        async with asyncio.timeout(10):
            while part not in self.text:
                self.came.clear()
                await self.came.wait()


async def opened(dispatch: Dispatch, *, after: int = 0, heartbeat_s: float = 5) -> StreamedAnswer:
    """Begins to follow the customer."""
    follower = await dispatch.followers.slot(OWNER.reader, SUBJECT, holder=Holder("k1", 10))
    assert follower is not None
    until_s = dispatch.clock.boot_s() + STREAM_S_MAX
    stream = EventStream(dispatch, follower, OWNER.reader, SUBJECT, after, heartbeat_s=heartbeat_s, until_s=until_s)
    return StreamedAnswer(stream=stream)


async def always() -> bool:
    """Lets a stream go on."""
    return True


async def sent(
    wire: Wire,
    streamed: StreamedAnswer,
    headers: Sequence[tuple[bytes, bytes]] = (),
    *,
    may_go_on: MayGoOn = always,
    poll_every_s: float = 5.0,
) -> None:
    """Sends a stream over a wire."""
    await send_stream(wire.send, wire.receive, streamed, headers, may_go_on=may_go_on, poll_every_s=poll_every_s)


def about(number: int) -> Any:  # noqa: ANN401 - an event
    """Gives an event about the customer."""
    return event(number, subject=SUBJECT)


async def test_past_events_come_first_then_new_ones(dispatch: Dispatch, database: Database) -> None:
    """Each once, with its position as id; and others' never."""
    await put(database, about(1), event(2))
    await dispatch.feed.publish(0)
    wire = Wire()
    streamed = await opened(dispatch)
    sending = asyncio.create_task(sent(wire, streamed, [(b"x-request-id", b"req_1")]))
    await wire.until(b"id: 1\n")
    await put(database, about(3), event(4))
    await dispatch.feed.publish(0)
    await dispatch.followers.poll()
    await wire.until(b"id: 3\n")
    dispatch.followers.close()
    await sending

    head, last = wire.sent[0], wire.sent[-1]
    assert (head["status"], dict(head["headers"])[b"content-type"]) == (200, b"text/event-stream")
    assert dict(head["headers"])[b"x-request-id"] == b"req_1"
    assert wire.text.startswith(b"retry: %d\n%b" % (RETRY_MS, KEEP_ALIVE))
    assert wire.text.count(b"event: customer.created\ndata: {") == 2
    assert all(message["more_body"] for message in wire.sent[1:-1])
    assert not last["more_body"]


async def test_whoever_comes_again_goes_on(dispatch: Dispatch, database: Database) -> None:
    """The stream continues after the last event that the browser received."""
    await put(database, about(1), about(2))
    await dispatch.feed.publish(0)
    wire = Wire()
    sending = asyncio.create_task(sent(wire, await opened(dispatch, after=1)))
    await wire.until(b"id: 2\n")
    wire.gone.set()
    await sending
    assert b"id: 1\n" not in wire.text


async def test_a_client_that_goes_leaves_its_place(dispatch: Dispatch) -> None:
    """There are only so many."""
    wire = Wire()
    sending = asyncio.create_task(sent(wire, await opened(dispatch)))
    await wire.until(KEEP_ALIVE)
    assert dispatch.followers.count == 1
    wire.gone.set()
    await sending
    assert dispatch.followers.count == 0


async def test_a_broken_wire_is_no_mistake_of_ours(dispatch: Dispatch) -> None:
    """The client went away in the middle of a write."""

    async def broken(_: Message) -> None:
        raise OSError("broken")

    await send_stream(broken, Wire().receive, await opened(dispatch), [], may_go_on=always)
    assert dispatch.followers.count == 0


async def test_a_silent_stream_shows_that_it_lives_and_ends_after_a_while(dispatch: Dispatch) -> None:
    """Proxies close silent connections; and the credential is checked again now and then."""
    wire = Wire()
    streamed = await opened(dispatch, heartbeat_s=0.001)
    sending = asyncio.create_task(sent(wire, streamed))
    await wire.until(KEEP_ALIVE * 3)
    clock = dispatch.clock
    assert isinstance(clock, SetClock)
    clock.at_ms += int(STREAM_S_MAX * 1000) + 1
    await sending
    assert wire.sent[-1] == LAST


async def test_a_stream_ends_with_the_credential_that_opened_it(dispatch: Dispatch) -> None:
    """A token is revoked because it is in wrong hands: its bearer must not read on for minutes."""
    wire, revoked = Wire(), asyncio.Event()

    async def may_go_on() -> bool:
        return not revoked.is_set()

    streamed = await opened(dispatch)
    sending = asyncio.create_task(sent(wire, streamed, may_go_on=may_go_on, poll_every_s=0.001))
    await wire.until(KEEP_ALIVE)
    assert not sending.done()
    revoked.set()
    await sending
    assert wire.sent[-1] == LAST
    assert dispatch.followers.count == 0


async def test_a_client_that_takes_nothing_loses_its_place(dispatch: Dispatch) -> None:
    """A stream ends although its last write hangs: slots are few, and a stop of the program waits for no client."""

    async def stuck(_: Message) -> None:
        await asyncio.Event().wait()

    streamed = await opened(dispatch)
    sending = send_stream(stuck, Wire().receive, streamed, [], may_go_on=always, poll_every_s=0.001)
    clock = dispatch.clock
    assert isinstance(clock, SetClock)
    clock.at_ms += int(STREAM_S_MAX * 1000) + 1
    async with asyncio.timeout(10):
        await sending
    assert dispatch.followers.count == 0


async def test_a_stream_ends_well_where_the_store_can_not_be_asked(dispatch: Dispatch, database: Database) -> None:
    """The client reconnects by itself, and the log has no error of the program for a database that is down."""
    wire, streamed = Wire(), await opened(dispatch)
    await database.close()
    await sent(wire, streamed)
    assert wire.sent[-1] == LAST
