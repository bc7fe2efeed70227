"""All that is stored of an order's money is read at once, and nothing of rows that somebody changed."""

from typing import Final

import msgspec
import pytest
from tests import samples
from tests.digests import digests_of
from tests.store.conftest import Book, Tamper
from tests.store.test_chargebacks import CHARGEBACK, EVENT
from tests.store.test_checkouts import DETAILS

from payrelay.core.calls import PaymentsOfOrder
from payrelay.core.checkouts.checkout import CheckoutState
from payrelay.core.checkouts.hosted_payment import CheckoutKind
from payrelay.core.notifications.notification import NotificationKind
from payrelay.core.orders.balance import balance_of
from payrelay.core.orders.facts import OrderFacts
from payrelay.core.orders.figures import DoubtKind
from payrelay.core.outcomes import Reading
from payrelay.core.payments.operation import Kind, Operation, State
from payrelay.core.payments.payment import Payment, PaymentStatus
from payrelay.core.subscriptions.subscription import Fact
from payrelay.runtime.ids import new_id
from payrelay.store.chargebacks import Chargebacks
from payrelay.store.checkouts import Checkouts
from payrelay.store.engine.database import Database
from payrelay.store.engine.sealing import Seal
from payrelay.store.gateways.readings import ReadingStore
from payrelay.store.imports.payments import ImportedPayments
from payrelay.store.inbox import Inbox
from payrelay.store.orders.facts import Orders
from payrelay.store.subscriptions import SubscriptionOwner, Subscriptions

MERCHANT: Final = samples.OPERATION.merchant
ORDER: Final = "A-1"
SEAL: Final = Seal((b"k" * 32,))


class Shop:
    """Puts into a database what tells of the money of order A-1."""

    def __init__(self, book: Book) -> None:
        self._book, self._rows = book, digests_of(book.database)
        self._number = 0

    async def operation(self, kind: Kind = Kind.CHARGE, **members: object) -> Operation:
        """Stores an operation that succeeded: a charge of payment 1, where nothing else is said."""
        self._number += 1
        own = {
            "kind": kind,
            "state": State.SUCCEEDED,
            "guard": None,
            "claim": None,
            "idempotency_key": None,
            "order_id": ORDER,
            "payment_id": "1",
        }
        operation = self._book.new(self._number, **(own | members))
        await self._book.accept(operation)
        return operation

    async def page(self, number: int = 1, **members: object) -> None:
        """Stores a completed checkout."""
        own = {"id": f"chk_{number:026d}", "guard": None, "state": CheckoutState.COMPLETED, "payment_id": "2"}
        checkout = msgspec.structs.replace(samples.CHECKOUT, **(own | members))
        assert await Checkouts(self._book.database, SEAL, self._rows).add(checkout, DETAILS)

    async def installment(self, payment: str = "3", *, order_id: str | None = ORDER) -> None:
        """Notes a paid installment of the order's plan."""
        fact = Fact(
            subscription_id="420",
            at_ms=1_000,
            is_seen=True,
            order_id=order_id,
            currency="LKR",
            payment=payment,
            is_paid=True,
            payment_minor=9_900,
        )
        owner = SubscriptionOwner(account="gateway", merchant=MERCHANT, principal="shop")
        await Subscriptions(self._book.database, new_id, self._rows).note(owner, [fact], now_ms=1_000)

    async def imported(self) -> None:
        """Imports payment 4."""
        row = msgspec.structs.replace(samples.IMPORTED, merchant=MERCHANT, payment_id="4", order_id=ORDER)
        await ImportedPayments(self._book.database, self._rows).take([row], is_dry=False)

    async def seen(self, status: PaymentStatus, payment_id: str = "1", *, at_ms: int = 5_000) -> None:
        """Notes what the gateway's record showed."""
        readings = ReadingStore(self._book.database, SEAL, self._rows)
        await readings.note_payments(MERCHANT, [_record(status, payment_id)], at_ms)

    async def answered(self, status: PaymentStatus, *, at_ms: int) -> None:
        """Notes what the gateway's record of payment 1 showed, with the answer that showed it."""
        readings = ReadingStore(self._book.database, SEAL, self._rows)
        reading = Reading(code=None, msg="", raw_data=b"[]")
        call = PaymentsOfOrder(order_id=ORDER)
        await readings.keep(MERCHANT, call, reading, [_record(status, "1")], read_at_ms=at_ms)

    async def charged_back(self, payment_id: str = "1") -> None:
        """Stores a chargeback."""
        kept = msgspec.structs.replace(CHARGEBACK, payment_id=payment_id, noted_at_ms=6_000)
        assert await Chargebacks(self._book.database, self._rows).keep(kept, EVENT)

    async def token(self) -> None:
        """Accepts the token of an authorization for the order."""
        inbox = Inbox(self._book.database, SEAL, self._rows)
        assert await inbox.accept_token(samples.NOTIFICATION, NotificationKind.AUTHORIZATION, "T" * 32, at_ms=1_000)

    async def everything(self) -> None:
        """Stores a row of each kind."""
        await self.imported()
        await self.operation()
        await self.operation(Kind.REFUND, amount_minor=100, order_id=None)
        await self.operation(Kind.RETRY, payment_id="5", order_id=None, subscription_id="420", amount_minor=None)
        await self.operation(Kind.VOID, payment_id=None, subject="authorization/x")
        await self.operation(Kind.CANCEL, payment_id=None, subscription_id="420")
        await self.page()
        await self.page(2, kind=CheckoutKind.RECURRING, payment_id="3", subscription_id="420")
        await self.installment()
        await self.installment("ntf:1")
        await self.seen(PaymentStatus.REFUNDED)
        await self.seen(PaymentStatus.RECEIVED, at_ms=5_001)
        await self.charged_back()
        await self.token()


@pytest.fixture
def shop(book: Book) -> Shop:
    """Gives what the tests store with."""
    return Shop(book)


@pytest.fixture
def orders(database: Database) -> Orders:
    """Gives what is under test."""
    return Orders(digests_of(database))


def _record(status: PaymentStatus, payment_id: str) -> Payment:
    return msgspec.structs.replace(
        samples.PAYMENT, payment_id=payment_id, order_id=ORDER, status=status, amount_minor=100_000
    )


def shape(facts: OrderFacts) -> dict[str, list[str]]:
    """Names what was read."""
    return {
        "operations": sorted(each.kind for each in facts.operations),
        "checkouts": sorted(each.kind for each in facts.checkouts),
        "plans": sorted(facts.subscriptions),
        "installments": sorted(each.payment for each in facts.installments),
        "imported": [each.payment_id for each in facts.imported],
        "seen": [f"{each.payment_id} {each.status}" for each in facts.seen],
        "returned": [f"{each.payment_id} {each.status}" for each in facts.returned],
        "chargebacks": [each.payment_id for each in facts.chargebacks],
        "hold": [] if facts.hold is None else [str(facts.hold.accepted_at_ms)],
        "wrong": list(facts.wrong),
    }


async def test_everything_about_an_order_is_read(shop: Shop, orders: Orders) -> None:
    """A row that isn't read is money that support doesn't see."""
    await shop.everything()
    facts = await orders.facts_of_order(MERCHANT, ORDER)
    assert (facts.is_complete, shape(facts)) == (
        True,
        {
            "operations": ["charge", "refund", "retry", "void"],
            "checkouts": ["payment", "recurring"],
            "plans": ["420"],
            "installments": ["3", "ntf:1"],
            "imported": ["4"],
            "seen": ["1 RECEIVED"],
            "returned": ["1 REFUNDED"],
            "chargebacks": ["1"],
            "hold": ["1000"],
            "wrong": [],
        },
    )
    assert {each.currency for each in facts.installments} == {"LKR"}


@pytest.mark.parametrize(("merchant", "order_id"), [("another", ORDER), (MERCHANT, "A-9")])
async def test_nothing_is_read_of_others(shop: Shop, orders: Orders, merchant: str, order_id: str) -> None:
    """Two merchants may have orders of one name."""
    await shop.everything()
    assert not (await orders.facts_of_order(merchant, order_id)).is_known


@pytest.mark.parametrize(
    ("payment_id", "found"),
    [
        ("1", {"operations": ["charge", "refund"], "seen": ["1 RECEIVED"], "chargebacks": ["1"]}),
        ("2", {"checkouts": ["payment"]}),
        ("3", {"checkouts": ["recurring"], "installments": ["3"]}),
        ("4", {"imported": ["4"]}),
        ("5", {"operations": ["retry"]}),
        ("9", {}),
    ],
)
async def test_one_payment_is_read_alone(
    shop: Shop, orders: Orders, payment_id: str, found: dict[str, list[str]]
) -> None:
    """A refund asks for one payment, of an order that may have thousands."""
    await shop.everything()
    named = shape(await orders.facts_of_payment(MERCHANT, payment_id))
    assert {name: each for name, each in named.items() if each and name not in {"returned", "plans"}} == found


@pytest.mark.parametrize("payment_id", ["1", "2", "3", "4"])
async def test_a_payment_alone_has_the_figures_that_it_has_in_its_order(
    shop: Shop, orders: Orders, payment_id: str
) -> None:
    """What support reads of an order and what refuses a refund are one balance."""
    await shop.everything()
    whole = balance_of(await orders.facts_of_order(MERCHANT, ORDER), now_ms=0)
    alone = balance_of(await orders.facts_of_payment(MERCHANT, payment_id), now_ms=0)
    assert alone.payment(payment_id) == whole.payment(payment_id) is not None


@pytest.mark.parametrize(
    ("change", "wrong"),
    [
        ("UPDATE operations SET amount_minor = 1 WHERE kind = 'refund'", "operations/"),
        ("UPDATE checkouts SET amount_minor = 1 WHERE kind = 'payment'", "checkouts/"),
        ("UPDATE subscriptions SET order_id = 'A-1', currency = 'USD'", "subscriptions/"),
        ("UPDATE installments SET amount_minor = 1 WHERE payment = '3'", "installments/"),
        ("UPDATE imported_payments SET amount_minor = 1", "imported_payments/"),
        ("UPDATE payments_seen SET status = 'CHARGEBACKED'", "payments_seen/"),
        ("UPDATE returns_seen SET seen_at_ms = 1", "returns_seen/"),
        ("UPDATE chargebacks SET part_minor = 1", "chargebacks/"),
        ("UPDATE accepted_tokens SET accepted_at_ms = 1", "accepted_tokens/"),
    ],
)
async def test_a_row_that_somebody_changed_is_named_and_not_believed(
    shop: Shop, orders: Orders, tamper: Tamper, change: str, wrong: str
) -> None:
    """Whoever can write to the database must not make money appear, and the balance says that it isn't certain."""
    await shop.everything()
    await tamper(change)
    facts = await orders.facts_of_order(MERCHANT, ORDER)
    (named,) = facts.wrong
    doubts = balance_of(facts, now_ms=0).doubts
    assert named.startswith(wrong)
    assert [each.id for each in doubts if each.kind is DoubtKind.FORGED] == [named]


async def test_a_page_that_names_a_foreign_payment_by_force_brings_nothing(
    shop: Shop, orders: Orders, tamper: Tamper
) -> None:
    """The row leads to another order's charge; that charge stays the other order's."""
    await shop.page()
    await shop.operation(order_id="B-1", payment_id="7")
    await tamper("UPDATE checkouts SET payment_id = '7'")
    assert balance_of(await orders.facts_of_order(MERCHANT, ORDER), now_ms=0).payments == ()


@pytest.mark.parametrize(("rows_max", "is_complete"), [(3, True), (2, False)])
async def test_an_order_with_too_many_rows_says_so(
    shop: Shop, database: Database, rows_max: int, *, is_complete: bool
) -> None:
    """A sum of the first thousands would be a wrong one, and to read all of them would stop every other request."""
    for number in range(3):
        await shop.operation(payment_id=f"10{number}")
    facts = await Orders(digests_of(database), rows_max=rows_max).facts_of_order(MERCHANT, ORDER)
    assert (facts.is_complete, balance_of(facts, now_ms=0).is_complete) == (is_complete, is_complete)


async def test_what_two_searches_find_counts_once(shop: Shop, database: Database) -> None:
    """A plan's installments are found by the plan and by their payments; they are no more than there are."""
    for number in range(3):
        await shop.installment(f"10{number}")
    facts = await Orders(digests_of(database), rows_max=3).facts_of_order(MERCHANT, ORDER)
    assert (facts.is_complete, len(facts.installments)) == (True, 3)


async def test_a_record_that_shows_a_refund_no_more_is_remembered(shop: Shop, orders: Orders) -> None:
    """The gateway's record is the only news that a refund failed: nobody is notified of it."""
    await shop.operation()
    await shop.operation(Kind.REFUND, amount_minor=None)
    await shop.seen(PaymentStatus.REFUND_REQUESTED, at_ms=5_000)
    gone = balance_of(await orders.facts_of_order(MERCHANT, ORDER), now_ms=0)
    await shop.seen(PaymentStatus.RECEIVED, at_ms=6_000)
    back = balance_of(await orders.facts_of_order(MERCHANT, ORDER), now_ms=0)
    assert [(each.payments[0].left_minor, each.is_certain) for each in (gone, back)] == [(0, True), (100_000, True)]


RECEIVED, REQUESTED, REFUNDED = PaymentStatus.RECEIVED, PaymentStatus.REFUND_REQUESTED, PaymentStatus.REFUNDED


@pytest.mark.parametrize(
    ("looks", "returned"),
    [
        ([(REFUNDED, 5), (REFUNDED, 6)], {REFUNDED: 5}),
        ([(REFUNDED, 5), (REFUNDED, 4)], {REFUNDED: 4}),
        ([(REQUESTED, 5), (REFUNDED, 6), (REQUESTED, 7)], {REQUESTED: 5, REFUNDED: 6}),
        ([(RECEIVED, 4), (REFUNDED, 5)], {RECEIVED: 4, REFUNDED: 5}),
        ([(REFUNDED, 5), (RECEIVED, 6)], {REFUNDED: 5}),
        ([(REFUNDED, 5), (RECEIVED, 6), (REFUNDED, 7), (REFUNDED, 8)], {RECEIVED: 6, REFUNDED: 7}),
        ([(REFUNDED, 5), (RECEIVED, 6), (REQUESTED, 7), (REFUNDED, 8)], {RECEIVED: 6, REQUESTED: 7, REFUNDED: 8}),
        ([(REFUNDED, 5), (RECEIVED, 6), (REFUNDED, 8), (REFUNDED, 4)], {RECEIVED: 6, REFUNDED: 8}),
        ([(RECEIVED, 4), (REFUNDED, 5), (RECEIVED, 6), (REFUNDED, 7)], {RECEIVED: 6, REFUNDED: 7}),
        ([(RECEIVED, 6), (REFUNDED, 5)], {REFUNDED: 5}),
    ],
)
@pytest.mark.parametrize("is_kept", [True, False])
async def test_a_return_is_noted_at_its_first_look(
    shop: Shop, orders: Orders, looks: list[tuple[PaymentStatus, int]], returned: dict[str, int], *, is_kept: bool
) -> None:
    """A refund that is asked for later doesn't explain it. It is counted anew once the record showed it as received.

    Two answers of the gateway may be stored in the wrong order.
    """
    for status, at_ms in looks:
        await (shop.answered if is_kept else shop.seen)(status, at_ms=at_ms)
    facts = await orders.facts_of_order(MERCHANT, ORDER)
    assert {each.status: each.seen_at_ms for each in facts.returned} == returned
