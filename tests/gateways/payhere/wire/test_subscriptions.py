"""The gateway's records of subscriptions tell how one stands, as far as they are whole."""

import msgspec
import pytest

from payrelay.core.subscriptions.subscription import SubscriptionState
from payrelay.gateways.payhere.wire.subscriptions import STATES, facts_in, plans_without, records_of

RECORD = {
    "subscription_id": 420075032251,
    "order_id": "Order0003",
    "date": "2018-10-04 20:24:52",
    "description": "Book reading Subscription",
    "recurring": "Charged every month for 3 years",
    "status": "ACTIVE",
    "amount": 100,
    "currency": "LKR",
}


def encoded(*records: object) -> bytes:
    """Writes a list of records."""
    return msgspec.json.encode(records)


def test_a_record_is_read_alone_and_in_a_list() -> None:
    """One subscription comes as an object, all of them as a list."""
    (alone,) = facts_in(msgspec.json.encode(RECORD), "Asia/Colombo", seen_at_ms=7)
    first, second = facts_in(
        encoded(RECORD, RECORD | {"subscription_id": 1, "status": "Canceled"}), "Asia/Colombo", seen_at_ms=7
    )

    assert alone == first
    assert (alone.subscription_id, alone.order_id, alone.amount_minor) == ("420075032251", "Order0003", 10_000)
    assert (alone.state, alone.is_seen, alone.at_ms) == (SubscriptionState.ACTIVE, True, 7)
    assert second.state is SubscriptionState.STOPPED


@pytest.mark.parametrize(
    ("given", "began_at_ms"),
    [("2018-10-04 20:24:52", 1_538_664_892_000), ("soon", None), (None, None), (7, None)],
)
def test_its_date_is_read_in_the_gateways_zone(given: object, began_at_ms: int | None) -> None:
    """It tells the plan of today's order from an old one; a date that can't be read takes nothing from the rest."""
    (fact,) = facts_in(encoded(RECORD | {"date": given}), "Asia/Colombo", seen_at_ms=7)

    assert (fact.began_at_ms, fact.state) == (began_at_ms, SubscriptionState.ACTIVE)


@pytest.mark.parametrize("given", [7, None, ["monthly"], "whenever"])
def test_a_recurrence_that_can_not_be_read_takes_nothing_from_the_rest(given: object) -> None:
    """It is prose, and nothing documents it: a plan must not be lost from sight for the words of its schedule."""
    (fact,) = facts_in(encoded(RECORD | {"recurring": given}), "Asia/Colombo", seen_at_ms=7)
    (known,) = facts_in(encoded(RECORD), "Asia/Colombo", seen_at_ms=7)

    assert fact.schedule != known.schedule
    assert (fact.subscription_id, fact.state) == ("420075032251", SubscriptionState.ACTIVE)


def test_a_word_that_nobody_knows_is_no_state() -> None:
    """What the gateway may invent must not be shown as something else."""
    (fact,) = facts_in(encoded(RECORD | {"status": "SLEEPING"}), "Asia/Colombo", seen_at_ms=7)

    assert fact.state is None


@pytest.mark.parametrize("raw", [b"", b"null", b"[", b"[1]", b"{}", b'"text"', b"\xff", b'[{"subscription_id": "x"}]'])
def test_what_is_not_whole_tells_nothing(raw: bytes) -> None:
    """A reader has got its answer by then; it must not fail for what is noted beside it."""
    assert facts_in(raw, "Asia/Colombo", seen_at_ms=7) == ()


def test_one_bad_record_keeps_no_other_from_being_read() -> None:
    """A list of hundreds is not lost for one of them."""
    assert len(facts_in(encoded(RECORD, {"subscription_id": []}, RECORD), "Asia/Colombo", seen_at_ms=7)) == 2


def test_the_records_of_one_order_are_taken_out_of_a_list() -> None:
    """A merchant has thousands, each of which would be read whole for one; what can't be read names no order."""
    mine, other = RECORD | {"order_id": "Tea/é"}, RECORD | {"order_id": 7}

    assert records_of("Tea/é", encoded(other, mine, {}, mine)) == encoded(mine, mine)
    assert records_of("7", encoded(other)) == b"[]"


@pytest.mark.parametrize(
    "raw", [b"", b"null", b"[1]", b'{"order_id": "A-1"}', b'[{"order_id": "A-1"', b"\xff", b"[" * 9_999]
)
def test_what_is_no_list_of_records_names_no_order(raw: bytes) -> None:
    """The gateway may send anything."""
    assert records_of("A-1", raw) == b"[]"


def test_some_records_are_left_out_of_a_list_and_the_others_stay_as_they_came() -> None:
    """Another principal's plans are removed by their numbers; what can't be read may be theirs."""
    mine = b'{"subscription_id": 7,  "order_id":"A-7", "amount":1.50}'
    theirs = RECORD | {"subscription_id": 8}
    unreadable = ({"order_id": "A-7"}, {"subscription_id": 7})
    others = b",".join(msgspec.json.encode(each) for each in (theirs, *unreadable))
    left = plans_without(b"[" + mine + b"," + others + b", 1]", frozenset({"8"}))

    assert left == b"[" + mine + b"]"
    assert plans_without(encoded(theirs), frozenset({"8"})) == b"[]"
    assert plans_without(b"nothing", frozenset()) == b"[]"


def test_the_gateways_words_are_known() -> None:
    """The one for a cancelled subscription isn't documented: both spellings count."""
    assert STATES["CANCELLED"] is STATES["CANCELED"] is SubscriptionState.STOPPED
