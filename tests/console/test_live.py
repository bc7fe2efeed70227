"""Live pages: what changes is sent, to whom may see it, for as long as the session and the program live."""

import json
from collections.abc import AsyncGenerator, Callable
from typing import cast

import msgspec
import pytest
from tests.console.browsing import LOG, Window, console_on, signed_in, site_of
from tests.flows.console.books import ended, everything, operation
from tests.flows.console.desk import MINUTE_MS, START_MS, Desk

from payrelay.console.dispatch import Console
from payrelay.console.rules.live import ALIVE, FULL, OVER
from payrelay.console.web.live_streams import OF_OPERATOR_MAX, STREAMS_MAX, LiveStreams
from payrelay.core.operators.roles import Role
from payrelay.core.outcomes import Evidence
from payrelay.core.payments.operation import Event

QUEUE = "/console/live?page=/console/queue"


class Turns:
    """Waits no time, and does what a test wants to have happened meanwhile."""

    def __init__(self) -> None:
        self.waited = 0
        self.meanwhile: Callable[[], object] = lambda: None

    async def pause(self, _seconds: float) -> None:
        """Counts a wait."""
        self.waited += 1
        self.meanwhile()


async def opened(window: Window, address: str) -> AsyncGenerator[bytes, None]:
    """Opens a stream."""
    answer = await window.send("GET", address)
    assert answer.status == 200, answer.body
    assert dict(answer.headers)[b"content-type"] == b"text/event-stream"
    assert answer.stream is not None
    return answer.stream


async def next_change(stream: AsyncGenerator[bytes, None]) -> dict[str, str]:
    """Gives the next parts that come, passing over signs of life."""
    async for piece in stream:
        if piece != ALIVE:
            return cast("dict[str, str]", json.loads(piece.removeprefix(b"data: ")))
    raise AssertionError("the stream has ended")


def live_console(desk: Desk, turns: Turns) -> Console:
    """Gives a console whose streams wait as a test says."""
    return Console(msgspec.structs.replace(site_of(desk), live=LiveStreams(turns.pause)), LOG)


async def test_a_case_that_comes_up_appears_by_itself(desk: Desk) -> None:
    """What is sent is what the page itself would show."""
    window = await signed_in(desk, live_console(desk, Turns()), "ada@shop.example", Role.SUPPORT)
    stream = await opened(window, QUEUE)
    assert "There is none" in (await next_change(stream))["live-queue"]
    row = await operation(desk, 7, order_id="Order-77")
    await ended(desk, row, Event.DIFFERED, START_MS + 900, Evidence())

    sent = (await next_change(stream))["live-queue"]
    assert "Order-77" in sent
    await window.get("/console/queue")
    assert f'id="live-queue">{sent}</div>' in window.text
    await stream.aclose()


@pytest.mark.parametrize("page", ["/console/orders/gateway/A-1", "/console/overview%3Fspan=week"])
async def test_orders_and_the_overview_are_live_too(desk: Desk, page: str) -> None:
    """Each with the parts that its page has."""
    await everything(desk)
    window = await signed_in(desk, live_console(desk, Turns()), "ada@shop.example", Role.VIEWER)
    stream = await opened(window, f"/console/live?page={page}")
    sent = await next_change(stream)
    await window.get(page.replace("%3F", "?"))

    assert len(sent) == (2 if "overview" in page else 3)
    assert all(f'id="{name}">' in window.text for name in sent)
    assert "The last week" in window.text if "overview" in page else "A-1" in sent["live-now"]
    await stream.aclose()


@pytest.mark.parametrize(
    "page",
    ["/console/operators", "/console/acts", "/console/act/account/gateway", "https://evil.example/", "", "/x?a=%"],
)
async def test_no_other_page_is_given_out(desk: Desk, page: str) -> None:
    """A stream is no way round the table of routes, to whatever an address in the query names."""
    window = await signed_in(desk, live_console(desk, Turns()), "ada@shop.example", Role.ADMIN)

    assert (await window.send("GET", f"/console/live?page={page}")).status == 404


async def test_a_stream_ends_when_the_session_is_signed_out(desk: Desk) -> None:
    """Whoever walks away from a signed-out screen leaves nothing that goes on."""
    console = live_console(desk, Turns())
    window = await signed_in(desk, console, "ada@shop.example")
    stream = await opened(window, QUEUE)
    await next_change(stream)
    await window.get("/console/account")
    await window.post("/console/sign-out")

    assert [piece async for piece in stream][-1] == OVER


async def test_an_open_page_does_not_keep_a_session_alive(desk: Desk) -> None:
    """Half an hour after the operator's last own request it is over, however often the page was brought up to date."""
    turns = Turns()
    window = await signed_in(desk, live_console(desk, turns), "ada@shop.example")
    await window.get("/console/queue")
    stream = await opened(window, QUEUE)

    def minute() -> None:
        desk.clock.at_ms += MINUTE_MS

    turns.meanwhile = minute
    pieces = [piece async for piece in stream]
    assert pieces[-1] == OVER
    assert 28 <= turns.waited <= 32
    await window.get("/console/queue")
    assert window.title == "Sign in"


async def test_opening_streams_again_is_no_use_of_the_session_either(desk: Desk) -> None:
    """A script that reconnects for hours keeps nobody signed in."""
    window = await signed_in(desk, live_console(desk, Turns()), "ada@shop.example")
    await window.get("/console/queue")
    for _ in range(4):
        desk.clock.at_ms += 9 * MINUTE_MS
        await window.send("GET", QUEUE)

    assert window.answer is not None
    assert window.answer.status == 303


async def test_a_role_that_is_taken_away_counts_in_the_next_look(desk: Desk) -> None:
    """What only support may see goes from the page as it is open."""
    await everything(desk, text="CANARY")
    console = live_console(desk, Turns())
    ada = await signed_in(desk, console, "ada@shop.example")
    window = await signed_in(desk, console, "bob@shop.example", Role.SUPPORT)
    stream = await opened(window, "/console/live?page=/console/orders/gateway/A-1")
    assert "<h2>Customer</h2>" in (await next_change(stream))["live-happened"]
    await ada.get("/console/operators/bob@shop.example")
    await ada.post("/console/operators/bob@shop.example/role", role="viewer", reason="moved")

    assert "<h2>Customer</h2>" not in (await next_change(stream))["live-happened"]
    await stream.aclose()


async def test_streams_end_with_the_program(desk: Desk) -> None:
    """A stop waits for no open page."""
    window = await signed_in(desk, live_console(desk, Turns()), "ada@shop.example")
    stream = await opened(window, QUEUE)
    await next_change(stream)
    desk.relay.dispatch.followers.close()

    assert [piece async for piece in stream if piece != ALIVE] == []


async def test_the_number_of_live_pages_is_bounded(desk: Desk) -> None:
    """Of each operator and of all; an ended one gives its place back."""
    console = live_console(desk, Turns())
    window = await signed_in(desk, console, "ada@shop.example")
    streams = [await opened(window, QUEUE) for _ in range(OF_OPERATOR_MAX + 1)]
    for stream in streams[:-1]:
        await next_change(stream)
    assert [piece async for piece in streams[-1]] == [FULL]
    await streams[0].aclose()
    again = await opened(window, QUEUE)
    await next_change(again)
    for stream in (*streams, again):
        await stream.aclose()


def test_all_operators_together_have_a_bound() -> None:
    """However many operators there are."""
    live = LiveStreams()
    places = [live.taken(f"opr_{number}") for number in range(STREAMS_MAX)]
    assert all(place.__enter__() for place in places)
    with live.taken("opr_new") as is_taken:
        assert not is_taken
    places[0].__exit__(None, None, None)
    with live.taken("opr_new") as is_taken:
        assert is_taken
    for place in places[1:]:
        place.__exit__(None, None, None)
    assert live.count == 0


async def test_only_live_pages_may_load_the_script(desk: Desk) -> None:
    """The policy of every other page allows none at all."""
    window = await signed_in(desk, console_on(desk), "ada@shop.example")
    for path, is_live in (("/console/queue", True), ("/console/overview", True), ("/console/account", False)):
        policy = dict((await window.get(path)).headers)[b"content-security-policy"]
        assert (b"script-src 'self'" in policy) is is_live, path
        assert ("live.js" in window.text) is is_live, path
    script = await window.send("GET", "/console/assets/live.js")
    assert (script.status, dict(script.headers)[b"content-type"]) == (200, b"text/javascript; charset=utf-8")
