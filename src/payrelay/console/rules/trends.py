"""The last hours and days in parts of equal length: how many of each state began in each part.

A part is told by its number, from 0. What was counted may reach less far back than the parts do: a count looks at a
bounded number of rows, the newest first. Parts before that are no zeros; nobody looked.
"""

from collections.abc import Iterable
from enum import StrEnum
from typing import Final, NamedTuple

import msgspec

from payrelay.console.rules.timeline import Tone
from payrelay.core.checkouts.checkout import CheckoutState
from payrelay.core.events.delivery import DeliveryState
from payrelay.core.notifications.notification import NotificationState
from payrelay.core.payments.operation import WITHOUT_EFFECT, State
from payrelay.core.payments.schedules import HOUR_MS

MINUTE_MS: Final = 60_000
LOOKED_MAX: Final = 5_000
"""Rows of one table that are counted, the newest first."""
ENDPOINTS_MAX: Final = 50
"""Endpoints that are shown, and whose deliveries are counted."""
WAITING_MAX: Final = 1_000
"""Waiting deliveries of one endpoint that are counted; the page says where there are more."""


class TrendSpan(StrEnum):
    """How far back a page looks; each has parts of its own length."""

    HOUR = "hour"
    DAY = "day"
    WEEK = "week"


_PARTS: Final = {TrendSpan.HOUR: (12, 5 * MINUTE_MS), TrendSpan.DAY: (24, HOUR_MS), TrendSpan.WEEK: (28, 6 * HOUR_MS)}
"""How many parts a span has, and how long each is."""


class TrendWindow(NamedTuple):
    """The time that is shown: when its first part begins, how many parts it has, and how long each is."""

    since_ms: int
    parts: int
    part_ms: int

    def number_of(self, at_ms: int) -> int | None:
        """Gives the part that a time is in; None where it is in none."""
        number = (at_ms - self.since_ms) // self.part_ms
        return number if 0 <= number < self.parts else None


def window_of(span: TrendSpan, now_ms: int) -> TrendWindow:
    """Gives the parts of a span, of which the last one is the part that it is now."""
    parts, part_ms = _PARTS[span]
    return TrendWindow((now_ms // part_ms + 1 - parts) * part_ms, parts, part_ms)


class TrendTally(NamedTuple):
    """How many rows of one state began in one part, and when the earliest of them did."""

    part: int
    state: str
    total: int
    first_ms: int


class TrendGroup(NamedTuple):
    """States that are shown as one: a name for people, a mark, and the states."""

    name: str
    tone: str
    states: frozenset[str]


class Bars(msgspec.Struct, frozen=True, kw_only=True):
    """What a chart shows: for each group how many there were in each part.

    Attributes:
        groups: the groups' names and marks, in their order.
        parts: for each part the number of each group.
        counted_since_ms: from when on was counted; later than the first part begins where there was too much.
        is_cut: whether there was.
    """

    groups: tuple[tuple[str, str], ...]
    parts: tuple[tuple[int, ...], ...]
    counted_since_ms: int
    is_cut: bool

    @property
    def totals(self) -> tuple[int, ...]:
        """How many of each group there were."""
        return tuple(sum(part[number] for part in self.parts) for number in range(len(self.groups)))

    @property
    def highest(self) -> int:
        """The most of all groups together in one part."""
        return max(map(sum, self.parts), default=0)


def bars_of(
    sources: Iterable[Iterable[TrendTally]], groups: tuple[TrendGroup, ...], window: TrendWindow, *, looked_max: int
) -> Bars:
    """Puts what was counted into groups and parts. A state that no group has belongs to the last one.

    ``looked_max`` is how many rows of each source were counted at most.
    """
    number_of = {state: number for number, group in enumerate(groups) for state in group.states}
    parts = [[0] * len(groups) for _ in range(window.parts)]
    cuts = []
    for tallies in map(tuple, sources):
        for tally in tallies:
            if 0 <= tally.part < window.parts:
                parts[tally.part][number_of.get(tally.state, len(groups) - 1)] += tally.total
        if sum(tally.total for tally in tallies) >= looked_max:
            cuts.append(min(tally.first_ms for tally in tallies))
    return Bars(
        groups=tuple((group.name, group.tone) for group in groups),
        parts=tuple(map(tuple, parts)),
        counted_since_ms=max([window.since_ms, *cuts]),
        is_cut=bool(cuts),
    )


PACES: Final = (
    (1_000, "up to 1 s"),
    (10_000, "up to 10 s"),
    (MINUTE_MS, "up to 1 min"),
    (10 * MINUTE_MS, "up to 10 min"),
    (HOUR_MS, "up to 1 h"),
)
"""How long it took until an outcome was known: the longest time of each step, in milliseconds, and its name."""
SLOWEST: Final = "longer"


class BudgetSample(msgspec.Struct, frozen=True):
    """How much of a budget was in use at one moment, how many calls waited for it, and whether the circuit was open."""

    at_ms: int
    used: int
    waiting: int
    is_open: bool


class BudgetPart(NamedTuple):
    """The most that was in use and that waited in one part; None where nobody looked."""

    used: int | None
    waiting: int
    was_open: bool


def budget_parts(samples: Iterable[BudgetSample], window: TrendWindow) -> tuple[BudgetPart, ...]:
    """Gives the most of each part."""
    parts: list[BudgetPart] = [BudgetPart(None, 0, was_open=False)] * window.parts
    for sample in samples:
        number = window.number_of(sample.at_ms)
        if number is not None:
            before = parts[number]
            parts[number] = BudgetPart(
                max(before.used or 0, sample.used),
                max(before.waiting, sample.waiting),
                was_open=before.was_open or sample.is_open,
            )
    return tuple(parts)


def _group(name: str, tone: Tone, *states: str) -> TrendGroup:
    return TrendGroup(name, tone, frozenset(map(str, states)))


OF_OPERATIONS: Final = (
    _group("took effect", Tone.DONE, State.SUCCEEDED),
    _group("declined, refused or failed", Tone.NOT_DONE, *WITHOUT_EFFECT),
    _group("not known, or held", Tone.DOUBT, State.UNKNOWN, State.NEEDS_ATTENTION, State.HELD),
    _group("under way", Tone.OPEN, State.ACCEPTED, State.SENDING, State.PENDING),
)
OF_CHECKOUTS: Final = (
    _group("paid, approved or authorized", Tone.DONE, CheckoutState.COMPLETED),
    _group("failed or cancelled", Tone.NOT_DONE, CheckoutState.FAILED, CheckoutState.CANCELLED),
    _group("expired, outcome not known", Tone.DOUBT, CheckoutState.EXPIRED),
    _group("open, or reported only", Tone.OPEN, CheckoutState.OPEN, CheckoutState.NOTIFIED),
)
OF_NOTIFICATIONS: Final = (
    _group("applied", Tone.DONE, NotificationState.APPLIED),
    _group("ignored or refused", Tone.NOT_DONE, NotificationState.IGNORED, NotificationState.REFUSED),
    _group("an operator must look", Tone.DOUBT, NotificationState.NEEDS_ATTENTION),
    _group("waiting", Tone.OPEN, NotificationState.RECEIVED, NotificationState.WAITING),
)
OF_DELIVERIES: Final = (
    _group("delivered", Tone.DONE, DeliveryState.DELIVERED),
    _group("given up", Tone.DOUBT, DeliveryState.GIVEN_UP),
    _group("waiting", Tone.OPEN, DeliveryState.WAITING),
)
