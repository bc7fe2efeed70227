import asyncio

import msgspec
import pytest
from tests import samples
from tests.digests import digests_of
from tests.store.conftest import Book

from payrelay.core.calls import AllSubscriptions, OneSubscription, PaymentsOfOrder, PaymentsOfSubscription, Read
from payrelay.core.outcomes import Reading
from payrelay.core.payments.operation import Event, Kind
from payrelay.store.engine.database import Database, Row, Statement, Unit
from payrelay.store.engine.queries import query
from payrelay.store.engine.sealing import Seal
from payrelay.store.gateways.readings import ANSWER_BYTES_MAX, ReadingStore, subject_of
from payrelay.store.payments.known_payments import KnownPayments
from payrelay.store.statements.gateways.readings import NOTED_WITH_MAX

MERCHANT = "0123456789abcdef"
ORDER = PaymentsOfOrder(order_id="A-1")
OTHER_ORDER = PaymentsOfOrder(order_id="A-2")
SUBSCRIPTION = PaymentsOfSubscription(subscription_id=7)
CALLS: list[Read] = [ORDER, SUBSCRIPTION, OneSubscription(subscription_id=7), AllSubscriptions()]
RACES = 50
FELT = (Kind.REFUND, Kind.VOID, Kind.RETRY, Kind.CANCEL)
READING = Reading(code=None, msg="Payments", raw_msg=b'"Payments"', raw_data=b'[{"amount":1000.0}]')
PAYMENT = msgspec.structs.replace(samples.PAYMENT, payment_id="320025", at_ms=None)


@pytest.fixture
def last(database: Database) -> ReadingStore:
    """Gives the last answers of an empty store."""
    return ReadingStore(database, Seal((b"k" * 32,)), digests_of(database))


@pytest.mark.parametrize("call", CALLS, ids=subject_of)
async def test_a_stored_answer_is_found(last: ReadingStore, call: Read) -> None:
    """Byte for byte, with when the gateway was asked; for this read of this merchant alone."""
    await last.keep(MERCHANT, call, READING, (), read_at_ms=5_000, answered_at_ms=5_000)
    found = await last.last(MERCHANT, call)
    assert found is not None
    assert (found.reading, found.read_at_ms) == (READING, 5_000)
    assert await last.last("another", call) is None
    assert [each for each in CALLS if await last.last(MERCHANT, each)] == [call]


async def test_a_later_question_is_never_replaced_by_an_earlier_one(last: ReadingStore) -> None:
    """Of two answers the one that was asked for later knows more, whichever comes to be stored last."""
    old = Reading(code=None, msg="old")
    for reading, at_ms in ((READING, 5_000), (old, 4_999)):
        await last.keep(MERCHANT, ORDER, reading, (), read_at_ms=at_ms, answered_at_ms=at_ms)
    found = await last.last(MERCHANT, ORDER)
    assert found is not None
    assert found.reading == READING


@pytest.mark.parametrize("shown", [0, 1, NOTED_WITH_MAX])
async def test_answers_that_are_stored_at_one_moment_are_each_stored(
    last: ReadingStore, database: Database, shown: int
) -> None:
    """They may show one payment, which counts as it was seen last; and two may be to one question."""
    orders = [PaymentsOfOrder(order_id=f"A-{number}") for number in range(8)]
    payments = [msgspec.structs.replace(PAYMENT, payment_id=str(number)) for number in range(shown)]
    refunded = [msgspec.structs.replace(payment, status="REFUNDED") for payment in payments]
    await asyncio.gather(
        *(last.keep(MERCHANT, order, READING, payments, read_at_ms=5_000, answered_at_ms=5_000) for order in orders),
        last.keep(
            MERCHANT, orders[3], Reading(code=None, msg="later"), refunded, read_at_ms=6_000, answered_at_ms=6_000
        ),
        last.keep(
            MERCHANT, orders[5], Reading(code=None, msg="earlier"), payments, read_at_ms=4_000, answered_at_ms=4_000
        ),
    )

    found = [await last.last(MERCHANT, order) for order in orders]
    assert [each and each.reading.msg for each in found] == [READING.msg] * 3 + ["later"] + [READING.msg] * 4
    known = KnownPayments(database, digests_of(database))
    assert [await known.get(MERCHANT, each.payment_id) for each in payments] == [("A-1", "LKR", "REFUNDED")] * shown


async def test_an_answer_with_a_refund_waits_for_none_that_waits_for_it(last: ReadingStore) -> None:
    """Both take the row of their answer, and then that of the payment; else PostgreSQL ends one of the two."""
    refunded = msgspec.structs.replace(PAYMENT, status="REFUNDED")
    for at_ms in range(1, 3 * RACES, 3):
        await asyncio.gather(
            last.keep(MERCHANT, ORDER, READING, [PAYMENT], read_at_ms=at_ms, answered_at_ms=at_ms),
            last.keep(MERCHANT, ORDER, READING, [refunded], read_at_ms=at_ms + 1, answered_at_ms=at_ms + 1),
            last.keep(MERCHANT, ORDER, READING, [PAYMENT], read_at_ms=at_ms + 2, answered_at_ms=at_ms + 2),
        )


async def test_an_answer_lies_sealed_and_bound_to_its_row(last: ReadingStore, database: Database) -> None:
    """It names customers; and moved to another order it must not be shown as that one's."""
    await last.keep(MERCHANT, ORDER, READING, (), read_at_ms=5_000, answered_at_ms=5_000)
    (row,) = await database.read(_rows("SELECT sealed FROM readings"))
    assert isinstance(row[0], bytes)
    assert b"amount" not in row[0]
    await database.write(_rows("UPDATE readings SET subject = 'order/A-2'"))
    assert await last.last(MERCHANT, PaymentsOfOrder(order_id="A-2")) is None


async def test_an_answer_under_a_lost_key_is_none(last: ReadingStore, database: Database) -> None:
    """A read must not fail because of an answer that is only stored for outages."""
    await last.keep(MERCHANT, ORDER, READING, (), read_at_ms=5_000, answered_at_ms=5_000)
    assert await ReadingStore(database, Seal((b"x" * 32,)), digests_of(database)).last(MERCHANT, ORDER) is None


async def test_answers_are_forgotten_on_request(last: ReadingStore) -> None:
    """A customer whose name is in them asks for it; other merchants' and other orders' stay."""
    for merchant in (MERCHANT, "another"):
        for call in (*CALLS, OTHER_ORDER):
            await last.keep(merchant, call, READING, (), read_at_ms=5_000, answered_at_ms=5_000)
    await last.forget(MERCHANT, [ORDER, AllSubscriptions(), ORDER])

    left = [call for call in (*CALLS, OTHER_ORDER) if await last.last(MERCHANT, call)]
    assert left == [SUBSCRIPTION, OneSubscription(subscription_id=7), OTHER_ORDER]
    assert await last.last("another", ORDER) is not None


async def test_a_very_long_answer_is_not_stored(last: ReadingStore, database: Database) -> None:
    """It would crowd out others; its payments are noted all the same."""
    huge = Reading(code=None, msg="", raw_data=b"x" * (ANSWER_BYTES_MAX + 1))
    await last.keep(MERCHANT, ORDER, huge, (PAYMENT,), read_at_ms=5_000, answered_at_ms=5_000)
    assert await last.last(MERCHANT, ORDER) is None
    assert await KnownPayments(database, digests_of(database)).get(MERCHANT, "320025") == ("A-1", "LKR", "RECEIVED")


async def test_old_answers_are_forgotten_some_at_a_time(last: ReadingStore) -> None:
    """The oldest first, and never more at once than was said, so that others get at the store."""
    for number in range(5):
        await last.keep(
            MERCHANT, PaymentsOfOrder(order_id=f"A-{number}"), READING, (), read_at_ms=number, answered_at_ms=number
        )
    assert [await last.prune(4, limit) for limit in (3, 3, 3)] == [3, 1, 0]
    assert await last.last(MERCHANT, PaymentsOfOrder(order_id="A-4")) is not None


async def test_a_payment_is_known_as_it_was_seen_last(last: ReadingStore, database: Database) -> None:
    """By when the gateway was asked: a slow answer must not make a refunded payment one that was received."""
    refunded = msgspec.structs.replace(PAYMENT, status="REFUNDED")
    await last.keep(MERCHANT, ORDER, READING, (PAYMENT,), read_at_ms=5_000, answered_at_ms=5_000)
    await last.note_payments(MERCHANT, (refunded,), 6_000, 6_000)
    await last.keep(MERCHANT, SUBSCRIPTION, READING, (PAYMENT,), read_at_ms=5_999, answered_at_ms=5_999)
    assert await KnownPayments(database, digests_of(database)).get(MERCHANT, "320025") == ("A-1", "LKR", "REFUNDED")
    assert await KnownPayments(database, digests_of(database)).get("another", "320025") is None


async def test_the_payments_of_an_answer_count_where_a_later_answer_is_stored(
    last: ReadingStore, database: Database
) -> None:
    """The later answer may be to another question; what the earlier one shows of a payment is news all the same."""
    await last.keep(MERCHANT, ORDER, READING, (), read_at_ms=5_000, answered_at_ms=5_000)
    await last.keep(MERCHANT, ORDER, READING, (PAYMENT,), read_at_ms=4_999, answered_at_ms=4_999)
    assert await KnownPayments(database, digests_of(database)).get(MERCHANT, "320025") == ("A-1", "LKR", "RECEIVED")


@pytest.mark.parametrize("count", [1, NOTED_WITH_MAX, NOTED_WITH_MAX + 2])
async def test_every_payment_of_an_answer_is_noted(last: ReadingStore, database: Database, count: int) -> None:
    """Some go with the answer in one statement, and any others after it."""
    payments = [msgspec.structs.replace(PAYMENT, payment_id=str(number)) for number in range(1, count + 1)]
    await last.keep(MERCHANT, ORDER, READING, payments, read_at_ms=5_000, answered_at_ms=5_000)
    known = KnownPayments(database, digests_of(database))
    assert [await known.get(MERCHANT, each.payment_id) for each in payments] == [("A-1", "LKR", "RECEIVED")] * count


async def test_a_payment_without_a_readable_amount_is_not_noted(last: ReadingStore, database: Database) -> None:
    """Nothing could be proved by it."""
    odd = msgspec.structs.replace(PAYMENT, amount_minor=None)
    await last.note_payments(MERCHANT, (odd,), 6_000, 6_000)
    assert await KnownPayments(database, digests_of(database)).get(MERCHANT, "320025") is None


async def test_every_change_of_a_charge_is_a_new_version_of_its_order(last: ReadingStore, book: Book) -> None:
    """Its intent as well as its outcome; other orders, other merchants and subscriptions keep theirs."""
    others: list[tuple[str, Read]] = [("another", ORDER), (MERCHANT, OTHER_ORDER), (MERCHANT, SUBSCRIPTION)]
    before = [await last.version(*other) for other in others]
    versions = [await last.version(MERCHANT, ORDER)]
    operation = book.new(1, merchant=MERCHANT)
    await book.accept(operation)
    versions.append(await last.version(MERCHANT, ORDER))
    unknown = await book.advance(operation, Event.UNKNOWN)
    versions.append(await last.version(MERCHANT, ORDER))
    await book.advance(unknown, Event.PROVED)
    versions.append(await last.version(MERCHANT, ORDER))
    assert len(set(versions)) == 4
    assert [await last.version(*other) for other in others] == before


@pytest.mark.parametrize("kind", FELT)
@pytest.mark.parametrize("call", CALLS, ids=subject_of)
async def test_what_is_felt_everywhere_is_a_new_version_of_everything(
    last: ReadingStore, book: Book, kind: Kind, call: Read
) -> None:
    """A refund names a payment, and nobody knows of what order: intent and outcome make every reading old."""
    operation = book.new(1, kind=kind, order_id=None, subscription_id="9")
    versions = [await last.version(MERCHANT, call)]
    await book.accept(operation)
    versions.append(await last.version(MERCHANT, call))
    await book.advance(operation, Event.DIFFERED)
    versions.append(await last.version(MERCHANT, call))
    assert len(set(versions)) == 3
    assert (await last.version("another", call))[0] == 0


async def test_a_capture_is_felt_by_its_order_once_that_is_known(last: ReadingStore, book: Book) -> None:
    """Before, it may be any order's."""
    unknown_order = book.new(1, kind=Kind.CAPTURE, order_id=None)
    known_order = book.new(2, kind=Kind.CAPTURE, order_id="A-1")
    elsewhere = PaymentsOfOrder(order_id="A-9")
    versions = [await last.version(MERCHANT, elsewhere)]
    for operation in (unknown_order, known_order):
        await book.accept(operation)
        versions.append(await last.version(MERCHANT, elsewhere))
    assert versions[0] != versions[1] == versions[2]


async def test_what_was_not_stored_is_no_new_version(last: ReadingStore, book: Book) -> None:
    """A repeat changes nothing at the gateway, and must not make every cached reading useless."""
    await book.accept(book.new(1, kind=Kind.REFUND))
    version = await last.version(MERCHANT, ORDER)
    await book.accept(book.new(1, kind=Kind.REFUND, id="op_00000000000000000000000009"))
    assert await last.version(MERCHANT, ORDER) == version


def _rows(text: str) -> Unit[list[Row]]:
    return (yield Statement(query(text), ()))
