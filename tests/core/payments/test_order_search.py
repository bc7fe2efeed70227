"""An order is searched for once in each slot of its schedule, whatever arrives; and nothing waits for ever."""

from itertools import pairwise

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.draws import examples

from payrelay.core.payments.order_search import (
    IN_FLIGHT_MS,
    LEASE_MS,
    NOTIFIED_MAX,
    OCCASIONS_MAX,
    PAUSE_MS_MIN,
    PAUSES_MS,
    SCHEDULE_MS,
    SearchSchedule,
    next_try_ms,
    take_slot,
)

ORDER = ("0123456789abcdef", "A-1")
BEGAN_MS = 1_700_000_000_000


def ended(schedule: SearchSchedule) -> SearchSchedule:
    """Ends the search of a slot."""
    return msgspec.structs.replace(schedule, leased_until_ms=None)


def searched_at(tries: list[tuple[int, str | None]], *, until_ms: int) -> list[int]:
    """Gives when the searches begin if somebody asks at these pauses with these occasions, and each ends at once."""
    known: SearchSchedule | None = None
    now_ms, found = BEGAN_MS, []
    for pause_ms, occasion in tries:
        now_ms += pause_ms
        if now_ms > BEGAN_MS + until_ms:
            break
        slot = take_slot(known, ORDER, () if occasion is None else (occasion,), now_ms=now_ms)
        known = ended(slot.schedule) if slot.is_given else slot.schedule
        found += [now_ms] if slot.is_given else []
    return found


def test_the_pauses_grow() -> None:
    """A payment shows within seconds or minutes; what was made up is still searched for after hours, and seldom."""
    every_second: list[tuple[int, str | None]] = [(1_000, None)] * (12 * 3_600)
    found = searched_at(every_second, until_ms=12 * 3_600_000)

    assert [after - before for before, after in pairwise(found)] == list(PAUSES_MS[: len(found) - 1])
    assert len(found) == 10


def test_an_occasion_brings_the_next_slot_forward_once() -> None:
    """The customer came back, and would look at an empty page for an hour; a page that is reloaded is nothing new."""
    known = SearchSchedule(
        merchant=ORDER[0], order_id=ORDER[1], searches=7, asked_at_ms=BEGAN_MS, next_at_ms=BEGAN_MS + 3_600_000
    )
    slot = take_slot(known, ORDER, ("returned chk_1",), now_ms=BEGAN_MS + 60_000)
    again = take_slot(ended(slot.schedule), ORDER, ("returned chk_1",), now_ms=BEGAN_MS + 61_000)

    assert slot.is_given
    assert slot.schedule.searches == 1
    assert not again.is_given
    assert again.schedule.next_at_ms == BEGAN_MS + 60_000 + PAUSES_MS[0]


def test_an_occasion_right_after_a_search_waits_for_the_shortest_pause() -> None:
    """Eight occasions in one second must not be eight calls in one second."""
    first = ended(take_slot(None, ORDER, (), now_ms=BEGAN_MS).schedule)
    slot = take_slot(first, ORDER, ("returned chk_1",), now_ms=BEGAN_MS + 1)

    assert not slot.is_given
    assert slot.schedule.next_at_ms == BEGAN_MS + PAUSE_MS_MIN
    assert take_slot(slot.schedule, ORDER, (), now_ms=BEGAN_MS + PAUSE_MS_MIN).is_given


def test_only_so_many_occasions_count() -> None:
    """Each may cost a call; whoever makes them up without end gets no more."""
    known = None
    for number in range(OCCASIONS_MAX + 5):
        slot = take_slot(known, ORDER, (f"returned chk_{number}",), now_ms=BEGAN_MS + number * PAUSE_MS_MIN)
        known = ended(slot.schedule)

    assert known is not None
    assert len(known.occasions) == OCCASIONS_MAX


def test_signed_texts_leave_room_for_what_payrelay_sees_itself() -> None:
    """Texts of failed attempts cost nothing. With them alone a stranger took all occasions, and a paid plan expired."""
    texts = tuple(f"failed {amount} LKR" for amount in range(OCCASIONS_MAX))
    known = ended(take_slot(None, ORDER, texts, now_ms=BEGAN_MS).schedule)
    slot = take_slot(known, ORDER, ("ended chk_1",), now_ms=BEGAN_MS + 3 * PAUSE_MS_MIN)

    assert known.occasions == texts[:NOTIFIED_MAX]
    assert slot.is_given
    assert slot.schedule.occasions == (*known.occasions, "ended chk_1")


def test_one_slot_is_given_to_one() -> None:
    """Two processes that ask at once would both call; the second one gets it when the first one has died."""
    taken = take_slot(None, ORDER, (), now_ms=BEGAN_MS).schedule

    assert not take_slot(taken, ORDER, (), now_ms=BEGAN_MS + LEASE_MS - 1).is_given
    assert take_slot(taken, ORDER, (), now_ms=BEGAN_MS + LEASE_MS).is_given


def test_a_schedule_ends_a_day_after_its_last_search() -> None:
    """The next installment comes after a month, and is found at once; its occasions count anew."""
    known = SearchSchedule(
        merchant=ORDER[0],
        order_id=ORDER[1],
        searches=9,
        asked_at_ms=BEGAN_MS,
        next_at_ms=BEGAN_MS + 2 * SCHEDULE_MS,
        occasions=("succeeded 100000 LKR",),
    )
    slot = take_slot(known, ORDER, ("succeeded 100000 LKR",), now_ms=BEGAN_MS + SCHEDULE_MS)

    assert slot.is_given
    assert (slot.schedule.searches, slot.schedule.occasions) == (1, ("succeeded 100000 LKR",))


def test_who_gets_no_slot_asks_again_at_the_next_one() -> None:
    """In the past it would ask all the time; and while another one searches, it need not wait for his lease."""
    taken = take_slot(None, ORDER, (), now_ms=BEGAN_MS).schedule

    assert next_try_ms(taken, BEGAN_MS, is_given=True) == BEGAN_MS + PAUSES_MS[0]
    assert next_try_ms(taken, BEGAN_MS, is_given=False) == BEGAN_MS + IN_FLIGHT_MS
    assert next_try_ms(ended(taken), BEGAN_MS + 60_000, is_given=False) == BEGAN_MS + 60_000 + PAUSE_MS_MIN


TRIES = st.lists(
    st.tuples(st.integers(0, 120_000), st.none() | st.integers(0, 40).map("notified {}".format)), max_size=200
)


@given(tries=TRIES)
@settings(max_examples=examples(300))
def test_whatever_arrives_the_calls_of_an_order_are_bounded(tries: list[tuple[int, str | None]]) -> None:
    """Never two within the shortest pause, and in all no more than the slots of a schedule that begins so often."""
    found = searched_at(tries, until_ms=SCHEDULE_MS)

    assert all(after - before >= PAUSE_MS_MIN for before, after in pairwise(found))
    assert len(found) <= (OCCASIONS_MAX + 1) * (len(PAUSES_MS) + 3)


@given(tries=TRIES)
@settings(max_examples=examples(300))
def test_without_an_occasion_no_search_comes_before_its_slot(tries: list[tuple[int, str | None]]) -> None:
    """Posting more of the same brings nothing forward."""
    found = searched_at([(pause_ms, "succeeded 1 LKR") for pause_ms, _ in tries], until_ms=SCHEDULE_MS)

    for (before, after), least in zip(pairwise(found), PAUSES_MS, strict=False):
        assert after - before >= least


@given(tries=TRIES, is_dying=st.lists(st.booleans(), min_size=200, max_size=200))
@settings(max_examples=examples(300))
def test_nothing_waits_for_ever(tries: list[tuple[int, str | None]], is_dying: list[bool]) -> None:
    """Whoever gets no slot gets one when he is told to ask again, though processes die while they search."""
    known: SearchSchedule | None = None
    now_ms = BEGAN_MS
    for (pause_ms, occasion), dies in zip(tries, is_dying, strict=False):
        now_ms += pause_ms
        slot = take_slot(known, ORDER, () if occasion is None else (occasion,), now_ms=now_ms)
        known = slot.schedule if dies or not slot.is_given else ended(slot.schedule)
    began_ms, slot = now_ms, take_slot(known, ORDER, (), now_ms=now_ms)
    while not slot.is_given:
        after_ms = next_try_ms(slot.schedule, now_ms, is_given=False)
        assert after_ms > now_ms
        now_ms = after_ms
        slot = take_slot(slot.schedule, ORDER, (), now_ms=now_ms)

    assert now_ms - began_ms <= max(*PAUSES_MS, LEASE_MS + IN_FLIGHT_MS)
