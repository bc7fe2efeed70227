from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from payrelay.core.gateways.fair_shares import (
    OF_ONE_APP,
    OURS,
    RESERVED_OF,
    BudgetShare,
    Choice,
    Consumer,
    Requester,
    Usage,
    choose,
)

CALLS = 20
SHOP = Consumer("shop", BudgetShare.KEYS)
DESK = Consumer("desk", BudgetShare.KEYS)
PHONE = Consumer("shop", BudgetShare.READS, "phone")
TOKEN = Consumer("", BudgetShare.TOKEN)

consumers = st.builds(
    Consumer,
    st.sampled_from(["", "shop", "desk", "web"]),
    st.sampled_from(BudgetShare),
    st.sampled_from(["", "a", "b"]),
)


def counted(choice: Choice) -> dict[Consumer, int]:
    """Counts what each consumer was given."""
    return dict(Counter(choice.given))


def usages_of(*slots: tuple[Consumer, str]) -> list[Usage]:
    """Makes the usages of permits that are each in use, recent, or neither."""
    states, found = Counter(slots), {consumer for consumer, _ in slots}
    return [Usage(each, states[each, "in_use"], states[each, "recent"]) for each in found]


@given(
    slots=st.lists(st.tuples(consumers, st.sampled_from(["in_use", "recent", "free"])), max_size=CALLS),
    wanted=st.lists(consumers, max_size=40),
)
def test_what_is_given_is_free_and_wanted_and_what_is_left_was_refused(
    slots: list[tuple[Consumer, str]], wanted: list[Consumer]
) -> None:
    """Never more than is free, whatever the rows say. Who gets nothing is named, so that nobody asks in vain again."""
    usages = usages_of(*slots)
    choice = choose(wanted, usages, calls=CALLS)
    assert len(choice.given) <= CALLS - sum(each.in_use for each in usages)
    left = Counter(wanted) - Counter(choice.given)
    assert Counter(choice.given) <= Counter(wanted)
    assert all({each, each.whole_part} & choice.refused for each in left)


@given(in_use=st.lists(consumers, max_size=CALLS), waiting=st.sets(consumers, min_size=1))
def test_where_all_wait_all_but_the_reserve_is_given(in_use: list[Consumer], waiting: set[Consumer]) -> None:
    """What is kept is kept for somebody who takes it: no state of the rows wedges the queue."""
    used = [Usage(each.whole_part, count, 0) for each, count in Counter(in_use).items()]
    wanted = [each.whole_part for each in [*waiting, *in_use] for _ in range(CALLS)]
    free_beyond = CALLS - len(in_use) - CALLS // RESERVED_OF
    assert len(choose(wanted, used, calls=CALLS).given) >= min(1, free_beyond)


def test_one_alone_uses_all_but_the_reserve() -> None:
    """A shop that is alone has the budget. The reserve stays for who comes next."""
    assert counted(choose([SHOP] * 30, [], calls=CALLS)) == {SHOP: CALLS - CALLS // RESERVED_OF}
    assert counted(choose([SHOP] * 30, [], calls=9)) == {SHOP: 9}


def test_who_asks_seldom_gets_the_reserve() -> None:
    """One call of a principal that made none finds a permit, though another one has used all it could."""
    used = [Usage(SHOP, 18, 0)]
    assert choose([SHOP, DESK, DESK, DESK], used, calls=CALLS) == Choice((DESK, DESK), frozenset({SHOP, DESK}))


def test_two_who_want_all_get_halves() -> None:
    """Whoever comes first, and whatever the two ask for."""
    assert counted(choose([SHOP] * 20 + [DESK] * 20, [], calls=CALLS)) == {SHOP: 9, DESK: 9}


def test_what_another_used_lately_is_kept_for_it_up_to_its_share() -> None:
    """Twice as much, so that it may come to its share; what it doesn't need goes to others."""
    assert counted(choose([SHOP] * 20, [Usage(DESK, 1, 1)], calls=CALLS)) == {SHOP: 18 - 4}
    assert counted(choose([SHOP] * 20, [Usage(DESK, 0, 15)], calls=CALLS)) == {SHOP: 9}


def test_a_newcomer_takes_nothing_from_who_stays_within_its_share() -> None:
    """While a third one is over its share, the newcomer waits for that one's permits, not for those of the second."""
    web = Consumer("web", BudgetShare.KEYS)
    used = [Usage(SHOP, 9, 0), Usage(DESK, 2, 4)]
    assert counted(choose([web] * 9 + [DESK] * 4, used, calls=CALLS)) == {web: 3, DESK: 4}


def test_more_principals_than_permits_take_turns() -> None:
    """There is no share to be kept then, and nothing stays unused."""
    many = [Consumer(str(number), BudgetShare.KEYS) for number in range(30)]
    assert choose(many, [], calls=5).given == tuple(many[:5])


def test_the_reads_of_apps_leave_room_for_the_charges_of_their_shop() -> None:
    """However many apps there are: together they have less than their shop's keys where both want all."""
    phones = [PHONE._replace(app=str(number)) for number in range(30)]
    assert counted(choose([*phones, *[SHOP] * 30], [], calls=CALLS))[SHOP] == 12


def test_one_app_uses_a_fifth() -> None:
    """Also where nobody else is there, at once: a customer has one order."""
    other = PHONE._replace(app="other")
    choice = choose([PHONE] * 30 + [other], [], calls=CALLS)
    assert counted(choice) == {PHONE: CALLS // OF_ONE_APP, other: 1}
    assert choice.refused == {PHONE}
    assert counted(choose([PHONE], [], calls=1)) == {PHONE: 1}


def test_a_part_that_has_enough_refuses_all_its_apps() -> None:
    """So nobody looks the budget up again for each of a thousand phones."""
    phones = [PHONE._replace(app=str(number)) for number in range(30)]
    assert choose(phones, [Usage(DESK, 3, 0), Usage(SHOP, 9, 0)], calls=CALLS).refused == {PHONE.whole_part}


@pytest.mark.parametrize("others", [1, 2, 6])
def test_payrelays_own_inquiries_have_a_quarter_beside_any_number_of_principals(others: int) -> None:
    """Lost replies are to be resolved however many shops there are; after an outage the shops go on all the same."""
    shops = [Consumer(str(number), BudgetShare.KEYS) for number in range(others)]
    used = [Usage(shop, 0, 20 // others) for shop in shops]
    given = counted(choose([OURS] * 20 + shops * 20, used, calls=CALLS))
    assert 4 <= given[OURS] <= 6
    assert sum(given.values()) == 18


def test_payrelays_own_inquiries_use_what_nobody_else_needs() -> None:
    """At night they have the budget but for the reserve."""
    assert counted(choose([OURS] * 20, [], calls=CALLS)) == {OURS: 18}


def test_an_access_token_takes_any_free_permit() -> None:
    """Everybody waits for it."""
    assert choose([TOKEN], [Usage(SHOP, 19, 0)], calls=CALLS).given == (TOKEN,)
    assert choose([TOKEN], [Usage(SHOP, 20, 0)], calls=CALLS).given == ()


def test_nothing_is_kept_for_the_next_access_token_or_taken_from_a_share_for_the_last() -> None:
    """One is used for minutes, so a permit that was kept for the next would stay unused."""
    assert counted(choose([SHOP] * 9, [Usage(TOKEN, 1, 1)], calls=5)) == {SHOP: 4}
    assert counted(choose([OURS] * 20, [Usage(TOKEN, 1, 1)], calls=CALLS)) == {OURS: 17}
    assert counted(choose([OURS], [Usage(TOKEN, 1, 0), Usage(SHOP, 15, 0)], calls=CALLS)) == {OURS: 1}


@pytest.mark.parametrize(
    "consumer", [OURS, SHOP, PHONE, TOKEN, Consumer("a shop with spaces", BudgetShare.EFFECTS, "x")]
)
def test_a_consumer_is_read_as_it_was_written(consumer: Consumer) -> None:
    """Its text stands in the permit's row."""
    assert Consumer.parse(consumer.text) == consumer


@pytest.mark.parametrize("text", [None, "", "whatever  shop", b"keys  shop", 7])
def test_a_text_that_names_nobody_is_payrelays_own(text: object) -> None:
    """A permit that nobody has taken yet, or that a later version took, is in somebody's share all the same."""
    assert Consumer.parse(text) == OURS


def test_a_row_names_no_customer() -> None:
    """What lies there in clear says nothing about a person."""
    assert "nimal" not in Requester.of_app("shop", "reference/nimal").app
