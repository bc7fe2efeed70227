from typing import Final

import msgspec
import pytest
from tests import samples
from tests.digests import digests_of
from tests.store.conftest import Book

from payrelay.core.payments.operation import Event, Kind, Operation
from payrelay.core.payments.payment import PaymentStatus
from payrelay.core.subscriptions.subscription import Fact
from payrelay.store.engine.database import Database
from payrelay.store.engine.sealing import Seal
from payrelay.store.gateways.readings import ReadingStore
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
    await ReadingStore(database, Seal((b"k" * 32,)), digests_of(database)).note_payments(MERCHANT, [SEEN], 5_000)
    charge = await lost(book, 1, payment_id="320")
    await book.advance(charge, Event.PROVED)
    refund = await lost(book, 2, kind=Kind.REFUND, payment_id="320", order_id="A-1", amount_minor=2_500)
    await _note_installment(database, "321")

    newest, older = await payments.list(PaymentFilter(), limit=10)
    assert (newest.payment_id, newest.order_id, newest.amount_minor, newest.seen) == ("321", "PLAN-1", 9_900, None)
    assert [(each.kind, each.id) for each in newest.owners] == [("subscription", "420")]
    assert (older.payment_id, older.order_id, older.currency, older.amount_minor) == ("320", "A-1", "LKR", 100_000)
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
    await ReadingStore(database, Seal((b"k" * 32,)), digests_of(database)).note_payments(MERCHANT, [SEEN], 5_000)
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
