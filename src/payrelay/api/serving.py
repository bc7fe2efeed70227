"""Serves an address that listens: HTTP/1 by Granian, in this process and its event loop, with every limit named.

Why Granian, and what was tried on it, is in ``docs/decisions/0003-http-server.md``.
"""

import asyncio
import os
import socket
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from typing import Any, Final

from granian.constants import HTTPModes, Interfaces
from granian.http import HTTP1Settings
from granian.net import SocketHolder  # type: ignore[attr-defined]  # its own, passed through
from granian.server.embed import AsyncWorker, Server

from payrelay.api.address import ServedAddress
from payrelay.api.connections.limiter import limit_connections
from payrelay.api.connections.sockets import AcceptedSockets
from payrelay.errors import SettingsError

HEADERS_TIMEOUT_MS: Final = 30_000
"""The time in which all headers of a request must arrive, and after which an idle connection is closed."""
HEADERS_BYTES_MAX: Final = 16_384
"""For the request line and all headers: a key has some 80 bytes, a path with an order id at most 800."""
BACKLOG: Final = 1024
"""Connections that wait in the kernel until the server accepts them."""
UNREAD_BYTES_KEPT: Final = 131_072
"""What the kernel keeps of an answer until the client reads it, for each connection."""
LAST_ANSWERS_S: Final = 1.0
"""The time for answering requests that have not finished by the end of the drain."""

Started = Callable[[str, int], None]


@contextmanager
def patient_threads() -> Iterator[None]:
    """Lets the threads that begin in this context interrupt no other when they wake up (Linux's SCHED_BATCH).

    The server's threads and the event loop wake each other for each piece of a request. Where they share a core, each
    would interrupt the other in the middle of its turn, and less would be gathered. They get as much of the processor
    as others. Does nothing where whoever started the process has chosen how it is scheduled, and where the system can't
    do it or forbids it.
    """
    if not _is_usual():
        yield
        return
    # A filter of system calls may forbid it, and gVisor, for one, knows the policy's name but not the policy.
    with suppress(OSError):
        os.sched_setscheduler(0, os.SCHED_BATCH, os.sched_param(0))
    try:
        yield
    finally:
        with suppress(OSError):
            os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))


def _is_usual() -> bool:
    """True where this thread is scheduled as the system does by itself, and the system tells how."""
    try:
        return hasattr(os, "SCHED_BATCH") and os.sched_getscheduler(0) == os.SCHED_OTHER
    except OSError:
        return False


class _Server(Server):
    """Granian on a socket that this module has bound.

    Granian shares its own socket with any process that binds the same port later (SO_REUSEPORT). Two services that are
    started on one port by mistake would each get half of the requests. And the port behind 0 would not be known.
    """

    def __init__(self, app: ServedAddress, listener: socket.socket) -> None:
        super().__init__(
            app,
            interface=Interfaces.ASGINL,
            http=HTTPModes.http1,
            websockets=False,
            backlog=BACKLOG,
            backpressure=app.connections.limits.places,
            http1_settings=HTTP1Settings(
                header_read_timeout=HEADERS_TIMEOUT_MS, keep_alive=True, max_buffer_size=HEADERS_BYTES_MAX
            ),
            log_enabled=False,
            log_access=False,
        )
        self._listener = listener

    def _init_shared_socket(self) -> None:
        # Not a Unix socket; its arguments are positional and not in the type stub.
        self._shd = SocketHolder(os.dup(self._listener.fileno()), False, BACKLOG)  # type: ignore[assignment,call-arg]  # noqa: FBT003

    def _spawn_worker(
        self, idx: int, target: Callable[..., Coroutine[Any, Any, None]], *loaders: object, **named: object
    ) -> AsyncWorker:
        worker: AsyncWorker = super()._spawn_worker(
            idx, lambda *given: _ByPatientThreads(target(*given)), *loaders, **named
        )
        return worker


class _ByPatientThreads(Coroutine[Any, Any, None]):
    """The work of Granian's worker, whose first step starts its threads."""

    def __init__(self, work: Coroutine[Any, Any, None]) -> None:
        self._work = work

    def send(self, value: Any) -> Any:  # noqa: ANN401, as its base
        with patient_threads():
            return self._work.send(value)

    def throw(self, *raised: Any) -> Any:  # noqa: ANN401, as its base
        return self._work.throw(*raised)

    def close(self) -> None:
        self._work.close()

    def __await__(self) -> Any:  # noqa: ANN401, as its base
        return self._work.__await__()


async def serve(
    app: ServedAddress,
    host: str,
    port: int,
    *,
    stop: asyncio.Event,
    drain_s: float,
    on_started: Started | None = None,
    listener: socket.socket | None = None,
) -> bool:
    """Serves until ``stop`` is set, then accepts no new connection and lets the requests under way finish.

    After the stop, held answers are given at once. A request that is still under way after ``drain_s`` is answered
    with what is known of it.

    Args:
        app: the API, or what else answers.
        host: an address or a name of this machine.
        port: 0 for any free port.
        stop: ends the service.
        drain_s: how long requests under way may go on after the stop.
        on_started: called once with the address and the port as soon as connections are accepted.
        listener: a socket that listens already (``listener_on``), closed at the end; None to listen now.

    Returns:
        True when all requests have finished, False when ``drain_s`` was over first.

    Raises SettingsError that names the address, where the process can't listen on it.
    """
    listener = listener or listener_on(host, port)
    server = _Server(app, listener)
    serving = asyncio.ensure_future(server.serve())
    sockets = AcceptedSockets(listener)
    limiting = asyncio.ensure_future(limit_connections(app.connections, sockets, note=app.lines.closed))
    try:
        # Connections that come before the server accepts them wait in the backlog.
        if on_started is not None:
            address = listener.getsockname()
            on_started(address[0], address[1])
        await until_stopped(serving, limiting, stop)
    finally:
        listener.close()
        app.answer_held_responses()
        has_finished = await _drained(app, server, serving, drain_s)
        limiting.cancel()
        app.lines.log_counts()
    return has_finished


async def until_stopped(serving: asyncio.Future[None], limiting: asyncio.Future[None], stop: asyncio.Event) -> None:
    """Waits for the stop; raises what ended the server or its limits, or RuntimeError, where one ended first."""
    stopping = asyncio.ensure_future(stop.wait())
    try:
        await asyncio.wait((serving, limiting, stopping), return_when=asyncio.FIRST_COMPLETED)
    finally:
        stopping.cancel()
    if limiting.done():
        limiting.result()
        raise RuntimeError("nobody limits the connections any more")
    if serving.done():
        serving.result()
        raise RuntimeError("the HTTP server ended by itself")


async def _drained(app: ServedAddress, server: Server, serving: asyncio.Future[None], drain_s: float) -> bool:
    if serving.done():
        return True
    server.stop()  # type: ignore[no-untyped-call]
    _, unfinished = await asyncio.wait({serving}, timeout=drain_s)
    if not unfinished:
        return True
    app.leave()
    _, unfinished = await asyncio.wait({serving}, timeout=LAST_ANSWERS_S)
    for task in unfinished:
        task.cancel()
    await asyncio.gather(*unfinished, return_exceptions=True)
    return False


@asynccontextmanager
async def served_beside(app: ServedAddress, address: tuple[str, int] | None) -> AsyncIterator[None]:
    """Serves the metrics or the console on an address of its own while the context is open; nothing without one.

    Raises SettingsError that names the address, where the process can't listen on it.
    """
    if address is None:
        yield
        return
    stop, listener = asyncio.Event(), listener_on(*address)
    serving = asyncio.ensure_future(serve(app, *address, stop=stop, drain_s=LAST_ANSWERS_S, listener=listener))
    try:
        yield
    finally:
        stop.set()
        await serving


def listener_on(host: str, port: int) -> socket.socket:
    """Listens on an address of this machine; raises SettingsError, with the OSError as its cause, where it can't."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        listener = socket.socket(family, kind, protocol)
    except OSError as error:
        raise _unusable(host, port, error) from error
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
        # Inherited by each connection. The kernel would otherwise keep up to 4 MiB for one that doesn't read.
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, UNREAD_BYTES_KEPT)
        listener.listen(BACKLOG)
    except OSError as error:
        listener.close()
        raise _unusable(host, port, error) from error
    listener.setblocking(False)  # noqa: FBT003 - positional in the standard library
    return listener


def _unusable(host: str, port: int, error: OSError) -> SettingsError:
    return SettingsError(f"can't listen on {host}:{port}: {error.strerror or error}")
