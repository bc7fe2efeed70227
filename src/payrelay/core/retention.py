"""Retention: how long each kind of data is kept before the worker clears it away.

Rules:

1. Cleared is only what can change no more (``core.payments.operation.CLEARABLE``).
2. An operation's row is never removed. With it stay what recognises a repeat, what locks an order or an authorization,
   and what says whose a payment is.
3. A period is never shorter than PERIODS_MIN_S, because something else relies on what would be gone.
"""

from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import Final, NamedTuple

_DAY_S: Final = 86_400


class Kept(StrEnum):
    """What is kept for a period of its own."""

    ANSWERS = "answers"
    """The stored answers of operations, from which repeats are answered."""
    CALLS = "calls"
    """The sealed calls of operations, as they went to the gateway."""
    HISTORIES = "histories"
    """The journal entries of operations, but for the newest one of each."""
    NOTIFICATIONS = "notifications"
    """Notifications that were worked on, with their rows."""
    EVENTS = "events"
    """Published events with their deliveries."""


class Periods(NamedTuple):
    """How long each kind of data is kept, in milliseconds; None for ever."""

    answers: int | None = 90 * _DAY_S * 1000
    calls: int | None = 180 * _DAY_S * 1000
    histories: int | None = 400 * _DAY_S * 1000
    notifications: int | None = 400 * _DAY_S * 1000
    events: int | None = 30 * _DAY_S * 1000

    def of(self, kept: Kept) -> int | None:
        """Gives the period of one kind, in milliseconds; None for ever."""
        period: int | None = self._asdict()[kept.value]
        return period


DEFAULT_PERIODS: Final = Periods()

PERIODS_MIN_S: Final[Mapping[Kept, int]] = MappingProxyType(
    {
        Kept.ANSWERS: 31 * _DAY_S,
        Kept.CALLS: 60 * _DAY_S,
        Kept.HISTORIES: 60 * _DAY_S,
        Kept.NOTIFICATIONS: 90 * _DAY_S,
        Kept.EVENTS: 7 * _DAY_S,
    }
)
"""The shortest period of each kind, in seconds."""

WHY_MIN: Final[Mapping[Kept, str]] = MappingProxyType(
    {
        Kept.ANSWERS: "repeats get the stored answer for 30 days",
        Kept.CALLS: "a refund or a capture may ask for the call of a payment for weeks",
        Kept.HISTORIES: "an operation that failed is searched for during 30 days more",
        Kept.NOTIFICATIONS: "the body of a notification is kept for 90 days",
        Kept.EVENTS: "an endpoint is tried for 3 days, and a reader may stand still over a weekend",
    }
)
"""Why a period can't be shorter."""
