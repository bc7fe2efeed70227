"""Times in writing, for programs and for people. Arguments are milliseconds since 1970; texts are in UTC."""

from datetime import UTC, date, datetime
from typing import Literal
from zoneinfo import ZoneInfo


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


def _at(at_ms: int) -> datetime:
    return datetime.fromtimestamp(at_ms / 1000, UTC)
