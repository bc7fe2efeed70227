# ruff: noqa: S608 - what is put into the texts are the columns that are named here

"""What is known of subscriptions is merged in the store, and has one event, on each engine."""

import asyncio

import msgspec
import pytest
from tests.digests import digests_of
from tests.store.conftest import Tamper

from payrelay.core.subscriptions.subscription import Fact, SubscriptionState
from payrelay.runtime.ids import new_id
from payrelay.store.engine.database import Database, Row, Statement, Unit
from payrelay.store.engine.queries import query
from payrelay.store.statements.subscriptions import INSTALLMENTS
from payrelay.store.subscriptions import SubscriptionFilter, SubscriptionOwner, Subscriptions

OWNER = SubscriptionOwner(account="gateway", merchant="0123456789abcdef", principal="shop")
EVENTS = query("SELECT type FROM outbox ORDER BY seq")


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
    return Subscriptions(database, new_id, digests_of(database))


async def event_types(database: Database) -> list[str]:
    """Reads the types of the events."""
    return [str(row[0]) for row in await database.read(rows(Statement(EVENTS, ())))]


async def test_facts_are_merged_and_have_one_event(subscriptions: Subscriptions, database: Database) -> None:
    """A repeat must not count an installment twice, nor tell it twice."""
    for number in (2, 1, 2):
        await subscriptions.note(OWNER, [paid(number)], now_ms=5_000)

    summary = await subscriptions.summary(OWNER.merchant, "420075044317")
    assert summary is not None
    assert (summary.paid, summary.subscription.next_on) == (2, "2026-03-15")
    assert summary.last_paid is not None
    assert summary.last_paid.payment_id == "320025000002"
    assert (await event_types(database)).count("subscription.installment_paid") == 2


async def test_what_was_paid_after_all_is_paid(subscriptions: Subscriptions, database: Database) -> None:
    """The gateway tries a failed installment again, and may keep its number."""
    failed = paid(2, is_paid=False, paid=1)
    await subscriptions.note(OWNER, [paid(1), failed], now_ms=5_000)
    before = await subscriptions.summary(OWNER.merchant, "420075044317")
    assert before is not None
    assert before.last_failure is not None
    assert before.last_failure.payment_id == "320025000002"
    await subscriptions.note(OWNER, [paid(2), failed], now_ms=6_000)

    summary = await subscriptions.summary(OWNER.merchant, "420075044317")
    assert summary is not None
    assert (summary.paid, summary.last_failure) == (2, None)
    assert (await event_types(database)).count("subscription.installment_failed") == 1


async def test_many_at_once_lose_nothing(subscriptions: Subscriptions) -> None:
    """Two processes note different installments of the same subscription at the same moment."""
    await asyncio.gather(*(subscriptions.note(OWNER, [paid(number)], now_ms=5_000) for number in range(1, 5)))

    summary = await subscriptions.summary(OWNER.merchant, "420075044317")
    assert summary is not None
    assert summary.paid == 4


async def test_without_a_known_owner_there_is_no_event(subscriptions: Subscriptions, database: Database) -> None:
    """A subscription that was begun elsewhere has no principal or events here; its facts are stored all the same."""
    owner_of_subscription = msgspec.structs.replace(OWNER, principal=None)
    seen = Fact(subscription_id="7", at_ms=9, is_seen=True, state=SubscriptionState.STOPPED, amount_minor=5_000)
    await subscriptions.note(owner_of_subscription, [seen], now_ms=5_000)

    assert await event_types(database) == []
    summary = await subscriptions.summary(OWNER.merchant, "7")
    assert summary is not None
    assert (summary.subscription.state, summary.subscription.as_of_ms) == (SubscriptionState.STOPPED, 9)
    assert await subscriptions.summary(OWNER.merchant, "8") is None


async def test_installments_from_before_the_owner_was_known_get_their_events(
    subscriptions: Subscriptions, database: Database
) -> None:
    """Support read the subscription first; the shop must not miss a month for that, nor get two events for one."""
    owner_of_subscription = msgspec.structs.replace(OWNER, principal=None)
    failed = paid(3, is_paid=False)
    await subscriptions.note(owner_of_subscription, [paid(1), paid(2), failed], now_ms=5_000)
    assert await event_types(database) == []
    for _ in range(2):
        await subscriptions.note(OWNER, [paid(2), paid(4)], now_ms=6_000)

    names = await event_types(database)
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
    await subscriptions.note(OWNER, facts, now_ms=5_000)
    other = msgspec.structs.replace(OWNER, merchant="f" * 16)
    await subscriptions.note(other, facts[:1], now_ms=5_000)
    page = await subscriptions.list(OWNER.merchant, after="420000000001", limit=2)

    assert [each.subscription.subscription_id for each in page] == ["420000000002", "420000000003"]
    assert len(await subscriptions.list(other.merchant, after="", limit=9)) == 1


async def test_a_page_can_be_of_some_principals_alone(subscriptions: Subscriptions) -> None:
    """What nobody is known to have begun is on every page: who owns its order, if anybody, is asked for elsewhere."""
    for number, principal in enumerate(("shop", "kiosk", None), 1):
        owner = msgspec.structs.replace(OWNER, principal=principal)
        await subscriptions.note(owner, [paid(1, subscription_id=f"42007504431{number}")], now_ms=5_000)

    async def listed(principals: frozenset[str] | None) -> list[str]:
        page = await subscriptions.list(OWNER.merchant, after="", limit=9, principals=principals)
        return [each.subscription.subscription_id[-1] for each in page]

    assert await listed(frozenset({"shop"})) == ["1", "3"]
    assert await listed(frozenset({"shop", "kiosk"})) == ["1", "2", "3"]
    assert await listed(frozenset({"nobody"})) == ["3"]
    assert await listed(None) == ["1", "2", "3"]


@pytest.mark.parametrize(
    "change",
    [
        "seen_state = 'stopped', seen_at_ms = 9000",
        "told_state = 'completed'",
        "told_paid = 9",
        "told_next_on = '2030-01-01'",
        "amount_minor = 1",
        "currency = 'USD'",
        "principal = 'kiosk'",
        "version = version + 1",
    ],
)
async def test_a_state_that_somebody_wrote_is_told_to_nobody(
    subscriptions: Subscriptions, database: Database, tamper: Tamper, change: str
) -> None:
    """A shop would go on delivering under a plan that was stopped: such a row is as none, and ends no list.

    Reports that come later are no event either: it would carry on what was forged.
    """
    others = [msgspec.structs.replace(paid(7), subscription_id=id_, payment=None) for id_ in ("1", "9")]
    await subscriptions.note(OWNER, [paid(1), *others], now_ms=5_000)
    before = await event_types(database)
    await tamper(f"UPDATE subscriptions SET {change} WHERE subscription_id = '420075044317'")
    await subscriptions.note(OWNER, [paid(2)], now_ms=6_000)

    assert await subscriptions.summary(OWNER.merchant, "420075044317") is None
    assert await subscriptions.of_id("420075044317") == []
    lists = [
        await subscriptions.list(OWNER.merchant, after="", limit=2),
        await subscriptions.list(OWNER.merchant, after="", limit=2, principals=frozenset({"shop", "kiosk"})),
        await subscriptions.list_for_operator(SubscriptionFilter(), after=("", ""), limit=2),
    ]
    assert [[each.subscription.subscription_id for each in page] for page in lists] == [["1", "9"]] * 3
    assert await event_types(database) == before


async def test_an_installment_that_somebody_wrote_counts_for_nothing(
    subscriptions: Subscriptions, tamper: Tamper
) -> None:
    """A month that nobody paid is delivered otherwise, or one of another amount is booked."""
    await subscriptions.note(OWNER, [msgspec.structs.replace(paid(1), paid=None)], now_ms=5_000)
    for payment, is_paid in (("320025000008", 0), ("320025000009", 1)):
        await tamper(
            "INSERT INTO installments (merchant, subscription_id, payment, is_paid, amount_minor, at_ms)"
            f" SELECT merchant, subscription_id, '{payment}', {is_paid}, amount_minor, at_ms FROM installments"
            " WHERE payment = '320025000001'"
        )

    summary = await subscriptions.summary(OWNER.merchant, "420075044317")
    assert summary is not None
    assert summary.paid == 1
    assert summary.last_paid is not None
    assert (summary.last_paid.payment_id, summary.last_failure) == ("320025000001", None)
    assert not await subscriptions.is_paid(OWNER.merchant, "420075044317", "320025000009")
    assert await subscriptions.is_paid(OWNER.merchant, "420075044317", "320025000001")

    await tamper("UPDATE installments SET amount_minor = 1")
    summary = await subscriptions.summary(OWNER.merchant, "420075044317")
    assert summary is not None
    assert (summary.paid, summary.last_paid) == (0, None)


async def test_a_row_that_was_there_first_hides_an_installment(
    subscriptions: Subscriptions, database: Database, tamper: Tamper
) -> None:
    """Who writes to the database can do that, as he can remove rows. It shows nothing false, and the audit finds it."""
    await subscriptions.note(OWNER, [paid(1)], now_ms=5_000)
    await tamper(
        "INSERT INTO installments (merchant, subscription_id, payment, is_paid, amount_minor, at_ms)"
        " SELECT merchant, subscription_id, '320025000002', 1, amount_minor, at_ms FROM installments"
    )
    await subscriptions.note(OWNER, [paid(2)], now_ms=6_000)

    summary = await subscriptions.summary(OWNER.merchant, "420075044317")
    assert summary is not None
    assert summary.last_paid is not None
    assert (summary.paid, summary.last_paid.payment_id) == (2, "320025000001")
    wrong = [row async for row in digests_of(database).check(INSTALLMENTS) if not row.is_right]
    assert len(wrong) == 1
