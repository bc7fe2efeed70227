"""Spans of time and rates as people write them: ``24h``, ``30m``, ``10s``, ``7d``, ``0``; ``20/10s``."""

import re
from typing import Final

from payrelay.core.credentials import Rate

SECONDS_OF_UNIT: Final = {"s": 1, "m": 60, "h": 3_600, "d": 86_400}
SECONDS_MAX: Final = 10 * 366 * 86_400
"""Ten years: no span that is meant is longer, and its milliseconds fit everywhere."""
COUNT_MAX: Final = 1_000_000
"""The largest count of a rate; what is meant to be more than this is meant to be off."""

_SPAN: Final = re.compile(r"([0-9]{1,9})([smhd])")
_RATE: Final = re.compile(r"([0-9]{1,9})/([0-9]{1,9}[smhd])")


class SpanError(ValueError):
    """The text is not a span of time or a rate; the message fits behind its name."""


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


def rate(text: str) -> Rate:
    """Reads ``20/10s``: at most 20 in any 10 seconds. Raises SpanError."""
    match = _RATE.fullmatch(text)
    if match is None:
        raise SpanError("must be a rate such as 20/10s")
    count, window_s = int(match[1]), span_s(match[2])
    if not 1 <= count <= COUNT_MAX or window_s < 1:
        raise SpanError(f"must be a rate of 1 to {COUNT_MAX} in at least 1s")
    return Rate(count=count, window_s=window_s)


def span_text(seconds: int) -> str:
    """Writes a span as people say it, in whole units of which it has at least two: ``90 s``, ``36 h``, ``30 days``."""
    for name, unit_s in (("days", 86_400), ("h", 3_600), ("min", 60)):
        if seconds >= 2 * unit_s:
            return f"{seconds // unit_s} {name}"
    return f"{max(seconds, 0)} s"
