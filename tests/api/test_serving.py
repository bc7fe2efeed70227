import asyncio
import errno
import os
import platform
import socket
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Final

import pytest
from tests.api.fakes import KEY

from payrelay.api.app import Api
from payrelay.api.context import ApiContext
from payrelay.api.serving import patient_threads, serve
from payrelay.core.answers import Answer, found
from payrelay.errors import SettingsError

GET = f"GET /gateway/api/subscriptions HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer {KEY}\r\n\r\n".encode()


@asynccontextmanager
async def served(context: ApiContext, drain_s: float = 5) -> AsyncIterator[tuple[int, Callable[[], None]]]:
    """Serves on a free port; gives the port and what stops the server."""
    stop, started = asyncio.Event(), asyncio.get_running_loop().create_future()
    serving = asyncio.create_task(
        serve(
            Api(context),
            "127.0.0.1",
            0,
            stop=stop,
            on_started=lambda _, port: started.set_result(port),
            drain_s=drain_s,
        )
    )
    try:
        yield await started, stop.set
    finally:
        stop.set()
        await serving


async def exchange(port: int, *pieces: bytes) -> bytes:
    """Sends bytes over one connection, and gives what comes back until the server closes it."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        for piece in pieces:
            writer.write(piece)
            await writer.drain()
        async with asyncio.timeout(5):
            return await reader.read()
    finally:
        writer.close()


CLOSING = GET.replace(b"Host: a\r\n", b"Host: a\r\nConnection: close\r\n")


async def test_port_0_becomes_a_free_one(context: ApiContext) -> None:
    """A test or a demo gets an address that is really listened on."""
    async with served(context) as (port, _):
        assert port > 0
        assert (await exchange(port, CLOSING)).startswith(b"HTTP/1.1 200 OK")


async def test_requests_share_a_connection(context: ApiContext) -> None:
    """Kept alive and pipelined: answers come in order on the same connection."""
    async with served(context) as (port, _):
        assert (await exchange(port, GET + CLOSING)).count(b'"is":"done"') == 2


async def test_an_address_in_use_is_named(context: ApiContext) -> None:
    """A second server on one port is refused, and does not get half of the requests unnoticed."""
    async with served(context) as (port, _):
        with pytest.raises(SettingsError, match=rf"127\.0\.0\.1:{port}: Address already in use"):
            await serve(Api(context), "127.0.0.1", port, stop=asyncio.Event(), drain_s=5)


@pytest.mark.parametrize("host", ["192.0.2.1", "no.such.host.invalid"])
async def test_an_address_that_is_not_ours_is_named(context: ApiContext, host: str) -> None:
    """One line says what to repair."""
    with pytest.raises(SettingsError, match=host):
        await serve(Api(context), host, 0, stop=asyncio.Event(), drain_s=5)


@pytest.mark.parametrize(
    ("sent", "status"),
    [
        (b"HELLO\r\n\r\n", b"400"),
        (b"GET / HTTP/1.1\r\nHost: a\r\nX: " + b"x" * 20_000 + b"\r\n\r\n", b"431"),
        (b"GET / HTTP/1.1\r\nHost: a\r\n" + b"X: x\r\n" * 100 + b"\r\n", b"431"),
        (b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab", b"400"),
        (b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: -1\r\n\r\nab", b"400"),
    ],
)
async def test_bad_http_is_turned_away(context: ApiContext, sent: bytes, status: bytes) -> None:
    """A request that could be read in two ways never reaches a flow, and its connection is closed."""
    async with served(context) as (port, _):
        assert (await exchange(port, sent)).startswith(b"HTTP/1.1 " + status)


async def test_http2_is_not_spoken(context: ApiContext) -> None:
    """Only HTTP/1: the preface of HTTP/2 ends the connection without an answer."""
    async with served(context) as (port, _):
        assert await exchange(port, b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n") == b""


async def test_an_endless_chunked_body_is_cut_off(context: ApiContext) -> None:
    """A body that tells no length is read to the limit, answered with 413, and its connection closed."""
    head = b"POST /gateway/api/payments/charge HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n"
    head += f"Content-Type: application/json\r\nAuthorization: Bearer {KEY}\r\n\r\n".encode()
    async with served(context) as (port, _):
        received = await exchange(port, head, *[b"4000\r\n" + b"x" * 0x4000 + b"\r\n"] * 5)
    assert received.startswith(b"HTTP/1.1 413 ")
    assert b"too_large" in received


async def test_a_body_that_breaks_off_is_refused(context: ApiContext) -> None:
    """A malformed chunk ends the body early: no flow runs."""
    head = b"POST /gateway/api/payments/charge HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n"
    head += f"Content-Type: application/json\r\nAuthorization: Bearer {KEY}\r\n\r\n".encode()
    async with served(context) as (port, _):
        assert (await exchange(port, head, b"ZZ\r\n{}\r\n")).startswith(b"HTTP/1.1 400 ")


async def test_a_key_that_is_no_ascii_reaches_the_api(context: ApiContext) -> None:
    """A server that leaves out what it can't read makes a charge with a key one without, which is made again."""
    head = b"POST /gateway/api/payments/charge HTTP/1.1\r\nHost: a\r\nConnection: close\r\nIdempotency-Key: k\xe9y\r\n"
    head += f"Content-Type: application/json\r\nContent-Length: 2\r\nAuthorization: Bearer {KEY}\r\n\r\n".encode()
    async with served(context) as (port, _):
        received = await exchange(port, head, b"{}")
    assert received.startswith(b"HTTP/1.1 400 ")
    assert b"Idempotency-Key must be visible ASCII" in received


@pytest.mark.parametrize(("path", "status"), [(b"Order%2F1%25", b"200"), (b"Order/1%25", b"404"), (b"a%FFb", b"400")])
async def test_a_path_reaches_the_api_as_it_was_sent(context: ApiContext, path: bytes, status: bytes) -> None:
    """A server that decodes paths can't tell the name of an order with a slash from two segments."""
    async with served(context) as (port, _):
        received = await exchange(port, CLOSING.replace(b"/subscriptions", b"/payments/" + path))
    assert received.startswith(b"HTTP/1.1 " + status)


class Gate:
    """A flow that waits in the middle until the test lets it go on."""

    def __init__(self) -> None:
        self.entered = asyncio.Event()
        self.opened = asyncio.Event()
        self.has_ended = asyncio.Event()

    def behind(self, context: ApiContext) -> ApiContext:
        """Gives a context whose flows all wait here."""

        async def wait(*_: object) -> Answer:
            self.entered.set()
            await self.opened.wait()
            self.has_ended.set()
            return found("after the wait")

        return replace(context, routes=tuple(replace(route, handler=wait) for route in context.routes))


async def test_a_stop_lets_requests_finish(context: ApiContext) -> None:
    """Requests under way get their answers; no new connection is accepted, and idle ones are closed."""
    gate = Gate()
    async with served(gate.behind(context)) as (port, stop):
        idle = await asyncio.open_connection("127.0.0.1", port)
        request = asyncio.create_task(exchange(port, GET))
        await gate.entered.wait()
        stop()
        assert await idle[0].read() == b""
        idle[1].close()
        gate.opened.set()
        assert b"after the wait" in await request
        with pytest.raises(ConnectionRefusedError):
            await asyncio.open_connection("127.0.0.1", port)


async def test_a_stop_holds_no_answer_back(context: ApiContext) -> None:
    """A client that waits gets the present state when the program is about to end."""
    held_responses = context.relay.held_responses
    with held_responses.slot("op_1") as vigil:
        async with served(context) as (_, stop):
            stop()
            assert vigil is not None
            await vigil.pause()
        assert vigil.is_over


async def test_a_stop_does_not_wait_for_ever(context: ApiContext) -> None:
    """A request that never ends delays the stop only by the drain time."""
    gate, stop, started = Gate(), asyncio.Event(), asyncio.get_running_loop().create_future()
    api = Api(gate.behind(context))
    serving = asyncio.create_task(
        serve(api, "127.0.0.1", 0, stop=stop, on_started=lambda _, port: started.set_result(port), drain_s=0.05)
    )
    request = asyncio.create_task(exchange(await started, CLOSING))
    await gate.entered.wait()
    stop.set()
    assert await serving is False
    request.cancel()
    await asyncio.wait({request})


async def test_a_client_that_goes_away_ends_nothing(context: ApiContext) -> None:
    """An app that loses its network in the middle of a charge must not leave half a charge."""
    gate = Gate()
    async with served(gate.behind(context)) as (port, _):
        _, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(GET)
        await gate.entered.wait()
        writer.transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\0\0\0\0\0\0\0")
        writer.close()
        gate.opened.set()
        async with asyncio.timeout(5):
            await gate.has_ended.wait()


def threads() -> set[int]:
    """Gives the threads of this process."""
    return {int(path.name) for path in Path("/proc/self/task").iterdir()}


async def test_the_servers_threads_interrupt_no_other(context: ApiContext) -> None:
    """Where they share a core with the event loop, each request would interrupt it. The loop stays as it was."""
    before = threads()
    async with served(context) as (port, _):
        await exchange(port, CLOSING)
        begun = threads() - before
        assert {os.sched_getscheduler(thread) for thread in begun} == {os.SCHED_BATCH}
        assert os.sched_getscheduler(0) == os.SCHED_OTHER


@pytest.mark.parametrize(
    ("policy", "of_new"), [(os.SCHED_OTHER, os.SCHED_BATCH), (os.SCHED_IDLE, os.SCHED_IDLE)], ids=["usual", "chosen"]
)
def test_a_choice_of_whoever_starts_the_process_stands(policy: int, of_new: int) -> None:
    """An operator who has it run only when nothing else does is not overruled."""
    seen: list[int] = []

    def look() -> None:
        seen.append(os.sched_getscheduler(0))

    def begin() -> None:
        if policy != os.SCHED_OTHER:
            os.sched_setscheduler(0, policy, os.sched_param(0))
        with patient_threads():
            _ended(look)
        look()

    _ended(begin)
    assert seen == [of_new, policy]


FILTERED: Final = """
import ctypes, struct, sys
from payrelay.api.serving import patient_threads

number, refused = int(sys.argv[1]), [int(each) for each in sys.argv[2:]]
rules = [(0x20, 0, 0, 0)]  # loads the number of the system call
rules += [rule for each in refused for rule in ((0x15, 0, 1, each), (0x06, 0, 0, 0x50000 | number))]
code = b"".join(struct.pack("HBBI", *rule) for rule in [*rules, (0x06, 0, 0, 0x7FFF0000)])
kept = ctypes.create_string_buffer(code)
program = ctypes.create_string_buffer(struct.pack("H6xP", len(code) // 8, ctypes.addressof(kept)))
prctl = ctypes.CDLL(None, use_errno=True).prctl
assert prctl(38, 1, 0, 0, 0) == 0  # PR_SET_NO_NEW_PRIVS
assert prctl(22, 2, program, 0, 0) == 0  # PR_SET_SECCOMP with a filter
with patient_threads():
    print("began")
"""
SET_POLICY, GET_POLICY = 144, 145
"""The numbers of the system calls on x86-64."""


@pytest.mark.process
@pytest.mark.skipif(platform.machine() != "x86_64", reason="system calls have other numbers here")
@pytest.mark.parametrize("refused", [(SET_POLICY,), (GET_POLICY,)], ids=["set", "get"])
@pytest.mark.parametrize("number", [errno.EPERM, errno.EINVAL, errno.ENOSYS])
def test_a_system_that_schedules_in_one_way_only_is_served_all_the_same(number: int, refused: tuple[int, ...]) -> None:
    """Sandboxes of containers refuse these calls, each with an error of its own. The service must start there."""
    given = [sys.executable, "-c", FILTERED, str(number), *map(str, refused)]
    told = subprocess.run(given, check=True, capture_output=True, text=True, timeout=60)

    assert told.stdout.split() == ["began"]


def _ended(function: Callable[[], None]) -> None:
    thread = threading.Thread(target=function)
    thread.start()
    thread.join()
