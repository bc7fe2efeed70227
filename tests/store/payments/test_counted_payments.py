"""The count of an order's payments, in the transaction that begins the next one, on each engine."""

import asyncio
from functools import partial
from itertools import product

import msgspec
import pytest
from tests.digests import CHAIN_KEY, digests_of
from tests.samples import ASKED
from tests.samples import CHECKOUT as PLAIN_CHECKOUT
from tests.store.conftest import CHARGE, Book, Tamper

from payrelay.core.checkouts.checkout import Checkout, CheckoutState, Details
from payrelay.core.checkouts.counted_payments import (
    CountedPayment,
    Noun,
    PaymentLimit,
    counts_checkout,
    counts_operation,
)
from payrelay.core.checkouts.hosted_payment import CheckoutKind
from payrelay.core.outcomes import Evidence
from payrelay.core.payments.operation import Event, JournalEntry, Kind, Operation, State
from payrelay.store.checkouts import Checkouts
from payrelay.store.digests.rows import RowKey
from payrelay.store.engine.database import Database
from payrelay.store.engine.sealing import Seal
from payrelay.store.payments.counted_payments import TooManyPayments, require_room
from payrelay.store.payments.journal import AcceptedOperation, ClaimedOperation, GuardedOperation

KEY = RowKey(CHAIN_KEY)
DETAILS = Details(secret="s", asked=ASKED)
ORDERS = 20
AT_ONCE = 4


@pytest.fixture
def checkouts(database: Database) -> Checkouts:
    """Gives the stored checkouts."""
    return Checkouts(database, Seal((b"k" * 32,)), digests_of(database))


def limit_of(operation: Operation, payments_max: int = 1) -> PaymentLimit:
    """An order of an operation's, with so many payments."""
    return PaymentLimit(
        merchant=operation.merchant,
        order_id=operation.order_id or "",
        payments_max=payments_max,
    )


async def accept(book: Book, operation: Operation, limit: PaymentLimit) -> object:
    """Stores a charge as an app makes it; gives what stands in its way, or what the journal says."""
    entry = JournalEntry(version=1, at_ms=1_000, event=None, state=operation.state, evidence=Evidence())
    try:
        return await book.journal.accept(
            operation, entry, CHARGE, conflicts_with=None, now_ms=1_000, condition=partial(require_room, limit, KEY)
        )
    except TooManyPayments as refused:
        return refused.payment


def page(number: int, operation: Operation, **members: object) -> Checkout:
    """A checkout for the order of an operation."""
    own = {
        "id": f"chk_{number:026d}",
        "merchant": operation.merchant,
        "principal": operation.principal,
        "order_id": operation.order_id,
        "guard": operation.order_id,
        "key_hash": f"page-{number}",
        "kind": CheckoutKind.PAYMENT,
        "amount_minor": 100,
    }
    return msgspec.structs.replace(PLAIN_CHECKOUT, **(own | members))


async def test_the_second_payment_is_refused_and_leaves_no_trace(book: Book) -> None:
    """The order is paid: nothing of the second charge is stored, and the first is named."""
    first, second = book.new(1), book.new(2, order_id="A-1", guard="order/A-1", subject="order/A-1")
    await book.accept(first)
    await book.advance(first, Event.SUCCEEDED)

    refused = await accept(book, second, limit_of(first))
    assert refused == CountedPayment(noun=Noun.OPERATION, id=first.id, is_made=True)
    assert await book.journal.get(second.id) is None
    assert isinstance(await accept(book, second, limit_of(first, 2)), AcceptedOperation)


async def test_a_repeat_and_a_guard_come_before_the_count(book: Book) -> None:
    """Who sends the same again gets its answer, and who comes while a charge is open is told to wait."""
    first = book.new(1)
    await book.accept(first)
    other = book.new(2, order_id="A-1", guard="order/A-1", subject="order/A-1")
    assert isinstance(await accept(book, other, limit_of(first)), GuardedOperation)
    await book.advance(first, Event.SUCCEEDED)

    assert isinstance(await accept(book, book.new(1, id="op_again"), limit_of(first)), ClaimedOperation)


@pytest.mark.parametrize("members", [{"merchant": "other"}, {"order_id": "A-9"}])
async def test_another_order_is_another_count(book: Book, members: dict[str, str]) -> None:
    """Of another merchant too, whose orders may have equal names."""
    first = book.new(1, principal="another")
    await book.accept(first)
    await book.advance(first, Event.SUCCEEDED)
    assert isinstance(await accept(book, book.new(3), limit_of(first)), CountedPayment)
    limit = msgspec.structs.replace(limit_of(first), **members)

    assert isinstance(await accept(book, book.new(2), limit), AcceptedOperation)


async def test_an_operation_counts_as_the_core_says(book: Book) -> None:
    """The statement and the pure function are one law, for every state of every kind."""
    cases = dict(enumerate(product(Kind, State), start=1))
    found, expected = {}, {}
    for number, (kind, state) in cases.items():
        first = book.new(number, kind=kind, state=state, guard=None)
        await book.accept(first)
        outcome = await accept(book, book.new(number + len(cases), order_id=first.order_id), limit_of(first))
        if isinstance(outcome, CountedPayment):
            found[kind, state] = outcome
        if counts_operation(kind, state):
            is_made = state is State.SUCCEEDED
            expected[kind, state] = CountedPayment(noun=Noun.OPERATION, id=first.id, is_made=is_made)
    assert found == expected


async def test_a_checkout_counts_as_the_core_says(book: Book, checkouts: Checkouts) -> None:
    """So a page that came to nothing gives its place back, and an approval without an amount never had one."""
    found, expected = {}, {}
    for number, case in enumerate(product(CheckoutKind, (None, 100), CheckoutState), start=1):
        (kind, amount_minor, state), charge = case, book.new(number)
        opened = page(number, charge, kind=kind, state=state, amount_minor=amount_minor)
        await checkouts.add(opened, DETAILS)
        outcome = await accept(book, charge, limit_of(charge))
        if isinstance(outcome, CountedPayment):
            found[case] = outcome
        if counts_checkout(kind, amount_minor, state):
            is_made = state is not CheckoutState.OPEN
            expected[case] = CountedPayment(noun=Noun.CHECKOUT, id=opened.id, is_made=is_made)
    assert found == expected


async def test_a_page_counts_charges_too(book: Book, checkouts: Checkouts) -> None:
    """A page for a paid order isn't opened, and nothing of it is stored."""
    charge = book.new(1)
    await book.accept(charge)

    with pytest.raises(TooManyPayments) as refused:
        await checkouts.add(page(1, charge), DETAILS, partial(require_room, limit_of(charge), KEY))
    assert refused.value.payment == CountedPayment(noun=Noun.OPERATION, id=charge.id, is_made=False)
    assert await checkouts.get(page(1, charge).id) is None
    assert await checkouts.add(page(1, charge), DETAILS, partial(require_room, limit_of(charge, 2), KEY))
    assert not await checkouts.add(page(2, charge), DETAILS, partial(require_room, limit_of(charge, 9), KEY))


async def test_of_a_charge_and_a_page_at_once_one_begins(book: Book, checkouts: Checkouts) -> None:
    """They are rows of two tables, which no index joins; and still neither begins unseen by the other."""

    async def charge(number: int) -> bool:
        operation = book.new(number * AT_ONCE)
        return isinstance(await accept(book, operation, limit_of(operation)), AcceptedOperation)

    async def opened(number: int) -> bool:
        operation = book.new(number * AT_ONCE)
        try:
            return await checkouts.add(
                page(number, operation), DETAILS, partial(require_room, limit_of(operation), KEY)
            )
        except TooManyPayments:
            return False

    begun = await asyncio.gather(*(begin(number) for number in range(1, ORDERS + 1) for begin in (charge, opened)))
    assert [sum(begun[at : at + 2]) for at in range(0, len(begun), 2)] == [1] * ORDERS


@pytest.mark.parametrize("forgery", ["state = 'declined'", "kind = 'refund'", "principal = 'other'"])
async def test_a_forged_row_stands_in_the_way(book: Book, tamper: Tamper, forgery: str) -> None:
    """A charge that was made is written off as declined: without its digest nobody knows, and no phone pays again."""
    charge = book.new(1)
    await book.accept(charge)
    await book.advance(charge, Event.SUCCEEDED)
    await tamper(f"UPDATE operations SET {forgery}")  # noqa: S608, the forgeries are named above
    again = book.new(2, order_id=charge.order_id)

    assert await accept(book, again, limit_of(charge)) == CountedPayment(
        noun=Noun.OPERATION, id=charge.id, is_made=False
    )
