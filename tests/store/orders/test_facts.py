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
from payrelay.core.notifications.notification import Authenticity, NotificationKind, NotificationState
from payrelay.core.orders.balance import balance_of
from payrelay.core.orders.facts import OrderFacts
from payrelay.core.orders.figures import DoubtKind
from payrelay.core.orders.received_again import SECOND_LOOK_MS
from payrelay.core.outcomes import Reading
from payrelay.core.payments.operation import Kind, Operation, State
from payrelay.core.payments.payment import Payment, PaymentStatus
from payrelay.core.subscriptions.subscription import Fact
from payrelay.runtime.ids import new_id
from payrelay.store.chargebacks import Chargebacks
from payrelay.store.checkouts import Checkouts
from payrelay.store.engine.database import Database, Statement, all_rows
from payrelay.store.engine.queries import query
from payrelay.store.engine.sealing import Seal
from payrelay.store.gateways.readings import ReadingStore
from payrelay.store.imports.payments import ImportedPayments
from payrelay.store.inbox import Inbox
from payrelay.store.orders.facts import Orders
from payrelay.store.statements.payments.operations import ADD_FAILED, FAILED_REFUNDS
from payrelay.store.subscriptions import SubscriptionOwner, Subscriptions

MERCHANT: Final = samples.OPERATION.merchant
ORDER: Final = "A-1"
SEAL: Final = Seal((b"k" * 32,))


EVENTS: Final = query("SELECT type FROM outbox WHERE type NOT LIKE 'operation.%'")
RECEIVED, REFUNDED, TAKEN_BACK = PaymentStatus.RECEIVED, PaymentStatus.REFUNDED, PaymentStatus.CHARGED_BACK


class Shop:
    """Puts into a database what tells of the money of order A-1."""

    def __init__(self, book: Book) -> None:
        self._book, self._rows = book, digests_of(book.database)
        self._number = 0
        self.journal = book.journal

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

    async def seen(
        self, status: PaymentStatus, payment_id: str = "1", *, at_ms: int = 5_000, answered_at_ms: int | None = None
    ) -> None:
        """Notes what the gateway's record showed."""
        readings = ReadingStore(self._book.database, SEAL, self._rows)
        await readings.note_payments(MERCHANT, [_record(status, payment_id)], at_ms, answered_at_ms or at_ms)

    async def answered(self, status: PaymentStatus, *, at_ms: int, answered_at_ms: int | None = None) -> None:
        """Notes what the gateway's record of payment 1 showed, with the answer that showed it."""
        readings = ReadingStore(self._book.database, SEAL, self._rows)
        reading = Reading(code=None, msg="", raw_data=b"[]")
        call = PaymentsOfOrder(order_id=ORDER)
        shown = [_record(status, "1")]
        await readings.keep(MERCHANT, call, reading, shown, read_at_ms=at_ms, answered_at_ms=answered_at_ms or at_ms)

    async def charged_back(self, payment_id: str = "1") -> None:
        """Stores a chargeback."""
        kept = msgspec.structs.replace(CHARGEBACK, payment_id=payment_id, noted_at_ms=6_000)
        assert await Chargebacks(self._book.database, self._rows).keep(kept, EVENT)

    async def told(self, number: int = 1, /, **members: object) -> None:
        """Stores the notification of a chargeback of payment 1 that no record proves yet."""
        own = {"id": f"ntf_{number}", "digest": str(number), "kind": NotificationKind.CHARGEBACK, "payment_id": "1"}
        told = msgspec.structs.replace(samples.NOTIFICATION, **(own | members))
        assert await Inbox(self._book.database, SEAL, self._rows).put(told, b"") is not None

    async def failed(self, operation: Operation) -> None:
        """Stores that a refund failed later."""
        row = (operation.id, MERCHANT, "1", 7_000)
        added = Statement(ADD_FAILED, (*row, self._rows.of(FAILED_REFUNDS, row)))
        await self._book.database.write(all_rows(added))

    async def events(self) -> list[str]:
        """Reads the types of the events that are stored, but for those of operations."""
        rows = await self._book.database.read(all_rows(Statement(EVENTS, ())))
        return [str(row[0]) for row in rows]

    async def token(self) -> None:
        """Accepts the token of an authorization for the order."""
        inbox = Inbox(self._book.database, SEAL, self._rows)
        assert await inbox.accept_token(samples.NOTIFICATION, NotificationKind.AUTHORIZATION, "T" * 32, at_ms=1_000)

    async def everything(self) -> None:
        """Stores a row of each kind."""
        await self.imported()
        await self.operation()
        await self.failed(await self.operation(Kind.REFUND, amount_minor=100, order_id=None))
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
        await self.told()
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
        "again": [each.payment_id for each in facts.again],
        "failed": [each.payment_id for each in facts.failed],
        "chargebacks": [each.payment_id for each in facts.chargebacks],
        "told": [str(each.payment_id) for each in facts.told],
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
            "again": ["1"],
            "failed": ["1"],
            "chargebacks": ["1"],
            "told": ["1"],
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


OF_REFUND: Final = {name: ["1"] for name in ("again", "failed", "chargebacks", "told")}


@pytest.mark.parametrize(
    ("payment_id", "found"),
    [
        ("1", {"operations": ["charge", "refund"], "seen": ["1 RECEIVED"], **OF_REFUND}),
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
        ("UPDATE returns_seen SET seen_at_ms = 1 WHERE status = 'REFUNDED'", "returns_seen/"),
        ("UPDATE failed_refunds SET payment_id = '1', known_at_ms = 2", "failed_refunds/"),
        ("UPDATE notifications SET amount_minor = 1", "notifications/"),
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


SECOND: Final = SECOND_LOOK_MS


@pytest.mark.parametrize(
    ("looks", "again", "has_failed"),
    [
        ([(RECEIVED, 5_000)], [], False),
        ([(REFUNDED, 5_000)], [], False),
        ([(REFUNDED, 5_000), (RECEIVED, 6_000)], [6_000], False),
        ([(REFUNDED, 5_000), (RECEIVED, 6_000), (RECEIVED, 7_000)], [6_000], False),
        ([(REFUNDED, 5_000), (RECEIVED, 6_000), (RECEIVED, 5_999 + SECOND)], [6_000], False),
        ([(REFUNDED, 5_000), (RECEIVED, 6_000), (RECEIVED, 6_000 + SECOND)], [6_000], True),
        ([(REFUNDED, 5_000), (RECEIVED, 6_000), (REFUNDED, 7_000)], [], False),
        (
            [(REFUNDED, 5_000), (RECEIVED, 6_000), (REFUNDED, 7_000), (RECEIVED, 6_000 + SECOND)],
            [6_000 + SECOND],
            False,
        ),
        ([(REFUNDED, 5_000), (RECEIVED, 6_000), (RECEIVED, 6_000 + SECOND), (REFUNDED, 7_000 + SECOND)], [], True),
        ([(REFUNDED, 500), (RECEIVED, 6_000), (RECEIVED, 6_000 + SECOND)], [6_000], False),
        ([(TAKEN_BACK, 5_000), (RECEIVED, 6_000), (RECEIVED, 6_000 + SECOND)], [6_000], False),
    ],
)
async def test_a_refund_fails_once_and_at_a_second_look(
    shop: Shop, orders: Orders, looks: list[tuple[PaymentStatus, int]], again: list[int], *, has_failed: bool
) -> None:
    """The gateway's record is the only news of it. A copy that lags behind looks the same, but for so long."""
    await shop.operation()
    refund = await shop.operation(Kind.REFUND, amount_minor=None, claim="fingerprint/f", created_at_ms=1_000)
    refund = msgspec.structs.replace(refund, merchant=MERCHANT)
    for status, at_ms in looks:
        await shop.seen(status, at_ms=at_ms)
        await shop.seen(status, at_ms=at_ms)
    facts = await orders.facts_of_order(MERCHANT, ORDER)

    assert [each.seen_at_ms for each in facts.again] == again
    assert [each.operation_id for each in facts.failed] == [refund.id] * has_failed
    assert (await shop.events()).count("payment.refund_failed") == has_failed
    assert await shop.journal.has_failed(refund) is has_failed


async def test_what_failed_once_stays_failed(shop: Shop, orders: Orders) -> None:
    """The second refund, which the record shows, is the only one: two would be more than was paid."""
    await shop.operation()
    await shop.operation(Kind.REFUND, amount_minor=None, created_at_ms=1_000, send_by_ms=2_000)
    for status, at_ms in ((REFUNDED, 5_000), (RECEIVED, 6_000), (RECEIVED, 6_000 + SECOND)):
        await shop.seen(status, at_ms=at_ms)
    back = balance_of(await orders.facts_of_order(MERCHANT, ORDER), now_ms=0)
    at_ms = 7_000 + SECOND
    await shop.operation(Kind.REFUND, amount_minor=None, created_at_ms=at_ms, send_by_ms=at_ms + 1)
    await shop.seen(REFUNDED, at_ms=at_ms + 1_000)
    gone = balance_of(await orders.facts_of_order(MERCHANT, ORDER), now_ms=0)

    assert [(each.payments[0].left_minor, each.is_certain) for each in (back, gone)] == [(100_000, True), (0, True)]


@pytest.mark.parametrize(
    ("members", "is_read"),
    [
        ({}, True),
        ({"state": NotificationState.WAITING}, True),
        ({"payment_id": None}, True),
        ({"state": NotificationState.APPLIED}, False),
        ({"state": NotificationState.NEEDS_ATTENTION}, False),
        ({"authenticity": Authenticity.NO_SECRET}, False),
        ({"kind": NotificationKind.PAYMENT}, False),
        ({"order_id": "B-1"}, False),
        ({"payment_id": "9"}, False),
        ({"merchant": "another"}, False),
    ],
)
async def test_a_chargeback_is_told_until_it_is_decided(
    shop: Shop, orders: Orders, members: dict[str, object], *, is_read: bool
) -> None:
    """Of its order alone: whoever has a notification of another order can write any payment into it."""
    await shop.operation()
    await shop.told(**members)
    for number in range(2, 5):
        await shop.told(number, **members)
    for facts in (await orders.facts_of_order(MERCHANT, ORDER), await orders.facts_of_payment(MERCHANT, "1")):
        kinds = [each.kind for each in balance_of(facts, now_ms=0).doubts]
        assert kinds == [DoubtKind.CHARGEBACK_NOT_SHOWN] * is_read


async def test_a_chargeback_of_an_unknown_payment_is_told(shop: Shop, orders: Orders) -> None:
    """Nothing here says its order, so nothing says that it is another one's."""
    await shop.told(payment_id="7")
    facts = await orders.facts_of_payment(MERCHANT, "7")
    assert [each.kind for each in balance_of(facts, now_ms=0).doubts] == [DoubtKind.CHARGEBACK_NOT_SHOWN]


REQUESTED: Final = PaymentStatus.REFUND_REQUESTED
TWICE: Final = ((RECEIVED, 6), (RECEIVED, 6 + SECOND))
BOTH: Final = {RECEIVED: 6 + SECOND}
"""What two looks show, and what is noted of them: one alone is nothing."""


@pytest.mark.parametrize(
    ("looks", "returned"),
    [
        ([(REFUNDED, 5), (REFUNDED, 6)], {REFUNDED: 5}),
        ([(REFUNDED, 5), (REFUNDED, 4)], {REFUNDED: 4}),
        ([(REQUESTED, 5), (REFUNDED, 6), (REQUESTED, 7)], {REQUESTED: 5, REFUNDED: 6}),
        ([(RECEIVED, 4), (REFUNDED, 5)], {RECEIVED: 4, REFUNDED: 5}),
        ([(REFUNDED, 5), (RECEIVED, 6)], {REFUNDED: 5}),
        ([(REFUNDED, 5), (RECEIVED, 6), (REFUNDED, 7), (REFUNDED, 8)], {REFUNDED: 5}),
        ([(REFUNDED, 5), *TWICE, (REFUNDED, 7 + SECOND), (REFUNDED, 8 + SECOND)], {**BOTH, REFUNDED: 7 + SECOND}),
        (
            [(REFUNDED, 5), *TWICE, (REQUESTED, 7 + SECOND), (REFUNDED, 8 + SECOND)],
            {**BOTH, REQUESTED: 7 + SECOND, REFUNDED: 8 + SECOND},
        ),
        ([(REFUNDED, 5), *TWICE, (REFUNDED, 8 + SECOND), (REFUNDED, 4)], {**BOTH, REFUNDED: 8 + SECOND}),
        ([(RECEIVED, 4), (REFUNDED, 5), (RECEIVED, 6), (REFUNDED, 7)], {RECEIVED: 4, REFUNDED: 5}),
        ([(RECEIVED, 4), (REFUNDED, 5), *TWICE, (REFUNDED, 7 + SECOND)], {**BOTH, REFUNDED: 7 + SECOND}),
        ([(RECEIVED, 6), (REFUNDED, 5)], {REFUNDED: 5}),
        ([(REFUNDED, 5, 9)], {REFUNDED: 9}),
        ([(REFUNDED, 5, 9), (REFUNDED, 6, 7)], {REFUNDED: 7}),
        ([(RECEIVED, 6, 7), (REFUNDED, 5, 9)], {RECEIVED: 6, REFUNDED: 9}),
        (
            [(REFUNDED, 1, 3), (RECEIVED, 6), (RECEIVED, 6 + SECOND, 9 + SECOND), (REFUNDED, 7 + SECOND, 8 + SECOND)],
            {**BOTH, REFUNDED: 8 + SECOND},
        ),
    ],
)
@pytest.mark.parametrize("is_kept", [True, False])
async def test_a_return_is_noted_at_its_first_look(
    shop: Shop,
    orders: Orders,
    looks: list[tuple[PaymentStatus, int] | tuple[PaymentStatus, int, int]],
    returned: dict[str, int],
    *,
    is_kept: bool,
) -> None:
    """A refund that is asked for later doesn't explain it. It is counted anew once the record showed it as received.

    Two answers of the gateway may be stored in the wrong order. What one shows may have happened until it came.
    """
    for status, *times_ms in looks:
        note = shop.answered if is_kept else shop.seen
        await note(status, at_ms=times_ms[0], answered_at_ms=None if len(times_ms) == 1 else times_ms[1])
    facts = await orders.facts_of_order(MERCHANT, ORDER)
    assert {each.status: each.seen_at_ms for each in facts.returned} == returned
