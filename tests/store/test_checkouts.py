import asyncio
from datetime import date
from typing import Final

import msgspec
import pytest
from tests.digests import CHAIN_KEY, digests_of
from tests.samples import ASKED, PAYMENT
from tests.samples import CHECKOUT as PLAIN_CHECKOUT
from tests.store.conftest import Book

from payrelay.core.calls import Item
from payrelay.core.checkouts.checkout import (
    Checkout,
    CheckoutEvent,
    CheckoutKind,
    CheckoutState,
    Details,
    Result,
    advance,
)
from payrelay.core.checkouts.hosted_payment import Buyer, Plan, PostalAddress
from payrelay.core.payments.operation import Event
from payrelay.core.payments.payment import Payment
from payrelay.errors import Outdated, StoreUnusable
from payrelay.store.checkouts import Checkouts, CheckoutsOfCustomer
from payrelay.store.digests.lookups import Lookups
from payrelay.store.engine.database import Database, Row, Statement, Unit
from payrelay.store.engine.queries import query
from payrelay.store.engine.sealing import Seal
from payrelay.store.payments.resolution import ResolutionStore

LOOKUPS: Final = Lookups(CHAIN_KEY)
REFERENCE: Final = "CANARY-user"
CHECKOUT: Final = msgspec.structs.replace(
    PLAIN_CHECKOUT, key_hash=LOOKUPS.key("k-1"), reference_hash=LOOKUPS.reference(REFERENCE)
)
DETAILS: Final = Details(
    secret="CANARY-secret",
    asked=msgspec.structs.replace(
        ASKED,
        kind=CheckoutKind.RECURRING,
        person=Buyer(
            first_name="CANARY-first",
            last_name="CANARY-last",
            email="canary@example.com",
            phone="0771234567",
            home=PostalAddress(address="CANARY-street", city="Colombo", country="Sri Lanka"),
        ),
        delivery=PostalAddress(city="Kandy"),
        item_list=(Item(name="Tea", number="1", quantity=2, unit_amount_minor=50_000),),
        plan=Plan(recurrence="1 Month", duration="Forever", starts_on=date(2026, 12, 24), auto_cancel=False),
    ),
    return_to="myshop://paid",
)
EVENTS: Final = query("SELECT type, subject, data FROM outbox ORDER BY seq")
EVERYTHING: Final = query("SELECT * FROM checkouts")


@pytest.fixture
def checkouts(database: Database) -> Checkouts:
    """Gives what is under test."""
    return Checkouts(database, Seal((b"k" * 32,)), digests_of(database))


def other(number: int, **members: object) -> Checkout:
    """A checkout of its own order and key, but for what is named."""
    own = {
        "id": f"chk_{number:026d}",
        "order_id": f"A-{number}",
        "guard": f"A-{number}",
        "key_hash": LOOKUPS.key(f"k-{number}"),
    }
    return msgspec.structs.replace(CHECKOUT, **(own | members))


def after(checkout: Checkout, event: CheckoutEvent, *, at_ms: int = 2_000, result: Result | None = None) -> Checkout:
    """The checkout behind an event."""
    changed = advance(checkout, event, at_ms=at_ms, result=result)
    assert changed is not None
    return changed


def rows_of(statement: Statement) -> Unit[list[Row]]:
    """Reads rows."""
    return (yield statement)


async def event_types(database: Database) -> list[str]:
    """The types of the events that were written."""
    return [str(row[0]) for row in await database.read(rows_of(Statement(EVENTS, ())))]


async def test_a_checkout_is_read_back_whole(checkouts: Checkouts) -> None:
    """Whoever comes next finds it as it was asked for."""
    assert await checkouts.add(CHECKOUT, DETAILS)

    assert await checkouts.get(CHECKOUT.id) == CHECKOUT
    assert await checkouts.details_of(CHECKOUT.id) == DETAILS
    assert await checkouts.of_key("shop", "k-1") == CHECKOUT
    assert await checkouts.holder_of(CHECKOUT.merchant, "A-1") == CHECKOUT
    assert await checkouts.of_order(CHECKOUT.merchant, "A-1") == [CHECKOUT]


async def test_what_is_not_there_is_none(checkouts: Checkouts) -> None:
    """A made-up id."""
    assert await checkouts.get("chk_x") is None
    assert await checkouts.details_of("chk_x") is None
    assert await checkouts.of_key("shop", "k-1") is None
    assert await checkouts.of_order(CHECKOUT.merchant, "A-1") == []


async def test_nothing_of_a_customer_lies_in_clear(checkouts: Checkouts, database: Database) -> None:
    """A copy of the database must not tell who bought what, nor open anybody's page."""
    await checkouts.add(CHECKOUT, DETAILS)
    rows = await database.read(rows_of(Statement(EVERYTHING, ())))

    assert "canary" not in str([list(row) for row in rows]).lower()


async def test_what_is_sealed_is_bound_to_its_row(checkouts: Checkouts, database: Database) -> None:
    """Moved to another row it opens nothing."""
    await checkouts.add(CHECKOUT, DETAILS)
    await checkouts.add(other(2), DETAILS)
    swap = query("UPDATE checkouts SET sealed = (SELECT sealed FROM checkouts WHERE id = $1) WHERE id = $2")
    await database.write(rows_of(Statement(swap, (CHECKOUT.id, other(2).id))))

    with pytest.raises(StoreUnusable):
        await checkouts.details_of(other(2).id)


async def test_an_order_and_a_key_have_one(checkouts: Checkouts) -> None:
    """Of many that try at once, one is stored."""
    rows = [other(number, guard="A-1", order_id="A-1", key_hash=None) for number in range(1, 6)]

    assert sum(await asyncio.gather(*(checkouts.add(row, DETAILS) for row in rows))) == 1
    assert await checkouts.add(other(6, key_hash=CHECKOUT.key_hash), DETAILS)
    assert not await checkouts.add(other(7, key_hash=CHECKOUT.key_hash), DETAILS)
    assert await checkouts.add(other(8, key_hash=CHECKOUT.key_hash, principal="other"), DETAILS)
    assert await checkouts.add(other(9, guard="A-1", order_id="A-1", merchant="f" * 16), DETAILS)


async def test_a_change_and_its_event_are_one(checkouts: Checkouts, database: Database) -> None:
    """Neither is without the other, whatever happens in between."""
    await checkouts.add(CHECKOUT, DETAILS)
    completed = after(CHECKOUT, CheckoutEvent.COMPLETED, result=Result(payment_id="320025000001"))
    await checkouts.change(completed, has_event=True)

    assert await checkouts.get(CHECKOUT.id) == completed
    assert await event_types(database) == ["checkout.completed"]
    with pytest.raises(Outdated):
        await checkouts.change(after(CHECKOUT, CheckoutEvent.FAILED), has_event=True)
    assert await event_types(database) == ["checkout.completed"]


async def test_what_is_filled_in_has_no_second_event(checkouts: Checkouts, database: Database) -> None:
    """A receiver of the event that it is completed needs no second one."""
    await checkouts.add(CHECKOUT, DETAILS)
    await checkouts.change(after(CHECKOUT, CheckoutEvent.COMPLETED), has_event=False)

    assert await event_types(database) == []


async def test_an_order_is_free_again_when_its_checkout_came_to_nothing(checkouts: Checkouts) -> None:
    """A customer who turned back may try anew."""
    await checkouts.add(CHECKOUT, DETAILS)
    await checkouts.change(after(CHECKOUT, CheckoutEvent.ABANDONED), has_event=True)

    assert await checkouts.add(other(2, order_id="A-1", guard="A-1"), DETAILS)


async def test_a_late_completion_does_not_take_the_order_from_another(checkouts: Checkouts) -> None:
    """The first page was paid after all while a second one is open: both facts are stored."""
    await checkouts.add(CHECKOUT, DETAILS)
    cancelled = after(CHECKOUT, CheckoutEvent.ABANDONED)
    await checkouts.change(cancelled, has_event=True)
    second = other(2, order_id="A-1", guard="A-1")
    await checkouts.add(second, DETAILS)
    await checkouts.change(after(cancelled, CheckoutEvent.COMPLETED), has_event=True)

    first = await checkouts.get(CHECKOUT.id)
    assert first is not None
    assert (first.state, first.guard) == (CheckoutState.COMPLETED, None)
    assert [each.id for each in await checkouts.of_order(CHECKOUT.merchant, "A-1")] == [second.id, first.id]


async def test_the_first_opening_leaves_it_open_longer(checkouts: Checkouts) -> None:
    """The customer stands on the gateway's page when ours expires."""
    await checkouts.add(CHECKOUT, DETAILS)

    assert await checkouts.mark_opened(CHECKOUT.id, 5_000, left_open_ms=10_000)
    assert not await checkouts.mark_opened(CHECKOUT.id, 6_000, left_open_ms=10_000)
    opened = await checkouts.get(CHECKOUT.id)
    assert opened is not None
    assert (opened.opened_at_ms, opened.ends_at_ms) == (5_000, 71_000)


async def test_one_of_many_makes_the_inquiry(checkouts: Checkouts) -> None:
    """Each inquiry costs a permit in the gateway's budget."""
    await checkouts.add(CHECKOUT, DETAILS)
    looks = (checkouts.lease_inquiry(CHECKOUT.id, 4_000, next_ms=9_000) for _ in range(5))

    assert not await checkouts.lease_inquiry(CHECKOUT.id, 3_999, next_ms=9_000)
    assert sum(await asyncio.gather(*looks)) == 1
    assert await checkouts.lease_inquiry(CHECKOUT.id, 9_000, next_ms=12_000)


async def test_what_has_ended_is_given_to_one_and_for_a_while(checkouts: Checkouts) -> None:
    """Should he die, another one ends it."""
    for number in (1, 2, 3):
        await checkouts.add(other(number, ends_at_ms=60_000 + number), DETAILS)
    await checkouts.add(other(4, state=CheckoutState.FAILED, guard=None), DETAILS)

    assert await checkouts.lease_ending(60_000, leased_until_ms=90_000, limit=5) == []
    taken = await checkouts.lease_ending(70_000, leased_until_ms=90_000, limit=2)
    assert sorted(each.id for each in taken) == [other(1).id, other(2).id]
    assert [each.id for each in await checkouts.lease_ending(70_000, leased_until_ms=90_000, limit=5)] == [other(3).id]
    assert len(await checkouts.lease_ending(90_000, leased_until_ms=99_000, limit=5)) == 3


async def test_one_that_has_ended_is_leased_by_one_of_many(checkouts: Checkouts) -> None:
    """Whoever reloads a page that is over must not make the gateway be asked each time."""
    await checkouts.add(other(1, ends_at_ms=60_000), DETAILS)
    await checkouts.add(other(2, ends_at_ms=60_000, state=CheckoutState.FAILED, guard=None), DETAILS)
    takers = (checkouts.lease_overdue(other(1).id, 60_000, leased_until_ms=90_000) for _ in range(5))

    assert not await checkouts.lease_overdue(other(1).id, 59_999, leased_until_ms=90_000)
    assert sum(await asyncio.gather(*takers)) == 1
    assert await checkouts.lease_ending(60_000, leased_until_ms=90_000, limit=5) == []
    assert await checkouts.lease_overdue(other(1).id, 90_000, leased_until_ms=99_000)
    assert not await checkouts.lease_overdue(other(2).id, 60_000, leased_until_ms=90_000)


async def test_a_customers_data_is_forgotten_when_it_is_over(checkouts: Checkouts) -> None:
    """And the key is given back; the facts of the payment stay."""
    await checkouts.add(CHECKOUT, DETAILS)
    await checkouts.add(other(2), DETAILS)
    await checkouts.change(after(CHECKOUT, CheckoutEvent.COMPLETED, at_ms=2_000), has_event=True)

    assert await checkouts.forget(2_000) == 0
    assert await checkouts.forget(2_001) == 1
    assert await checkouts.details_of(CHECKOUT.id) is None
    assert await checkouts.of_key("shop", "k-1") is None
    assert await checkouts.details_of(other(2).id) == DETAILS
    assert await checkouts.get(CHECKOUT.id) is not None


async def test_a_customers_data_is_forgotten_on_request(checkouts: Checkouts) -> None:
    """Of one order, once it has its outcome: the details, whose it was, and the key, which may have a name in it."""
    await checkouts.add(CHECKOUT, DETAILS)
    await checkouts.add(other(2), DETAILS)
    assert await checkouts.forget_order(CHECKOUT.merchant, "shop", "A-1") == 0
    await checkouts.change(after(CHECKOUT, CheckoutEvent.COMPLETED, at_ms=2_000), has_event=True)

    assert await checkouts.forget_order("another", "shop", "A-1") == 0
    assert await checkouts.forget_order(CHECKOUT.merchant, "another", "A-1") == 0
    assert await checkouts.forget_order(CHECKOUT.merchant, "shop", "A-1") == 1
    left = await checkouts.get(CHECKOUT.id)
    assert left is not None
    assert (left.reference_hash, left.key_hash, left.order_id) == (None, None, "A-1")
    assert await checkouts.details_of(CHECKOUT.id) is None
    assert await checkouts.details_of(other(2).id) == DETAILS


async def test_a_change_that_was_decided_before_the_customer_was_forgotten_is_void(checkouts: Checkouts) -> None:
    """It would give the row the digest of one that still names the customer, and the checkout would count no more."""
    await checkouts.add(CHECKOUT, DETAILS)
    failed = after(CHECKOUT, CheckoutEvent.FAILED, at_ms=2_000)
    await checkouts.change(failed, has_event=True)
    assert await checkouts.forget_order(CHECKOUT.merchant, "shop", "A-1") == 1

    with pytest.raises(Outdated):
        await checkouts.change(after(failed, CheckoutEvent.COMPLETED, at_ms=3_000), has_event=True)
    left = await checkouts.get(CHECKOUT.id)
    assert left is not None
    await checkouts.change(after(left, CheckoutEvent.COMPLETED, at_ms=3_000), has_event=True)
    assert await checkouts.get(CHECKOUT.id) is not None


def paid(payment_id: str) -> Payment:
    """A payment of the order."""
    return msgspec.structs.replace(PAYMENT, payment_id=payment_id)


async def test_a_payment_with_an_owner_is_not_claimed(checkouts: Checkouts, book: Book) -> None:
    """One payment completes one checkout, and none that a charge of the same order made."""
    await checkouts.add(CHECKOUT, DETAILS)
    second = other(2, order_id="A-1", guard=None, payment_id="320025000002", state=CheckoutState.COMPLETED)
    await checkouts.add(second, DETAILS)
    charge = book.new(1, order_id="A-9", payment_id="320025000003")
    await book.accept(charge)
    payments = (paid("320025000001"), paid("320025000002"), paid("320025000003"))

    assert await checkouts.unowned(CHECKOUT, payments) == (paid("320025000001"),)


@pytest.mark.parametrize(
    ("members", "is_owned"),
    [
        ({"kind": CheckoutKind.PAYMENT, "order_id": "B-1"}, True),
        ({"kind": CheckoutKind.PREAPPROVAL, "order_id": "B-1"}, True),
        ({"kind": CheckoutKind.PREAPPROVAL, "order_id": "B-1", "amount_minor": None}, False),
        ({"kind": CheckoutKind.AUTHORIZATION, "order_id": "B-1"}, False),
        ({"kind": CheckoutKind.AUTHORIZATION, "order_id": "A-1"}, True),
    ],
)
async def test_a_payment_that_nothing_shows_claims_none_of_another_order(
    checkouts: Checkouts, book: Book, database: Database, members: dict[str, object], *, is_owned: bool
) -> None:
    """The number of an authorization's payment is unsigned: the lost charge that made it would be called failed."""
    done = {"guard": None, "payment_id": "320025000001", "state": CheckoutState.COMPLETED}
    await checkouts.add(CHECKOUT, DETAILS)
    await checkouts.add(other(2, **done, **members), DETAILS)
    charge = book.new(1)

    expected = () if is_owned else (paid("320025000001"),)
    assert await checkouts.unowned(CHECKOUT, (paid("320025000001"),)) == expected
    await book.accept(charge)
    owned = await ResolutionStore(database, digests_of(database)).owned_by_others(charge, ("320025000001",))
    assert owned == ({"320025000001"} if is_owned else set())


async def test_where_a_charge_of_the_order_is_open_no_payment_is_claimed(checkouts: Checkouts, book: Book) -> None:
    """The payment that is seen may be that charge's."""
    await checkouts.add(CHECKOUT, DETAILS)
    charge = book.new(1)
    await book.accept(charge)
    await book.advance(charge, Event.UNKNOWN)

    assert await checkouts.unowned(CHECKOUT, (paid("320025000001"),)) == ()


@pytest.mark.parametrize(
    ("members", "is_competing"),
    [
        ({"kind": CheckoutKind.PAYMENT, "state": CheckoutState.OPEN}, True),
        ({"kind": CheckoutKind.PAYMENT, "state": CheckoutState.CANCELLED}, False),
        ({"kind": CheckoutKind.RECURRING, "state": CheckoutState.FAILED}, True),
        ({"kind": CheckoutKind.RECURRING, "state": CheckoutState.COMPLETED, "payment_id": "320025000009"}, True),
        ({"kind": CheckoutKind.AUTHORIZATION, "state": CheckoutState.EXPIRED}, True),
        ({"kind": CheckoutKind.PREAPPROVAL, "state": CheckoutState.COMPLETED, "payment_id": "320025000009"}, False),
        ({"kind": CheckoutKind.PREAPPROVAL, "state": CheckoutState.CANCELLED, "amount_minor": None}, False),
        ({"kind": CheckoutKind.RECURRING, "state": CheckoutState.FAILED, "order_id": "B-1"}, False),
    ],
)
async def test_what_another_checkout_may_own_is_not_given_away(
    checkouts: Checkouts, members: dict[str, object], *, is_competing: bool
) -> None:
    """A customer was refused, tried another card, and paid for the plan after all: that pays for no second page."""
    await checkouts.add(msgspec.structs.replace(CHECKOUT, guard=None), DETAILS)
    await checkouts.add(other(2, **{"guard": None, "order_id": "A-1", **members}), DETAILS)

    expected = () if is_competing else (paid("320025000001"),)
    assert await checkouts.unowned(CHECKOUT, (paid("320025000001"),)) == expected


async def test_a_payment_is_claimed_by_one_checkout_alone(checkouts: Checkouts) -> None:
    """Two flows may have found it free at one moment; the one that writes second finds it owned, and stops."""
    await checkouts.add(CHECKOUT, DETAILS)
    cancelled = after(CHECKOUT, CheckoutEvent.ABANDONED)
    await checkouts.change(cancelled, has_event=True)
    second = msgspec.structs.replace(CHECKOUT, id="chk_0002", key_hash=LOOKUPS.key("k-2"))
    assert await checkouts.add(second, DETAILS)
    paid_by_page = Result(payment_id="320025000001")
    await checkouts.change(after(second, CheckoutEvent.COMPLETED, result=paid_by_page), has_event=True, is_paid=True)

    late = after(cancelled, CheckoutEvent.COMPLETED, result=paid_by_page)
    with pytest.raises(Outdated, match="belongs to another"):
        await checkouts.change(late, has_event=True, is_paid=True)
    assert await checkouts.get(CHECKOUT.id) == cancelled


async def test_a_charge_is_not_proved_by_a_checkouts_payment(
    checkouts: Checkouts, book: Book, database: Database
) -> None:
    """Both are of one order and amount; what the customer paid on the page is not what the lost charge took.

    Whether our page was shown says nothing: the signed form may have been posted by whoever asked for it.
    """
    charge = book.new(1)
    await book.accept(charge)
    resolution = ResolutionStore(database, digests_of(database))
    assert not await resolution.has_competing(charge, failed_since_ms=0)
    await checkouts.add(CHECKOUT, DETAILS)
    assert await resolution.has_competing(charge, failed_since_ms=0)

    paid_by_page = Result(payment_id="320025000001")
    await checkouts.change(after(CHECKOUT, CheckoutEvent.COMPLETED, result=paid_by_page), has_event=True)
    assert not await resolution.has_competing(charge, failed_since_ms=0)  # what its form may pay, signed texts tell
    assert await resolution.owned_by_others(charge, ("320025000001", "320025000002")) == {"320025000001"}


@pytest.mark.parametrize("kind", [CheckoutKind.PAYMENT, CheckoutKind.RECURRING])
async def test_a_charge_is_not_proved_by_an_installment(
    checkouts: Checkouts, book: Book, database: Database, kind: CheckoutKind
) -> None:
    """Installments have the order's id for years, and somebody may have subscribed twice: they look like the charge."""
    charge = book.new(1)
    await book.accept(charge)
    asked = msgspec.structs.replace(CHECKOUT, kind=kind)
    await checkouts.add(asked, DETAILS)
    begun = Result(subscription_id="420075000001", payment_id="320025000001")
    await checkouts.change(after(asked, CheckoutEvent.COMPLETED, result=begun), has_event=True)

    assert await ResolutionStore(database, digests_of(database)).has_competing(charge, failed_since_ms=0) is (
        kind is CheckoutKind.RECURRING
    )


async def test_a_customer_is_found_by_everything_that_names_it(checkouts: Checkouts) -> None:
    """A customer to be forgotten must be found: by its id, by an app's checkouts, and by the client's own reference."""
    named: list[dict[str, str | None]] = [
        {"customer_id": "cus_1"},
        {"bound_customer_id": "cus_1"},
        {"reference_hash": LOOKUPS.reference("person-7")},
        {"reference_hash": LOOKUPS.reference("person-7"), "principal": "other"},
        {"reference_hash": LOOKUPS.reference("person-7"), "merchant": "f" * 16},
        {"customer_id": "cus_2"},
    ]
    for number, members in enumerate(named):
        own = {"id": f"chk_{number}", "order_id": f"A-{number}", "guard": None, "key_hash": None}
        checkout = msgspec.structs.replace(CHECKOUT, **own, **{"reference_hash": None, **members})
        assert await checkouts.add(checkout, DETAILS)
    customer = CheckoutsOfCustomer(
        customer_id="cus_1", merchant=CHECKOUT.merchant, principal="shop", reference="person-7"
    )
    found = [each.id for each in await checkouts.of_customer(customer, after="", limit=2)]
    found += [each.id for each in await checkouts.of_customer(customer, after=found[-1], limit=2)]
    unnamed = msgspec.structs.replace(customer, reference=None)

    assert found == ["chk_0", "chk_1", "chk_2"]
    assert [each.id for each in await checkouts.of_customer(unnamed, after="", limit=9)] == ["chk_0", "chk_1"]
    assert "person-7" not in repr(customer)
