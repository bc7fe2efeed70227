"""Spans of time as people write them: ``24h``, ``30m``, ``10s``, ``7d``, ``0``."""

import re
from typing import Final

SECONDS_OF_UNIT: Final = {"s": 1, "m": 60, "h": 3_600, "d": 86_400}
SECONDS_MAX: Final = 10 * 366 * 86_400
"""Ten years: longer than any useful span, and its milliseconds fit everywhere."""

_SPAN: Final = re.compile(r"([0-9]{1,9})([smhd])")


class SpanError(ValueError):
    """The text is no span of time, or no rate; the message fits behind its name."""


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
