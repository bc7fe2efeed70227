"""Times in writing, for programs and for people, and spans of time as people write them, such as ``24h`` and ``7d``.

Times are milliseconds since 1970; their texts are in UTC.
"""

import re
from datetime import UTC, date, datetime
from typing import Final, Literal
from zoneinfo import ZoneInfo

SECONDS_OF_UNIT: Final = {"s": 1, "m": 60, "h": 3_600, "d": 86_400}
SECONDS_MAX: Final = 10 * 366 * 86_400
"""Ten years: longer than any useful span, and its milliseconds fit everywhere."""

_SPAN: Final = re.compile(r"([0-9]{1,9})([smhd])")


class SpanError(ValueError):
    """The text is no span of time, or no rate; the message fits behind its name."""


def rfc3339(at_ms: int, timespec: Literal["seconds", "milliseconds"] = "milliseconds") -> str:
    """Writes a time for programs: ``2026-11-21T10:00:00.000Z``; anything finer than ``timespec`` is cut off."""
    return _at(at_ms).isoformat(timespec=timespec).replace("+00:00", "Z")


def moment_of(text: str) -> int:
    """Reads a time in ISO 8601 with its zone, such as ``2026-11-21T10:00Z``; raises ValueError for anything else."""
    moment = datetime.fromisoformat(text)
    if moment.tzinfo is None:
        raise ValueError("the time has no zone")
    return round(moment.timestamp() * 1000)


def spoken(at_ms: int) -> str:
    """Writes a time for people, to the second: ``2026-11-21 10:00:00``; the caller adds that it is UTC."""
    return _at(at_ms).strftime("%Y-%m-%d %H:%M:%S")


def day_at(at_ms: int, timezone: str) -> date:
    """Gives the day of a time in a time zone that the machine knows."""
    return _at(at_ms).astimezone(ZoneInfo(timezone)).date()


def span_s(text: str) -> int:
    """Gives the seconds of a span: a whole number with its unit, or ``0``. Raises SpanError."""
    if text == "0":
        return 0
    match = _SPAN.fullmatch(text)
    if match is None:
        raise SpanError("must be a span such as 30s, 15m, 24h or 7d, or 0")
    seconds = int(match[1]) * SECONDS_OF_UNIT[match[2]]
    if seconds > SECONDS_MAX:
        raise SpanError("must be at most ten years")
    return seconds


def span_text(seconds: int) -> str:
    """Writes a span for people, in the largest whole unit of which it has two: ``90 s``, ``36 h``, ``30 days``."""
    for name, unit_s in (("days", 86_400), ("h", 3_600), ("min", 60)):
        if seconds >= 2 * unit_s:
            return f"{seconds // unit_s} {name}"
    return f"{max(seconds, 0)} s"


def _at(at_ms: int) -> datetime:
    return datetime.fromtimestamp(at_ms / 1000, UTC)
