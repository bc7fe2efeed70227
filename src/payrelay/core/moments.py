"""Moments in writing: as programs read them, and as people do; milliseconds since 1970 at the door, UTC in the text."""

from datetime import UTC, date, datetime
from typing import Literal
from zoneinfo import ZoneInfo


def rfc3339(at_ms: int, timespec: Literal["seconds", "milliseconds"] = "milliseconds") -> str:
    """Writes a moment for programs: ``2026-11-21T10:00:00.000Z``; what is finer than asked for is cut off."""
    return _at(at_ms).isoformat(timespec=timespec).replace("+00:00", "Z")


def spoken(at_ms: int) -> str:
    """Writes a moment for people, to the second: ``2026-11-21 10:00:00``; whoever shows it adds that this is UTC."""
    return _at(at_ms).strftime("%Y-%m-%d %H:%M:%S")


def day_at(at_ms: int, timezone: str) -> date:
    """Gives the day on which a moment falls in a time zone that the machine knows."""
    return _at(at_ms).astimezone(ZoneInfo(timezone)).date()


def _at(at_ms: int) -> datetime:
    return datetime.fromtimestamp(at_ms / 1000, UTC)
