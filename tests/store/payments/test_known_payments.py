import itertools
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Final

import msgspec
import pytest
from tests import samples
from tests.digests import digests_of
from tests.store.conftest import Book, Tamper
from tests.store.test_checkouts import DETAILS

from payrelay.core.checkouts.checkout import CheckoutState
from payrelay.core.checkouts.hosted_payment import CheckoutKind
from payrelay.core.orders.balance import balance_of
from payrelay.core.orders.figures import Figure
from payrelay.core.payments.imported import ImportVerdict
from payrelay.core.payments.operation import Event, Kind, Operation, State
from payrelay.core.payments.payment import PaymentStatus
from payrelay.core.subscriptions.subscription import Fact
from payrelay.runtime.ids import new_id
from payrelay.store.checkouts import Checkouts
from payrelay.store.engine.database import Database
from payrelay.store.engine.sealing import Seal
from payrelay.store.gateways.readings import ReadingStore
from payrelay.store.imports.payments import ImportedPayments
from payrelay.store.orders.facts import Orders
from payrelay.store.payments.known_payments import KnownPayments, PaymentFilter
from payrelay.store.subscriptions import SubscriptionOwner, Subscriptions

MERCHANT: Final = "0123456789abcdef"
SEEN: Final = msgspec.structs.replace(samples.PAYMENT, payment_id="320", order_id="A-1", amount_minor=100_000)


@pytest.fixture
def payments(database: Database) -> KnownPayments:
    """Gives what is under test."""
    return KnownPayments(database, digests_of(database))


async def lost(book: Book, number: int, **members: object) -> Operation:
    """Stores an operation whose outcome was lost."""
    operation = book.new(number, **members)
    await book.accept(operation)
    return await book.advance(operation, Event.UNKNOWN)


async def test_a_payment_is_known_once_its_charge_succeeded(book: Book, payments: KnownPayments) -> None:
    """A charge whose outcome is open proves nothing about its payment."""
    row = await lost(book, 1, payment_id="320")
    assert await payments.get(MERCHANT, "320") is None
    await book.advance(row, Event.PROVED)
    assert await payments.get(MERCHANT, "320") == ("A-1", "LKR", PaymentStatus.RECEIVED)
    assert await payments.get("another", "320") is None


async def test_an_installment_is_known_by_its_subscription(database: Database, payments: KnownPayments) -> None:
    """Whether it was received is told by a read alone: nothing here has asked for it."""
    await _note_installment(database, "321")
    assert await payments.get(MERCHANT, "321") == ("PLAN-1", "LKR", None)


async def test_a_list_has_each_payment_once_and_the_newest_first(
    database: Database, book: Book, payments: KnownPayments
) -> None:
    """What the gateway showed, and what operations and subscriptions name, are one list."""
    await ReadingStore(database, Seal((b"k" * 32,)), digests_of(database)).note_payments(MERCHANT, [SEEN], 5_000, 5_000)
    charge = await lost(book, 1, payment_id="320")
    await book.advance(charge, Event.PROVED)
    refund = await lost(book, 2, kind=Kind.REFUND, payment_id="320", order_id="A-1", amount_minor=2_500)
    await _note_installment(database, "321")

    newest, older = await payments.list(PaymentFilter(), limit=10)
    assert (newest.payment_id, newest.order_id, newest.seen) == ("321", "PLAN-1", None)
    assert [(each.kind, each.id) for each in newest.owners] == [("subscription", "420")]
    assert (older.payment_id, older.order_id) == ("320", "A-1")
    assert [(each.kind, each.id, each.state) for each in older.owners] == [("operation", charge.id, "succeeded")]
    assert [(each.id, each.state, each.amount_minor) for each in older.refunds] == [(refund.id, "unknown", 2_500)]
    assert [each.payment_id for each in await payments.list(PaymentFilter(), limit=1)] == ["321"]


@pytest.mark.parametrize(
    ("wanted", "found"),
    [
        (PaymentFilter(order_id="A-1"), ["320"]),
        (PaymentFilter(status=PaymentStatus.RECEIVED), ["320"]),
        (PaymentFilter(status=PaymentStatus.REFUNDED), []),
        (PaymentFilter(payment_id="321"), ["321"]),
        (PaymentFilter(merchant=MERCHANT), ["321", "320"]),
        (PaymentFilter(merchant="another"), []),
    ],
)
async def test_a_list_is_narrowed(
    database: Database, payments: KnownPayments, wanted: PaymentFilter, found: list[str]
) -> None:
    """Support asks for an order or a payment; whoever looks for money asks for a state."""
    await ReadingStore(database, Seal((b"k" * 32,)), digests_of(database)).note_payments(MERCHANT, [SEEN], 5_000, 5_000)
    await _note_installment(database, "321")
    assert [each.payment_id for each in await payments.list(wanted, limit=10)] == found


async def _note_installment(database: Database, payment_id: str) -> None:
    fact = Fact(
        subscription_id="420",
        at_ms=1_000,
        is_seen=False,
        order_id="PLAN-1",
        currency="LKR",
        amount_minor=9_900,
        payment=payment_id,
        is_paid=True,
        payment_minor=9_900,
    )
    subscriptions = Subscriptions(database, lambda prefix, now_ms: f"{prefix}_{now_ms}", digests_of(database))
    await subscriptions.note(SubscriptionOwner(account="gateway", merchant=MERCHANT), [fact], now_ms=1_000)


ORDER: Final = {"order_id": "A-1"}
PLAN: Final = SubscriptionOwner(account="gateway", merchant=MERCHANT, principal="shop")


class Taken:
    """Puts into a database what may have taken money of order A-1; each gives the id of what it made."""

    def __init__(self, book: Book) -> None:
        self._book = book
        rows = digests_of(book.database)
        self._checkouts = Checkouts(book.database, Seal((b"k" * 32,)), rows)
        self._subscriptions = Subscriptions(book.database, new_id, rows)
        self._imported = ImportedPayments(book.database, rows)
        self._numbers = itertools.count(1)

    async def operation(self, **members: object) -> str:
        """Stores an operation that has succeeded, but for what is named."""
        own = {"state": State.SUCCEEDED, "guard": None, "claim": None, "idempotency_key": None, "payment_id": "320"}
        operation = self._book.new(next(self._numbers), **(own | ORDER | members))
        await self._book.accept(operation)
        return operation.id

    async def checkout(self, **members: object) -> str:
        """Stores a checkout that is completed, but for what is named."""
        own = {"guard": None, "state": CheckoutState.COMPLETED, "payment_id": "320"}
        checkout = msgspec.structs.replace(samples.CHECKOUT, **(own | members))
        assert await self._checkouts.add(checkout, DETAILS)
        return checkout.id

    async def installment(self, *, owner: SubscriptionOwner = PLAN, **members: object) -> str:
        """Notes a paid installment of plan 420, but for what is named."""
        own = {"payment": "320", "is_paid": True, "payment_minor": 9_900, "currency": "LKR", "amount_minor": 9_900}
        fact = Fact(subscription_id="420", at_ms=1_000, is_seen=False, order_id="A-1")
        await self._subscriptions.note(owner, [msgspec.structs.replace(fact, **(own | members))], now_ms=1_000)
        return "subscription/420"

    async def imported(self, **members: object) -> str:
        """Imports a payment."""
        row = msgspec.structs.replace(samples.IMPORTED, merchant=MERCHANT, payment_id="320", **(ORDER | members))
        [(verdict, why)] = await self._imported.take([row], is_dry=False)
        assert verdict is ImportVerdict.NEW, why
        return row.place


Making = Callable[[Taken], Awaitable[str]]
NUMBERED: Final[dict[str, Making]] = {
    "a charge": lambda taken: taken.operation(),
    "a capture": lambda taken: taken.operation(kind=Kind.CAPTURE),
    "a retry": lambda taken: taken.operation(kind=Kind.RETRY),
    "a page": lambda taken: taken.checkout(),
    "an approval with an amount": lambda taken: taken.checkout(kind=CheckoutKind.PREAPPROVAL),
    "a plan's first payment": lambda taken: taken.checkout(kind=CheckoutKind.RECURRING),
    "a hold that was captured": lambda taken: taken.checkout(kind=CheckoutKind.AUTHORIZATION),
    "an installment of a plan that no page began": lambda taken: taken.installment(),
    "an import that says received": lambda taken: taken.imported(),
}
UNNUMBERED: Final[dict[str, Making]] = {
    "a charge": lambda taken: taken.operation(payment_id=None),
    "a page": lambda taken: taken.checkout(payment_id=None),
    "an approval with an amount": lambda taken: taken.checkout(kind=CheckoutKind.PREAPPROVAL, payment_id=None),
    "an installment": lambda taken: taken.installment(payment="ntf:1"),
}
NOT_TAKEN: Final[dict[str, Making]] = {
    "a hold": lambda taken: taken.operation(kind=Kind.AUTHORIZATION),
    "a refund": lambda taken: taken.operation(kind=Kind.REFUND),
    **{
        f"a charge that is {state}": partial(Taken.operation, state=state)
        for state in State
        if state is not State.SUCCEEDED
    },
    **{
        f"a page that is {state}": partial(Taken.checkout, state=state)
        for state in CheckoutState
        if state is not CheckoutState.COMPLETED
    },
    "an approval without an amount": partial(
        Taken.checkout, kind=CheckoutKind.PREAPPROVAL, amount_minor=None, first_minor=None
    ),
    "a plan that begins later": partial(Taken.checkout, kind=CheckoutKind.RECURRING, payment_id=None),
    "an installment that failed": partial(Taken.installment, is_paid=False),
    "an import that says refunded": partial(Taken.imported, status=PaymentStatus.REFUNDED),
    "a charge of another order": partial(Taken.operation, order_id="A-2"),
    "a charge of another merchant": partial(Taken.operation, merchant="another"),
}


async def paid_by_balance(book: Book) -> set[str | None]:
    """Gives the payments that the order's balance calls paid."""
    facts = await Orders(digests_of(book.database)).facts_of_order(MERCHANT, "A-1")
    return {each.payment_id for each in balance_of(facts, now_ms=10_000).payments if each.of(Figure.PAID)}


@pytest.mark.parametrize("what", NUMBERED)
async def test_what_took_money_is_known_by_its_number(book: Book, payments: KnownPayments, what: str) -> None:
    """Whichever way it was taken: the gateway's record should show it. So says the order's balance."""
    made_by = await NUMBERED[what](Taken(book))
    [payment] = await payments.taken_of_order(MERCHANT, "A-1")

    assert (payment.payment_id, payment.made_by, payment.owner) == ("320", made_by, "shop")
    assert payment.known_at_ms > 0
    assert await paid_by_balance(book) == {"320"}


@pytest.mark.parametrize("what", UNNUMBERED)
async def test_what_took_money_is_known_without_a_number(book: Book, payments: KnownPayments, what: str) -> None:
    """An operator may have decided so, or a notification had none. The order isn't unpaid for that."""
    made_by = await UNNUMBERED[what](Taken(book))
    [payment] = await payments.taken_of_order(MERCHANT, "A-1")

    assert (payment.payment_id, payment.key) == (None, made_by)


@pytest.mark.parametrize("what", NOT_TAKEN)
async def test_what_took_no_money_is_no_payment(book: Book, payments: KnownPayments, what: str) -> None:
    """What was held, given back, refused or is not known yet. Nobody is told to wait for it.

    Nor does the order's balance call it paid, but for an import that says refunded: its record is long over.
    """
    await NOT_TAKEN[what](Taken(book))

    assert await payments.taken_of_order(MERCHANT, "A-1") == ()
    assert await paid_by_balance(book) == ({"320"} if what == "an import that says refunded" else set())


async def test_an_installment_belongs_to_the_page_that_began_its_plan(book: Book, payments: KnownPayments) -> None:
    """It is named once, and of which customer it is, the page tells."""
    taken = Taken(book)
    page = await taken.checkout(kind=CheckoutKind.RECURRING, subscription_id="420", payment_id=None)
    await taken.installment()
    [payment] = await payments.taken_of_order(MERCHANT, "A-1")

    assert (payment.payment_id, payment.made_by) == ("320", page)


async def test_an_installment_of_nobodys_plan_has_no_owner(book: Book, payments: KnownPayments) -> None:
    """So it is open to all keys of the account, as the plan is."""
    await Taken(book).installment(owner=msgspec.structs.replace(PLAN, principal=None))
    [payment] = await payments.taken_of_order(MERCHANT, "A-1")

    assert payment.owner is None


async def test_a_subscription_has_its_installments_and_retries(book: Book, payments: KnownPayments) -> None:
    """A retry is known before any notification tells of it."""
    taken = Taken(book)
    await taken.installment()
    await taken.operation(kind=Kind.RETRY, payment_id="321", order_id=None, subscription_id="420")
    await taken.operation(kind=Kind.CANCEL, payment_id=None, order_id=None, subscription_id="420")
    found = await payments.taken_of_plan(MERCHANT, "420")

    assert sorted(each.payment_id or "" for each in found) == ["320", "321"]
    assert await payments.taken_of_plan(MERCHANT, "421") == ()


@pytest.mark.parametrize("change", ["UPDATE checkouts SET payment_id = '999'", "UPDATE checkouts SET row_digest = ''"])
async def test_a_forged_row_tells_of_no_payment(
    book: Book, payments: KnownPayments, tamper: Tamper, change: str
) -> None:
    """Nobody has a customer wait for what was never paid by writing a row."""
    await Taken(book).checkout()
    await tamper(change)

    assert await payments.taken_of_order(MERCHANT, "A-1") == ()
