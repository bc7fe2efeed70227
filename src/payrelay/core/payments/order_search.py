"""When an order is searched for at the gateway: one search in each slot of its schedule, however many wait for it.

Rules:

1. A slot is one search, whose result answers everything that waits for the order. Between two slots nothing searches.
2. The pauses between the slots grow. Most of what can be posted or clicked for an order brings no slot forward.
3. An *occasion* begins the schedule anew, so that the next slot comes at once. It is a signed text that is new for the
   order and of an amount that was asked for. It is also the return of a checkout's customer, the end of a checkout, and
   the first look at a checkout after commits were lost. Each counts once. An order has OCCASIONS_MAX, of which
   NOTIFIED_MAX may be signed texts: whoever posts them takes no room from a customer who returns, or from a checkout
   that ends.
4. A search whose process died is made again when its lease ends. A schedule ends a day after its last search.
"""

from collections.abc import Iterable
from typing import Final, NamedTuple

import msgspec

from payrelay.core.payments.schedules import DAY_MS

PAUSES_MS: Final = (
    2_000,
    5_000,
    15_000,
    60_000,
    300_000,
    900_000,
    3_600_000,
    3_600_000,
    6 * 3_600_000,
)
"""The pauses after the first search, after the second, …; the last one repeats."""
PAUSE_MS_MIN: Final = 2_000
"""The shortest pause between two searches, also where an occasion brings the next one forward."""
OCCASIONS_MAX: Final = 8
"""Occasions that begin a schedule anew. An order that is paid at the third attempt, in a second checkout, has six."""
NOTIFIED_MAX: Final = 4
"""Signed texts among them: a success, a failure and a cancellation of one amount, and one of a second amount."""
OURS: Final = ("returned", "ended", "recovered")
"""The first words of the occasions that Payrelay sees itself."""
SCHEDULE_MS: Final = DAY_MS
"""How long after its last search an order's schedule counts. It is then forgotten, and the next search begins one."""
LEASE_MS: Final = 180_000
"""How long a process has a slot: longer than a search takes, with all its waits for the budget."""
IN_FLIGHT_MS: Final = 5_000
"""The pause before somebody asks again for a slot that another process has at this moment."""
READING_COUNTS_MS: Final = 60_000
"""How much older than a notification the reading may be that answers it without a search of its own. A payment that the
gateway showed a minute ago was paid, and its notification may be late."""


class SearchSchedule(msgspec.Struct, frozen=True, kw_only=True):
    """The schedule of one order's searches; times are in ms since 1970.

    Attributes:
        merchant, order_id: the order.
        searches: how many slots were taken since the schedule began, or began anew.
        asked_at_ms: when the last slot was taken.
        next_at_ms: the time of the next slot.
        leased_until_ms: until when a process has the last slot; None once its search has ended.
        read_at_ms: when the search began that showed the stored reading; None where there is no reading.
        occasions: those that began the schedule, or began it anew.
    """

    merchant: str
    order_id: str
    searches: int
    asked_at_ms: int
    next_at_ms: int
    leased_until_ms: int | None = None
    read_at_ms: int | None = None
    occasions: tuple[str, ...] = ()


class Slot(NamedTuple):
    """The answer to one who asks for a slot: the schedule after that, and whether the slot is given."""

    schedule: SearchSchedule
    is_given: bool


def take_slot(known: SearchSchedule | None, order: tuple[str, str], occasions: Iterable[str], *, now_ms: int) -> Slot:
    """Decides whether an order (merchant and id) may be searched for now; ``known`` is its schedule, None without one.

    Gives no slot before the next one is due, and none while another process has one.
    """
    if known is None or now_ms - known.asked_at_ms >= SCHEDULE_MS:
        first = _counted((), occasions)
        merchant, order_id = order
        known = SearchSchedule(
            merchant=merchant, order_id=order_id, searches=0, asked_at_ms=now_ms, next_at_ms=now_ms, occasions=first
        )
    schedule = _begun_anew(known, occasions, now_ms)
    is_lost = schedule.leased_until_ms is not None and schedule.leased_until_ms <= now_ms
    is_due = schedule.leased_until_ms is None and schedule.next_at_ms <= now_ms
    if not is_lost and not is_due:
        return Slot(schedule, is_given=False)
    pause_ms = PAUSES_MS[min(schedule.searches, len(PAUSES_MS) - 1)]
    taken = msgspec.structs.replace(
        schedule,
        searches=schedule.searches + 1,
        asked_at_ms=now_ms,
        next_at_ms=now_ms + pause_ms,
        leased_until_ms=now_ms + LEASE_MS,
    )
    return Slot(taken, is_given=True)


def _begun_anew(schedule: SearchSchedule, occasions: Iterable[str], now_ms: int) -> SearchSchedule:
    counted = _counted(schedule.occasions, occasions)
    if counted == schedule.occasions:
        return schedule
    soonest_ms = max(now_ms, schedule.asked_at_ms + PAUSE_MS_MIN)
    return msgspec.structs.replace(
        schedule,
        searches=0,
        next_at_ms=min(schedule.next_at_ms, soonest_ms),
        occasions=counted,
    )


def _counted(known: tuple[str, ...], occasions: Iterable[str]) -> tuple[str, ...]:
    """Adds the occasions that are new and for which there is room."""
    counted = list(known)
    for occasion in occasions:
        is_notified = not occasion.startswith(OURS)
        notified = sum(not each.startswith(OURS) for each in counted)
        if occasion not in counted and len(counted) < OCCASIONS_MAX and not (is_notified and notified >= NOTIFIED_MAX):
            counted.append(occasion)
    return tuple(counted)


def next_try_ms(schedule: SearchSchedule, now_ms: int, *, is_given: bool) -> int:
    """Gives when to ask for a slot again: at the next one, after the one that was given, or that another has now.

    While another process has the slot, the end of its search brings the next try forward.
    """
    pause_ms = PAUSE_MS_MIN if is_given or schedule.leased_until_ms is None else IN_FLIGHT_MS
    return max(schedule.next_at_ms, now_ms + pause_ms)
