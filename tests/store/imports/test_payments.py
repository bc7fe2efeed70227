"""Imported payments: each once, whose it is, and what it must not be taken for."""

import msgspec
import pytest
from tests.digests import digests_of
from tests.samples import CHECKOUT, IMPORTED, OPERATION, PAYMENT
from tests.store.conftest import Book, Tamper
from tests.store.test_checkouts import DETAILS
from tests.store.test_subscriptions import paid

from payrelay.core.access.ownership import OrderOwners
from payrelay.core.payments.imported import ImportedPayment, ImportVerdict
from payrelay.core.payments.operation import Kind, State
from payrelay.core.payments.payment import PaymentStatus
from payrelay.core.payments.proof import TOLERANCE_MS
from payrelay.runtime.ids import new_id
from payrelay.store.access.owners import NOT_TOLD, Owners
from payrelay.store.checkouts import Checkouts
from payrelay.store.engine.database import Statement, all_rows
from payrelay.store.engine.queries import query
from payrelay.store.engine.sealing import Seal
from payrelay.store.imports.payments import CONTRADICTS, FORGED, MAY_BE_OURS, OTHERS, ImportedPayments
from payrelay.store.payments.known_payments import KnownPayment, KnownPayments, PaymentFilter
from payrelay.store.subscriptions import SubscriptionOwner, Subscriptions

MERCHANT = IMPORTED.merchant
ID = IMPORTED.payment_id
SHOP = frozenset({"shop"})


@pytest.fixture
def imported(book: Book) -> ImportedPayments:
    """Gives an empty database."""
    return ImportedPayments(book.database, digests_of(book.database))


async def take(imported: ImportedPayments, *, is_dry: bool = False, **members: object) -> tuple[ImportVerdict, str]:
    """Imports a payment, but for what is named."""
    [verdict] = await imported.take([msgspec.structs.replace(IMPORTED, **members)], is_dry=is_dry)
    return verdict


async def test_a_payment_is_stored_once(imported: ImportedPayments) -> None:
    """However often its file is fed, and whatever is said of when."""
    assert await take(imported) == (ImportVerdict.NEW, "")
    assert await take(imported, imported_at_ms=9_000, place="other.csv, line 9") == (ImportVerdict.KNOWN, "")
    assert await imported.get(MERCHANT, ID) == IMPORTED
    assert await imported.of_order(MERCHANT, "A-1") == [IMPORTED]


async def test_a_dry_run_stores_nothing(imported: ImportedPayments) -> None:
    """It comes before every import."""
    assert await take(imported, is_dry=True) == (ImportVerdict.NEW, "")
    assert await imported.get(MERCHANT, ID) is None


@pytest.mark.parametrize("is_dry", [True, False])
async def test_a_later_file_may_only_say_that_it_was_given_back(imported: ImportedPayments, *, is_dry: bool) -> None:
    """An older file that is fed afterwards doesn't take that back."""
    await take(imported)

    assert await take(imported, status=PaymentStatus.REFUNDED, is_dry=is_dry) == (ImportVerdict.CHANGED, "")
    known = await imported.get(MERCHANT, ID)
    assert known is not None
    assert known.status is (PaymentStatus.RECEIVED if is_dry else PaymentStatus.REFUNDED)
    assert await take(imported) == (ImportVerdict.KNOWN, "")


@pytest.mark.parametrize(
    ("members", "why"),
    [
        ({"principal": "other"}, OTHERS),
        ({"order_id": "B"}, CONTRADICTS),
        ({"amount_minor": 1}, CONTRADICTS),
        ({"currency": "USD"}, CONTRADICTS),
        ({"subscription_id": "42"}, CONTRADICTS),
    ],
)
async def test_what_an_earlier_import_says_otherwise_is_refused(
    imported: ImportedPayments, members: dict[str, object], why: str
) -> None:
    """Nobody takes over another's payment by a file, and no second file changes what a first one said."""
    await take(imported)

    [verdict] = await imported.take([msgspec.structs.replace(IMPORTED, **members)], is_dry=False)
    assert verdict == (ImportVerdict.REFUSED, why)


@pytest.mark.parametrize(
    ("members", "is_refused"),
    [
        ({"state": State.UNKNOWN}, True),
        ({"state": State.SUCCEEDED}, True),
        ({"state": State.FAILED}, True),
        ({"state": State.DECLINED}, False),
        ({"state": State.UNKNOWN, "kind": Kind.REFUND}, False),
        ({"state": State.UNKNOWN, "kind": Kind.RETRY, "order_id": None, "subscription_id": "42"}, True),
    ],
)
async def test_a_payment_that_may_be_ours_is_never_imported(
    book: Book, imported: ImportedPayments, members: dict[str, object], *, is_refused: bool
) -> None:
    """It would take away the proof of a charge whose answer was lost: money moved, and we would say that it failed."""
    own = {"guard": None, "claim": None, "idempotency_key": None, "order_id": "A-1"}
    await book.accept(book.new(1, **(own | members)))

    verdict, why = await take(imported, subscription_id="42")

    assert (verdict, why) == ((ImportVerdict.REFUSED, MAY_BE_OURS) if is_refused else (ImportVerdict.NEW, ""))


async def test_a_payment_of_an_order_with_a_page_is_never_imported(book: Book, imported: ImportedPayments) -> None:
    """Whatever became of the page: the customer may have paid there."""
    checkouts = Checkouts(book.database, Seal((b"k" * 32,)), digests_of(book.database))
    await checkouts.add(CHECKOUT, DETAILS)

    assert await take(imported, merchant=CHECKOUT.merchant, order_id=CHECKOUT.order_id) == (
        ImportVerdict.REFUSED,
        MAY_BE_OURS,
    )


async def test_an_imported_payment_and_its_order_have_an_owner(book: Book, imported: ImportedPayments) -> None:
    """So its principal refunds it, and nobody else does, or charges its order."""
    owners = Owners(book.database, digests_of(book.database))
    await take(imported)

    assert await owners.of_payment(MERCHANT, ID) == SHOP
    assert await owners.of_payment("f" * 16, ID) == frozenset()
    assert await owners.of_order(MERCHANT, "A-1") == OrderOwners(settled=SHOP, is_imported=True, has_more=True)
    assert await owners.payments_of_order(MERCHANT, "A-1") == {ID: SHOP}


async def test_who_made_a_payment_here_owns_it_and_not_the_import(book: Book, imported: ImportedPayments) -> None:
    """A file that guesses the number of a later payment takes nobody's payment away, and shares none."""
    owners = Owners(book.database, digests_of(book.database))
    await take(imported, principal="guesser", order_id="G-1")
    await book.accept(book.new(1, state=State.SUCCEEDED, guard=None, claim=None, idempotency_key=None, payment_id=ID))

    assert await owners.of_payment(MERCHANT, ID) == SHOP


async def test_a_forged_row_makes_nobody_an_owner(book: Book, imported: ImportedPayments, tamper: Tamper) -> None:
    """Whoever writes to the database gives himself no payments, and proves nothing."""
    owners = Owners(book.database, digests_of(book.database))
    await take(imported)
    await tamper("UPDATE imported_payments SET principal = 'forger'")

    assert await owners.of_payment(MERCHANT, ID) == {NOT_TOLD}
    assert await owners.of_order(MERCHANT, "A-1") == OrderOwners(settled=frozenset({NOT_TOLD}), has_more=True)
    assert await imported.of_before(MERCHANT, [msgspec.structs.replace(PAYMENT, payment_id=ID, at_ms=0)]) == frozenset()
    assert await take(imported) == (ImportVerdict.REFUSED, FORGED)


@pytest.mark.parametrize(
    ("at_ms", "is_before"),
    [(None, True), (0, True), (2_000 + TOLERANCE_MS, True), (2_001 + TOLERANCE_MS, False)],
)
async def test_only_what_the_gateway_dates_before_the_import_is_from_before(
    imported: ImportedPayments, at_ms: int | None, *, is_before: bool
) -> None:
    """A hostile file with the numbers of later payments would make charges fail that took money."""
    await take(imported)
    payment = msgspec.structs.replace(PAYMENT, payment_id=ID, at_ms=at_ms)

    assert await imported.of_before(MERCHANT, [payment]) == ({ID} if is_before else set())


async def test_a_paid_order_for_a_control_query_is_another_one_that_was_received(imported: ImportedPayments) -> None:
    """A search for an order whose payment was given back shows nothing about the search."""
    assert await imported.paid_order(MERCHANT, other_than="") is None
    await take(imported)
    await take(imported, payment_id="320025000002", order_id="A-2")
    await take(imported, payment_id="320025000003", order_id="A-3", status=PaymentStatus.REFUNDED)

    assert await imported.paid_order(MERCHANT, other_than="") == "A-2"
    assert await imported.paid_order(MERCHANT, other_than="A-2") == "A-1"


async def test_an_imported_payment_is_known_and_listed(book: Book, imported: ImportedPayments) -> None:
    """Its order is then read before a refund; that it was received, only the gateway says."""
    known = KnownPayments(book.database, digests_of(book.database))
    await take(imported)

    assert await known.get(MERCHANT, ID) == KnownPayment("A-1", "LKR", None)
    for wanted in (PaymentFilter(), PaymentFilter(order_id="A-1"), PaymentFilter(payment_id=ID)):
        [listed] = await known.list(wanted, limit=9)
        assert [(each.kind, each.id) for each in listed.owners] == [("import", IMPORTED.place)]
        assert listed.order_id == "A-1"


async def events_in(book: Book) -> list[str]:
    """Gives the types of the events that wait to be sent, oldest first."""
    rows = await book.database.read(all_rows(Statement(query("SELECT type FROM outbox ORDER BY id"), ())))
    return [str(kind) for (kind,) in rows]


async def test_an_installment_that_was_imported_is_no_news(book: Book, imported: ImportedPayments) -> None:
    """A shop that ships for each installment must not ship a second time because it moved."""
    subscriptions = Subscriptions(book.database, new_id, digests_of(book.database))
    owner = SubscriptionOwner(account="gateway", merchant=MERCHANT, principal="shop")
    first, second = paid(1), paid(2)
    await take(imported, payment_id=first.payment, subscription_id=first.subscription_id)
    await subscriptions.note(owner, [first], now_ms=1, is_news=False)
    assert await events_in(book) == []

    await subscriptions.note(owner, [first, second], now_ms=2)

    assert (await events_in(book)).count("subscription.installment_paid") == 1


async def test_what_was_noted_before_its_owner_was_imported_is_told(book: Book, imported: ImportedPayments) -> None:
    """It came to Payrelay and not to the shop, which would never hear of it."""
    subscriptions = Subscriptions(book.database, new_id, digests_of(book.database))
    nobody = SubscriptionOwner(account="gateway", merchant=MERCHANT)
    first, second = paid(1), paid(2)
    await subscriptions.note(nobody, [first, second], now_ms=1)
    await take(imported, payment_id=first.payment, subscription_id=first.subscription_id)

    owner = msgspec.structs.replace(nobody, principal="shop")
    await subscriptions.note(owner, [first], now_ms=2, is_news=False)

    assert await events_in(book) == ["subscription.installment_paid"]


def test_a_payment_without_a_date_was_made_before_its_import() -> None:
    """The latest moment that it can have been made at."""
    undated = msgspec.structs.replace(IMPORTED, paid_at_ms=None)

    assert (IMPORTED.latest_ms, undated.latest_ms) == (1_000, 2_000)
    assert isinstance(undated, ImportedPayment)
    assert OPERATION.merchant == MERCHANT
