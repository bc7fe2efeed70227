"""One line of JSON per request on a stream, with a fixed event name and chosen fields; no secret can get into it."""

import asyncio
import contextlib
import logging
import sys
import time
import traceback
from typing import BinaryIO, Final, cast

import msgspec
import structlog
from structlog.typing import EventDict, FilteringBoundLogger

from payrelay.clock import Clock

FRAMES_MAX: Final = 40
"""Of a traceback: the ends of every call chain that we have."""
FLUSH_WITHIN_S: Final = 0.02
"""Nobody who reads along notices, and at full load a few hundred lines go out at once."""
CAUSES_MAX: Final = 5
"""Exceptions behind an exception that are told of."""


def json_log(stream: BinaryIO, clock: Clock, level: int = logging.INFO) -> FilteringBoundLogger:
    """Makes a logger that writes one JSON object a line: ``at``, ``level``, ``event``, then what it is given.

    A line is on its way within FLUSH_WITHIN_S, one of a warning or worse at once; see ``LogLines``.
    """
    proxy = structlog.wrap_logger(
        LogLines(stream), processors=[_Rendering(clock)], wrapper_class=structlog.make_filtering_bound_logger(level)
    )
    # Bound once and for all: the proxy would look its methods up anew at every call.
    return cast("FilteringBoundLogger", proxy.bind())


class LogLines:
    """Writes lines to a stream, and pushes them out together.

    Pushing out each line by itself is a system call, and a chance for the server's other thread to take the
    interpreter, for every request. A process that is killed loses the lines of its last moment; what it did is in the
    journal, not here. Lines that can't be written, because the disk is full or the reader of the pipe has ended, are
    lost too: no request fails for want of its line.
    """

    __slots__ = ("_loop", "_stream")

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self._loop: asyncio.AbstractEventLoop | None = None

    def info(self, line: bytes) -> None:
        """Writes a line that may wait a moment for others."""
        self._write(line)
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:
            self._flush()
            return
        if self._loop is not loop:
            self._loop = loop
            loop.call_later(FLUSH_WITHIN_S, self._flush)

    debug = info

    def warning(self, line: bytes) -> None:
        """Writes a line that somebody should see, and all that waited before it."""
        self._write(line)
        self._flush()

    error = critical = warning

    def _write(self, line: bytes) -> None:
        with contextlib.suppress(OSError):
            self._stream.write(line + b"\n")

    def _flush(self) -> None:
        self._loop = None
        if not self._stream.closed:  # whoever closed it has pushed out what was left
            with contextlib.suppress(OSError):
                self._stream.flush()


class RequestLogRecord(msgspec.Struct, gc=False):
    """What is told of a request, filled in on its way; the fields that nobody got to know stay None.

    It is handed to the log as it is, by ``log.info("request", record=record)``: gathering a dozen arguments anew for
    every request costs more than writing them.
    """

    request_id: str
    method: str
    client: str
    at: str = ""
    level: str = ""
    event: str = ""
    route: str = ""
    account: str | None = None
    principal: str | None = None
    credential_id: str | None = None
    status: int = 0
    code: str | None = None
    operation_id: str | None = None
    is_replayed: bool = False
    duration_ms: float = 0.0


_encode: Final = msgspec.json.Encoder(enc_hook=str).encode


class _Rendering:
    """Writes time, level and fields as JSON, in one step; the time down to seconds is written once a second."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._second = -1
        self._text = ""

    def __call__(self, _: object, level: str, event: EventDict) -> bytes:
        second, milliseconds = divmod(self._clock.now_ms(), 1000)
        if second != self._second:
            self._second = second
            self._text = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(second))
        at = f"{self._text}.{milliseconds:03d}Z"
        name = event.pop("event")
        record = event.get("record")
        if isinstance(record, RequestLogRecord):
            record.at, record.level, record.event = at, level, name
            return _encode(record)
        if event.pop("exc_info", None):  # ``log.exception``, inside an ``except``
            error = sys.exception()
            event["errors"] = [] if error is None else describe(error)
        return _encode({"at": at, "level": level, "event": name, **event})


def describe(error: BaseException) -> list[dict[str, object]]:
    """Tells where an exception came from: types and places of it and its causes, never their texts.

    A text may repeat what a client sent; the line that raised it says as much to whoever mends it.
    """
    described: list[dict[str, object]] = []
    current: BaseException | None = error
    while current is not None and len(described) < CAUSES_MAX:
        frames = traceback.extract_tb(current.__traceback__)[-FRAMES_MAX:]
        places = [f"{frame.filename}:{frame.lineno} {frame.name}" for frame in frames]
        described.append({"type": type(current).__qualname__, "places": places})
        current = current.__cause__ or current.__context__
    return described
