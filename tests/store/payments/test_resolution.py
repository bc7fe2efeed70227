import asyncio
import itertools
from typing import Final

import asyncpg
import msgspec
import pytest
from tests.digests import digests_of
from tests.store.conftest import Book
from tests.store.test_checkouts import CHECKOUT, DETAILS, paid

from payrelay.core.checkouts.checkout import CheckoutKind, CheckoutState
from payrelay.core.checkouts.text_holders import HolderKind
from payrelay.core.gateways.signed_text import SignedText
from payrelay.core.payments.operation import PAYMENT_KINDS, WITHOUT_EFFECT, Event, Kind, Operation, State
from payrelay.store.checkouts import Checkouts
from payrelay.store.engine.database import Database
from payrelay.store.engine.sealing import Seal
from payrelay.store.inbox import Inbox
from payrelay.store.payments.resolution import OPEN_OPERATIONS, PAGE, ResolutionStore
from payrelay.store.signed_texts import SignedTexts

MERCHANT: Final = "0123456789abcdef"
MANY_DECLINED: Final = """
    INSERT INTO operations (id, account, merchant, principal, kind, state, version, subject, fingerprint, request_id,
                            created_at_ms, updated_at_ms, send_by_ms, sealed_call)
    SELECT 'op_' || n, 'main', 'm', 'shop', 'charge', CASE WHEN n % 500 = 0 THEN 'needs_attention' ELSE 'declined' END,
           1, '', '', '', 0, 0, 0, ''
    FROM generate_series(1, 10000) AS n;
    ANALYZE operations"""


@pytest.fixture
def resolution(database: Database) -> ResolutionStore:
    """Gives what is under test."""
    return ResolutionStore(database, digests_of(database))


async def lost(book: Book, number: int, **members: object) -> Operation:
    """Stores a charge whose outcome was lost at 2,000 ms; it is due a second later."""
    operation = book.new(number, **members)
    await book.accept(operation)
    return await book.advance(operation, Event.UNKNOWN)


async def test_the_next_inquiry_is_the_earliest_one(book: Book, resolution: ResolutionStore) -> None:
    """The worker asks for it every half second, and for nothing else where none is due."""
    assert await resolution.next_due_ms() is None
    await book.accept(book.new(1))
    assert await resolution.next_due_ms() is None
    first, second = await lost(book, 2), await lost(book, 3)
    await resolution.postpone(first, 9_000)
    assert second.inquire_at_ms == 3_000 == await resolution.next_due_ms()


async def test_what_is_due_is_leased_by_one(book: Book, resolution: ResolutionStore) -> None:
    """Two processes must not inquire at once. Should one die, another leases the operation when that lease ends."""
    await lost(book, 1)
    assert await resolution.lease_due(2_999, leased_until_ms=9_000, limit=5) == []
    (taken,) = await resolution.lease_due(3_000, leased_until_ms=9_000, limit=5)
    assert (taken.state, taken.inquire_at_ms) == (State.UNKNOWN, 9_000)
    assert await resolution.lease_due(8_999, leased_until_ms=20_000, limit=5) == []
    assert [again.id for again in await resolution.lease_due(9_000, leased_until_ms=20_000, limit=5)] == [taken.id]


async def test_many_takers_at_once_get_each_operation_once(book: Book, resolution: ResolutionStore) -> None:
    """However many processes share the store."""
    ids = {(await lost(book, number)).id for number in range(1, 13)}
    takers = (resolution.lease_due(3_000, leased_until_ms=9_000, limit=3) for _ in range(8))
    taken = [operation.id for each in await asyncio.gather(*takers) for operation in each]
    taken += [operation.id for operation in await resolution.lease_due(3_000, leased_until_ms=9_000, limit=20)]
    assert (len(taken), set(taken)) == (12, ids)


async def test_no_more_are_leased_than_asked_for_and_the_longest_due_first(
    book: Book, resolution: ResolutionStore
) -> None:
    """So that none is left behind for ever when there are too many."""
    rows = [await lost(book, number) for number in (1, 2, 3)]
    await resolution.postpone(rows[2], 2_500)
    assert [row.id for row in await resolution.lease_due(5_000, leased_until_ms=9_000, limit=1)] == [rows[2].id]


async def test_only_what_has_not_changed_is_postponed(book: Book, resolution: ResolutionStore) -> None:
    """A change that came meanwhile has set its own time, or made it final."""
    row = await lost(book, 1)
    await resolution.postpone(msgspec.structs.replace(row, version=1), 9_000)
    assert await resolution.next_due_ms() == 3_000
    await book.advance(row, Event.PROVED)
    await resolution.postpone(row, 9_000)
    assert await resolution.next_due_ms() is None


async def test_operations_in_a_state_are_read_page_by_page(book: Book, resolution: ResolutionStore) -> None:
    """Oldest first, each once."""
    rows = [await lost(book, number) for number in (1, 2, 3)]
    assert [row.id for row in await resolution.in_state(State.UNKNOWN)] == [row.id for row in rows]
    assert [row.id for row in await resolution.in_state(State.UNKNOWN, after=rows[1].id)] == [rows[2].id]
    assert await resolution.in_state(State.PENDING) == []
    assert PAGE == 200


@pytest.mark.postgresql
async def test_what_waits_is_planned_once_however_many_were_declined(postgresql_url: str) -> None:
    """The worker and the queue ask for it all day; to plan it anew takes PostgreSQL longer than to read it."""
    connection = await asyncpg.connect(postgresql_url)
    await connection.execute(MANY_DECLINED)
    statement = await connection.prepare(OPEN_OPERATIONS.postgresql)
    counts = [len(await statement.fetch(State.NEEDS_ATTENTION, "", PAGE)) for _ in range(12)]
    custom = await connection.fetchval(
        "SELECT custom_plans FROM pg_prepared_statements WHERE statement = $1", OPEN_OPERATIONS.postgresql
    )
    await connection.close()

    assert counts == [20] * 12
    assert custom == 5, "PostgreSQL tries five plans of their own, and keeps a general one that is as good"


async def test_a_payment_belongs_to_the_operation_that_it_was_found_for(
    book: Book, resolution: ResolutionStore
) -> None:
    """Until that one has failed. A refund names a payment and owns none, and every merchant has his own numbers."""
    asking = book.new(9)
    owner = await lost(book, 1, payment_id="320")
    await lost(book, 2, payment_id="321", kind=Kind.REFUND)
    await lost(book, 3, payment_id="322", merchant="another")
    assert await resolution.owned_by_others(asking, ("320", "321", "322", "323")) == {"320"}
    assert await resolution.owned_by_others(owner, ("320",)) == frozenset()
    await book.advance(owner, Event.DISPROVED)
    assert await resolution.owned_by_others(asking, ("320",)) == frozenset()


async def test_the_store_says_as_the_core_does_whom_a_payment_belongs_to(
    book: Book, resolution: ResolutionStore, database: Database
) -> None:
    """Decisions go by the one, resolution by the other: a payment of two owners would be counted twice."""
    checkouts, inbox = (
        Checkouts(database, Seal((b"k" * 32,)), digests_of(database)),
        Inbox(database, Seal((b"k" * 32,)), digests_of(database)),
    )
    for number, (kind, state) in enumerate(itertools.product(Kind, State), 100):
        payment = paid(str(number))
        owner = book.new(number, kind=kind, state=state, payment_id=payment.payment_id, guard=None)
        await book.accept(owner)
        owns = kind in PAYMENT_KINDS and state not in WITHOUT_EFFECT
        said = (
            await resolution.owned_by_others(book.new(1), (payment.payment_id,)) != frozenset(),
            await checkouts.unowned(CHECKOUT, (payment,)) == (),
            await inbox.owner_of_payment(MERCHANT, payment.payment_id) == (owner.id if owns else None),
        )
        assert said == (owns, owns, True), (kind, state)


async def test_a_competing_operation_is_open_on_the_order(book: Book, resolution: ResolutionStore) -> None:
    """It may turn out to own what is found."""
    asking = book.new(9, order_id="A-1")
    assert not await resolution.has_competing(asking, failed_since_ms=0)
    await lost(book, 2, order_id="A-1", merchant="another")
    await lost(book, 3, order_id="A-1", kind=Kind.REFUND)
    assert not await resolution.has_competing(asking, failed_since_ms=0)
    competing = await lost(book, 4, order_id="A-1", guard="another/guard")
    assert await resolution.has_competing(asking, failed_since_ms=0)
    assert not await resolution.has_competing(competing, failed_since_ms=0)
    await book.advance(competing, Event.PROVED)
    assert not await resolution.has_competing(asking, failed_since_ms=0)


EQUAL: Final[dict[str, object]] = {"amount_minor": 100_000, "first_minor": 100_000}
ASKED: Final[tuple[tuple[dict[str, object], set[str]], ...]] = (
    (EQUAL, {"open", "plan", "other"}),
    ({**EQUAL, "principal": "another"}, {"open", "plan", "other"}),
    ({"amount_minor": 1, "first_minor": 1}, {"open", "plan"}),
    ({**EQUAL, "currency": "USD"}, {"open", "plan"}),
    ({**EQUAL, "merchant": "another"}, set()),
)
"""What a checkout of the order asks for, and which ones may have the payment then."""


async def test_which_checkouts_of_an_order_may_have_a_payment_of_it(
    book: Book, resolution: ResolutionStore, database: Database
) -> None:
    """A form can be paid again whatever its checkout came to: such a payment was never the lost charge's.

    What an open checkout asks for makes no difference, and neither does the amount of a plan, which has installments.
    """
    digests = digests_of(database)
    checkouts = Checkouts(database, Seal((b"k" * 32,)), digests)
    texts = SignedTexts(database, digests, secret=b"s" * 32)
    wrong = []
    cases = itertools.product(CheckoutKind, CheckoutState, ASKED)
    for number, (kind, state, (money, having)) in enumerate(cases):
        members = {"id": f"chk_{number}", "order_id": f"A-{number}", "guard": None, "kind": kind, "state": state}
        in_time = msgspec.structs.replace(CHECKOUT, updated_at_ms=CHECKOUT.expires_at_ms)  # else it was withdrawn
        checkout = msgspec.structs.replace(in_time, key_hash=None, **members | money)
        assert await checkouts.add(checkout, DETAILS)
        asking = book.new(number, order_id=checkout.order_id, merchant=CHECKOUT.merchant)
        text = SignedText(order_id=checkout.order_id, amount_minor=100_000, currency="LKR")
        has_form = any(each.kind is HolderKind.FORM for each in await texts.holders(CHECKOUT.merchant, (text,)))
        found = has_form or await resolution.has_competing(asking, failed_since_ms=0)
        which = "open" if state is CheckoutState.OPEN else "plan" if kind is CheckoutKind.RECURRING else "other"
        if found != (which in having):
            wrong.append((kind, state, money, found))

    assert wrong == []


async def test_what_failed_competes_while_it_may_still_show_itself(book: Book, resolution: ResolutionStore) -> None:
    """Decided too early, its payment would be taken for that of the next charge on the order."""
    asking = book.new(9, order_id="A-1")
    failed = await book.advance(await lost(book, 4, order_id="A-1"), Event.DECIDED_FAILED)
    assert await resolution.has_competing(asking, failed_since_ms=failed.send_by_ms)
    assert not await resolution.has_competing(asking, failed_since_ms=failed.send_by_ms + 1)


async def test_another_refund_counts_unless_it_surely_did_nothing(book: Book, resolution: ResolutionStore) -> None:
    """A part that was refunded would look like the whole."""
    row = await lost(book, 1, payment_id="320", kind=Kind.REFUND)
    assert await resolution.has_other_refund(MERCHANT, "320", "op_other")
    assert not await resolution.has_other_refund(MERCHANT, "320", row.id)
    assert not await resolution.has_other_refund("another", "320", "op_other")
    await book.advance(row, Event.DISPROVED)
    assert not await resolution.has_other_refund(MERCHANT, "320", "op_other")


async def test_the_control_order_is_another_one_that_is_paid(book: Book, resolution: ResolutionStore) -> None:
    """Rather one that was paid before the moment, for the gateway may show a newer one late; else the newer one."""
    assert await resolution.paid_order(MERCHANT, other_than="A-9", before_ms=5_000) is None
    row = await lost(book, 1, payment_id="320")
    assert await resolution.paid_order(MERCHANT, other_than="A-9", before_ms=5_000) is None
    await book.advance(row, Event.PROVED)
    assert await resolution.paid_order(MERCHANT, other_than="A-9", before_ms=5_000) == "A-1"
    assert await resolution.paid_order(MERCHANT, other_than="A-9", before_ms=1_000) == "A-1"
    assert await resolution.paid_order(MERCHANT, other_than="A-1", before_ms=5_000) is None
    assert await resolution.paid_order("another", other_than="A-9", before_ms=5_000) is None
