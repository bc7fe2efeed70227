"""How often a subscription is charged, and for how long: as it was asked for, and as the gateway's record shows it.

Neither is in any signed text, so a customer can edit both in the gateway's form. The gateway shows them in prose, of
which few forms are documented. A text that can't be read contradicts nothing.
"""

import re
from datetime import date
from typing import Final

import msgspec

_DAYS: Final = {"day": 1.0, "week": 7.0, "month": 365.25 / 12, "year": 365.25}
_FOREVER: Final = "forever"
FOREVER_FROM_DAYS: Final = 20 * 365.25
"""A duration from which on a subscription counts as one without an end. How the gateway shows those isn't documented.
"""
TOLERANCE: Final = 0.02
"""The relative difference at which two lengths of time are equal: 52 weeks and a year, but not 4 weeks and a month."""

_UNIT: Final = "(day|week|month|year)s?"
_asked = re.compile(rf"([0-9]{{1,3}}) {_UNIT}").fullmatch
_every = re.compile(rf"charged every (?:([0-9]{{1,3}}) )?{_UNIT}(?![a-z])").match
_lasts = re.compile(rf"\bfor ([0-9]{{1,3}}) {_UNIT}\.?$").search
_endless = re.compile(r"\b(?:forever|until cancell?ed)\.?$").search


class Schedule(msgspec.Struct, frozen=True, kw_only=True):
    """How often and how long, in days; None for what isn't known. ``inf`` is a duration without an end."""

    every_days: float | None = None
    lasts_days: float | None = None

    @property
    def is_known(self) -> bool:
        """True where both are known."""
        return None not in (self.every_days, self.lasts_days)


def schedule_asked(recurrence: str, duration: str) -> Schedule:
    """Reads what was asked for, such as ``1 Month`` and ``1 Year`` or ``Forever``."""
    lasts_days = float("inf") if duration.casefold() == _FOREVER else _days_asked(duration)
    return Schedule(every_days=_days_asked(recurrence), lasts_days=lasts_days)


def schedule_shown(text: str) -> Schedule:
    """Reads the gateway's prose, such as ``Charged every 2 weeks for 1 year``.

    Gives None for each part that can't be read.
    """
    words = " ".join(text.casefold().split())
    every, lasts = _every(words), _lasts(words)
    lasts_days = None if lasts is None else _days(lasts[1], lasts[2])
    return Schedule(
        every_days=None if every is None else _days(every[1] or "1", every[2]),
        lasts_days=float("inf") if _endless(words) is not None else lasts_days,
    )


def contradict(asked: Schedule, shown: Schedule) -> bool:
    """Tells whether a shown schedule contradicts the one that was asked for; what isn't known contradicts nothing."""
    return _differ(asked.every_days, shown.every_days) or _differ(asked.lasts_days, shown.lasts_days)


def may_be_next(day: str, received_on: date, shown: Schedule | None) -> bool:
    """Tells whether ``day`` (YYYY-MM-DD) may be that of the next installment, by a report that came on a day.

    Nobody signs it. It must be a date, and no more than a period of the schedule and a month away; where the period
    isn't known, a year counts.
    """
    try:
        next_on = date.fromisoformat(day)
    except ValueError:
        return False
    every_days = None if shown is None else shown.every_days
    return (next_on - received_on).days <= (every_days or _DAYS["year"]) + _DAYS["month"]


def _days_asked(text: str) -> float | None:
    found = _asked(text.casefold())
    return None if found is None else _days(found[1], found[2])


def _days(count: str, unit: str) -> float:
    return int(count) * _DAYS[unit]


def _differ(asked: float | None, shown: float | None) -> bool:
    if asked is None or shown is None or min(asked, shown) >= FOREVER_FROM_DAYS:
        return False
    return abs(asked - shown) > TOLERANCE * min(asked, shown)
