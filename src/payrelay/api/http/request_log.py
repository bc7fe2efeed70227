"""The log: one line of JSON for each request, with a fixed event name and chosen fields, and never a secret."""

import asyncio
import contextlib
import logging
import sys
import time
import traceback
from collections.abc import Callable
from typing import Any, BinaryIO, Final, cast

import msgspec
import structlog
from structlog.typing import EventDict, FilteringBoundLogger

from payrelay.clock import Clock

FRAMES_MAX: Final = 40
"""Frames that are logged of a traceback, from its end: enough for every call chain of the program."""
FLUSH_WITHIN_S: Final = 0.02
"""Too short for a reader to notice; at full load, a few hundred lines go out at once."""
CAUSES_MAX: Final = 5
"""Exceptions of a chain that are logged."""


def json_log(stream: BinaryIO, clock: Clock, level: int = logging.INFO) -> FilteringBoundLogger:
    """Makes a logger that writes one JSON object a line: ``at``, ``level``, ``event``, then the given fields.

    A line is flushed within FLUSH_WITHIN_S, a warning or an error at once; see ``LogLines``.
    """
    wrapper = structlog.make_filtering_bound_logger(level)
    if level <= logging.INFO:
        wrapper = type(wrapper.__name__, (_RequestLog, wrapper), {})
    proxy = structlog.wrap_logger(LogLines(stream), processors=[_Rendering(clock)], wrapper_class=wrapper)
    # Bound once: the unbound proxy looks its methods up at every call.
    return cast("FilteringBoundLogger", proxy.bind())


class LogLines:
    """Writes lines to a stream, and flushes several together.

    A flush for each line would be a system call for each request, and would let the server's other thread take the
    interpreter. A process that is killed loses the lines of the last FLUSH_WITHIN_S. What it did is in the journal, not
    in the log. Lines that can't be written, because the disk is full or the reader of the pipe has ended, are lost too:
    no request fails because its line can't be written.
    """

    __slots__ = ("_loop", "_stream")

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self._loop: asyncio.AbstractEventLoop | None = None

    def info(self, line: bytes) -> None:
        """Writes a line, and flushes it within FLUSH_WITHIN_S."""
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
        """Writes a line, and flushes it with all that waited before it."""
        self._write(line)
        self._flush()

    error = critical = warning

    def _write(self, line: bytes) -> None:
        try:  # noqa: SIM105 - once for each request, and several times as quick as suppress()
            self._stream.write(line + b"\n")
        except OSError:
            pass

    def _flush(self) -> None:
        self._loop = None
        if not self._stream.closed:  # closing a stream flushes it
            with contextlib.suppress(OSError):
                self._stream.flush()


class RequestLogRecord(msgspec.Struct, gc=False):
    """The log fields of a request, filled in on its way; a field that stays unknown keeps its default.

    ``request_writer`` logs it unchanged: to gather a dozen arguments for every request would cost more than to write
    them.
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
    trace_id: str | msgspec.UnsetType = msgspec.UNSET
    span_id: str | msgspec.UnsetType = msgspec.UNSET


class _RequestLog(structlog.BoundLoggerBase):
    """A logger that writes the line of a request without what ``info`` needs for any other line."""

    def request(self, record: RequestLogRecord) -> None:
        """Writes the line that ``info("request", record=record)`` writes."""
        event: Any = {"event": "request", "record": record}
        for processor in self._processors:
            event = processor(self._logger, "info", event)
        self._logger.info(event)


def request_writer(log: FilteringBoundLogger) -> Callable[[RequestLogRecord], None]:
    """Gives what logs the record of a request; where ``json_log`` made the log, in half the time of ``info``."""
    if isinstance(log, _RequestLog):
        return log.request
    return lambda record: log.info("request", record=record)


_encode: Final = msgspec.json.Encoder(enc_hook=str).encode


class _Rendering:
    """Writes time, level and fields as JSON, in one step; the time is formatted once a second, down to seconds."""

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
    """Describes an exception and its causes by their types and positions in the code, never by their messages.

    A message may repeat what a client sent; the position tells a developer enough.
    """
    described: list[dict[str, object]] = []
    current: BaseException | None = error
    while current is not None and len(described) < CAUSES_MAX:
        summaries = traceback.extract_tb(current.__traceback__)[-FRAMES_MAX:]
        frames = [f"{frame.filename}:{frame.lineno} {frame.name}" for frame in summaries]
        described.append({"type": type(current).__qualname__, "frames": frames})
        current = current.__cause__ or current.__context__
    return described
