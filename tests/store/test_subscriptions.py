"""What is known of subscriptions is joined in the store, and told once, on each engine."""

import asyncio

import msgspec
import pytest

from payrelay.core.subscriptions.subscription import Fact, SubscriptionState
from payrelay.runtime.ids import new_id
from payrelay.store.engine.database import Database, Row, Statement, Unit
from payrelay.store.engine.queries import query
from payrelay.store.subscriptions import SubscriptionOwner, Subscriptions

WHOSE = SubscriptionOwner(account="gateway", merchant="0123456789abcdef", principal="shop")
EVENTS = query("events", "SELECT type FROM outbox ORDER BY seq")


def paid(number: int, **members: object) -> Fact:
    """Gives the fact that an installment was paid."""
    fact = Fact(
        subscription_id="420075044317",
        at_ms=1_000 + number,
        is_seen=False,
        order_id="A-1",
        currency="LKR",
        state=SubscriptionState.ACTIVE,
        paid=number,
        next_on=f"2026-{number + 1:02}-15",
        payment=f"32002500000{number}",
        is_paid=True,
        payment_minor=100_000,
        payment_at_ms=1_000 + number,
    )
    return msgspec.structs.replace(fact, **members)


def rows(statement: Statement) -> Unit[list[Row]]:
    """Reads rows."""
    return (yield statement)


@pytest.fixture
def subscriptions(database: Database) -> Subscriptions:
    """Gives what keeps them, in an empty database."""
    return Subscriptions(database, new_id)


async def told(database: Database) -> list[str]:
    """Reads the types of the events."""
    return [str(row[0]) for row in await database.read(rows(Statement(EVENTS, ())))]


async def test_facts_are_joined_and_told_once(subscriptions: Subscriptions, database: Database) -> None:
    """A repeat must not count an installment twice, nor tell it twice."""
    for number in (2, 1, 2):
        await subscriptions.note(WHOSE, [paid(number)], now_ms=5_000)

    standing = await subscriptions.summary(WHOSE.merchant, "420075044317")
    assert standing is not None
    assert (standing.paid, standing.subscription.next_on) == (2, "2026-03-15")
    assert standing.last_paid is not None
    assert standing.last_paid.payment_id == "320025000002"
    assert (await told(database)).count("subscription.installment_paid") == 2


async def test_what_was_paid_after_all_is_paid(subscriptions: Subscriptions, database: Database) -> None:
    """The gateway tries a failed installment again, and may keep its number."""
    failed = paid(2, is_paid=False, paid=1)
    await subscriptions.note(WHOSE, [paid(1), failed], now_ms=5_000)
    before = await subscriptions.summary(WHOSE.merchant, "420075044317")
    assert before is not None
    assert before.last_failure is not None
    assert before.last_failure.payment_id == "320025000002"
    await subscriptions.note(WHOSE, [paid(2), failed], now_ms=6_000)

    standing = await subscriptions.summary(WHOSE.merchant, "420075044317")
    assert standing is not None
    assert (standing.paid, standing.last_failure) == (2, None)
    assert (await told(database)).count("subscription.installment_failed") == 1


async def test_many_at_once_lose_nothing(subscriptions: Subscriptions) -> None:
    """Two processes note different installments of the same subscription at the same moment."""
    await asyncio.gather(*(subscriptions.note(WHOSE, [paid(number)], now_ms=5_000) for number in range(1, 5)))

    standing = await subscriptions.summary(WHOSE.merchant, "420075044317")
    assert standing is not None
    assert standing.paid == 4


async def test_of_whose_it_is_not_known_nothing_is_told(subscriptions: Subscriptions, database: Database) -> None:
    """A subscription that was begun elsewhere has nobody here who is told of it; it is known all the same."""
    owner_of_subscription = msgspec.structs.replace(WHOSE, principal=None)
    seen = Fact(subscription_id="7", at_ms=9, is_seen=True, state=SubscriptionState.STOPPED, amount_minor=5_000)
    await subscriptions.note(owner_of_subscription, [seen], now_ms=5_000)

    assert await told(database) == []
    standing = await subscriptions.summary(WHOSE.merchant, "7")
    assert standing is not None
    assert (standing.subscription.state, standing.subscription.as_of_ms) == (SubscriptionState.STOPPED, 9)
    assert await subscriptions.summary(WHOSE.merchant, "8") is None


async def test_what_was_noted_before_it_was_known_whose_it_is_is_told_then(
    subscriptions: Subscriptions, database: Database
) -> None:
    """Support read the subscription first; the shop must not miss a month for that, nor be told of one twice."""
    owner_of_subscription = msgspec.structs.replace(WHOSE, principal=None)
    failed = paid(3, is_paid=False)
    await subscriptions.note(owner_of_subscription, [paid(1), paid(2), failed], now_ms=5_000)
    assert await told(database) == []
    for _ in range(2):
        await subscriptions.note(WHOSE, [paid(2), paid(4)], now_ms=6_000)

    names = await told(database)
    assert names == [
        "subscription.installment_paid",
        "subscription.installment_paid",
        "subscription.installment_failed",
        "subscription.updated",
        "subscription.installment_paid",
        "subscription.updated",
    ]


async def test_pages_go_on_behind_the_last_one(subscriptions: Subscriptions) -> None:
    """A list of thousands is read piece by piece, and each merchant's apart."""
    facts = [paid(1, subscription_id=f"42000000000{number}") for number in range(5)]
    await subscriptions.note(WHOSE, facts, now_ms=5_000)
    other = msgspec.structs.replace(WHOSE, merchant="f" * 16)
    await subscriptions.note(other, facts[:1], now_ms=5_000)
    page = await subscriptions.list(WHOSE.merchant, after="420000000001", limit=2)

    assert [each.subscription.subscription_id for each in page] == ["420000000002", "420000000003"]
    assert len(await subscriptions.list(other.merchant, after="", limit=9)) == 1
