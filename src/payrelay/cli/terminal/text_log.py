"""The log as an operator reads it on a terminal: one line for each event, with time, level, event and members.

Clients and gateways choose some of what is logged. Every value is therefore shown and never obeyed: what a terminal
would obey is written as an escape.
"""

import logging
import sys
from collections.abc import Iterator
from typing import Final, TextIO, cast

import msgspec
import structlog
from structlog.dev import Column, ConsoleRenderer, KeyValueColumnFormatter, LogLevelColumnFormatter
from structlog.typing import EventDict, FilteringBoundLogger

from payrelay.api.http.request_log import LogLines, RequestLogRecord, describe
from payrelay.cli.terminal.pages import Page
from payrelay.clock import Clock
from payrelay.core.moments import rfc3339
from payrelay.core.payments.explanations import printable

QUOTED: Final = frozenset(" =\"'")
"""Characters for which a value stands in quotes, so that its end can be seen."""


def text_log(stream: TextIO, clock: Clock, level: int = logging.INFO) -> FilteringBoundLogger:
    """Makes a logger that writes readable lines, in colour where the terminal has it and NO_COLOR is not set."""
    page = Page()
    is_colored = page.is_terminal and page.color_system is not None and not page.no_color
    proxy = structlog.wrap_logger(
        LogLines(stream.buffer),
        processors=[TextRendering(clock, stream.encoding, is_colored=is_colored)],
        wrapper_class=structlog.make_filtering_bound_logger(level),
    )
    return cast("FilteringBoundLogger", proxy.bind())


class TextRendering:
    """Writes one event as text; places of an exception stand in lines of their own below it."""

    def __init__(self, clock: Clock, encoding: str, *, is_colored: bool) -> None:
        styles = ConsoleRenderer.get_default_column_styles(is_colored)
        levels = ConsoleRenderer.get_default_level_styles(is_colored)

        def plain(style: str) -> KeyValueColumnFormatter:
            return KeyValueColumnFormatter(None, style, styles.reset, value_repr=_plain)

        members = KeyValueColumnFormatter(styles.kv_key, styles.kv_value, styles.reset, value_repr=shown)
        self._clock = clock
        self._encoding = encoding
        self._render = ConsoleRenderer(
            sort_keys=False,
            columns=[
                Column("", members),
                Column("at", plain(styles.timestamp)),
                Column("level", LogLevelColumnFormatter(levels, styles.reset)),
                Column("event", plain(styles.bright)),
            ],
        )

    def __call__(self, logger: object, level: str, event: EventDict) -> bytes:
        """Renders an event; structlog calls this."""
        members = dict(_members(event))
        errors = members.pop("errors", [])
        at = rfc3339(self._clock.now_ms()).replace("T", " ")
        line = self._render(logger, level, {"at": at, "level": level, **members})
        text = "".join([line, *(f"\n    {_plain(place)}" for place in _frames(errors))])
        return text.encode(self._encoding, "backslashreplace")


def _members(event: EventDict) -> Iterator[tuple[str, object]]:
    """Gives the event and its members; of a request the method, route, status and duration are the event."""
    record = event.pop("record", None)
    if isinstance(record, RequestLogRecord):
        members = msgspec.structs.asdict(record)
        for name in ("at", "level", "event"):
            del members[name]
        method, route, status, duration_ms = (
            members.pop(name) for name in ("method", "route", "status", "duration_ms")
        )
        yield "event", f"{method} {route} {status} {duration_ms:.1f} ms"
        absent = (None, False, msgspec.UNSET)
        yield from ((name, value) for name, value in members.items() if not any(value is each for each in absent))
        return
    yield "event", event.pop("event")
    if event.pop("exc_info", None):
        error = sys.exception()
        yield "errors", [] if error is None else describe(error)
    yield from event.items()


def _frames(errors: object) -> Iterator[str]:
    for error in errors if isinstance(errors, list) else []:
        yield str(error["type"])
        yield from (f"  {frame}" for frame in error["frames"])


def shown(value: object) -> str:
    """Gives the value of a member, in quotes where its end could not be seen otherwise."""
    if not isinstance(value, str):
        return printable(msgspec.json.encode(value, enc_hook=str).decode())
    text = printable(value)
    return '"{}"'.format(text.replace('"', '\\"')) if not text or QUOTED & set(text) else text


def _plain(value: object) -> str:
    return printable(str(value))
