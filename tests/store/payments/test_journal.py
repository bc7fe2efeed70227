import asyncio
from typing import Any

import msgspec
import pytest
from tests.core.test_fingerprints import later
from tests.digests import digests_of
from tests.store.conftest import CHARGE

from payrelay.core.answers import Answer
from payrelay.core.calls import Charge
from payrelay.core.outcomes import Evidence
from payrelay.core.payments.operation import (
    Event,
    Kind,
    OperationFilter,
    Retention,
    State,
    advance,
    captured_guard,
)
from payrelay.core.payments.schedules import NEVER_MS
from payrelay.errors import OperationForged, Outdated, StoreError, StoreUnusable
from payrelay.store.engine.database import Database, Statement, Unit, Value
from payrelay.store.engine.queries import query
from payrelay.store.engine.sealing import Seal
from payrelay.store.payments.journal import AcceptedOperation, ClaimedOperation, GuardedOperation, Journal

Book = Any  # conftest.Book; test folders are not packages, so that it can't be imported
AT_ONCE = 20
RETENTION = Retention(keyed_ms=30_000, unkeyed_ms=10_000)


async def test_what_is_accepted_is_read_back_whole(book: Book) -> None:
    """Every member counts: a restart knows nothing but this row."""
    ids = {"payment_id": "320025071278", "subscription_id": "420075039251", "customer_id": "cus_1"}
    operation = book.new(1, result_ref="r" * 64, **ids)

    accepted = await book.accept(operation)
    assert isinstance(accepted, AcceptedOperation)
    assert await book.journal.get(operation.id) == accepted.operation
    assert msgspec.structs.replace(accepted.operation, chain="") == operation
    for name, value in ids.items():
        assert await book.journal.list(msgspec.convert({name: value}, OperationFilter), before=None, limit=2) == [
            accepted.operation
        ]
        assert await book.journal.list(msgspec.convert({name: "other"}, OperationFilter), before=None, limit=2) == []


async def test_what_is_unknown_is_none(book: Book) -> None:
    """A client asks for ids that were never given."""
    assert await book.journal.get("op_1") is None
    assert await book.journal.answer_of("op_1") is None
    assert await book.journal.history("op_1") == []
    assert await book.journal.find_claim("shop", "key/k-1", now_ms=0) is None
    with pytest.raises(LookupError):
        await book.journal.call_of("op_1")


async def test_the_call_is_read_back(book: Book) -> None:
    """Settling compares what the gateway shows with what was asked."""
    call = Charge(
        authorize=True, order_id="Ω", items="x", currency="USD", amount_minor=10**15, customer_token="t", custom_1=""
    )
    await book.accept(book.new(1), call=call)

    assert await book.journal.call_of(book.new(1).id) == call


async def test_a_claim_finds_its_holder_and_the_answer(book: Book, answer: Answer) -> None:
    """That is a replay: one look, byte for byte the same answer."""
    await book.accept(book.new(1))
    done = await book.advance(book.new(1), Event.SUCCEEDED, answer)

    assert await book.journal.find_claim("shop", "key/k-1", now_ms=2_000) == ClaimedOperation(done, answer)


async def test_a_claim_is_the_principals_own(book: Book) -> None:
    """Two shops may use the same key for different things."""
    await book.accept(book.new(1))

    assert await book.journal.find_claim("other", "key/k-1", now_ms=0) is None
    assert isinstance(await book.accept(book.new(2, principal="other", claim="key/k-1")), AcceptedOperation)


async def test_a_held_claim_is_answered_with_its_holder(book: Book, answer: Answer) -> None:
    """The repeat is told what became of the first request, and nothing is stored of it."""
    await book.accept(book.new(1))
    done = await book.advance(book.new(1), Event.SUCCEEDED, answer)

    assert await book.accept(book.new(2, claim="key/k-1")) == ClaimedOperation(done, answer)
    assert await book.journal.get(book.new(2).id) is None


async def test_a_claim_is_looked_at_before_a_guard(book: Book) -> None:
    """A repeat of a charge under way must find itself, not be told that its own order is locked."""
    await book.accept(book.new(1))

    assert await book.accept(book.new(2, claim="key/k-1", guard="order/A-1")) == ClaimedOperation(
        book.stored(book.new(1)), None
    )


async def test_a_lapsed_claim_is_taken_over(book: Book, answer: Answer) -> None:
    """After 30 days the key is free, although nobody has cleaned up."""
    await book.accept(book.new(1))
    done = await book.advance(book.new(1), Event.SUCCEEDED, answer)
    ends_at_ms = done.claim_ends_at_ms

    assert isinstance(await book.accept(book.new(2, claim="key/k-1"), now_ms=ends_at_ms - 1), ClaimedOperation)
    assert await book.journal.find_claim("shop", "key/k-1", now_ms=ends_at_ms) is None
    assert isinstance(await book.accept(book.new(2, claim="key/k-1"), now_ms=ends_at_ms), AcceptedOperation)
    assert (await book.journal.get(done.id)).claim is None


async def test_a_claim_that_was_taken_over_is_not_taken_back(book: Book, answer: Answer) -> None:
    """A late change of the old operation must neither fail nor steal the key from the new one."""
    await book.accept(book.new(1))
    done = await book.advance(book.new(1), Event.SUCCEEDED, answer)
    await book.accept(book.new(2, claim="key/k-1"), now_ms=done.claim_ends_at_ms)

    entry = (await book.journal.history(done.id))[-1]
    late = msgspec.structs.replace(done, version=3, payment_id="320025071278")
    await book.journal.record(late, msgspec.structs.replace(entry, version=3), None)

    assert (await book.journal.find_claim("shop", "key/k-1", now_ms=0)).operation.id == book.new(2).id


async def test_operations_without_claim_never_meet(book: Book) -> None:
    """With the repeat window at 0 and no key nothing is a repeat."""
    assert isinstance(await book.accept(book.new(1, claim=None, idempotency_key=None)), AcceptedOperation)
    assert isinstance(await book.accept(book.new(2, claim=None, idempotency_key=None)), AcceptedOperation)


async def test_a_held_guard_is_answered_with_its_holder(book: Book) -> None:
    """Two charges of one order at once would be two payments."""
    await book.accept(book.new(1))

    assert await book.accept(book.new(2, guard="order/A-1", principal="other")) == GuardedOperation(
        book.stored(book.new(1))
    )
    assert await book.journal.get(book.new(2).id) is None
    assert await book.journal.history(book.new(2).id) == []


async def test_a_guard_is_the_merchants_own(book: Book) -> None:
    """Two merchants may number their orders alike."""
    await book.accept(book.new(1))

    assert isinstance(await book.accept(book.new(2, guard="order/A-1", merchant="fedcba9876543210")), AcceptedOperation)


async def test_a_final_operation_releases_the_guard(book: Book) -> None:
    """A declined charge is tried again with another card."""
    await book.accept(book.new(1))
    await book.advance(book.new(1), Event.DECLINED)

    assert isinstance(await book.accept(book.new(2, guard="order/A-1")), AcceptedOperation)


async def test_a_captured_authorization_conflicts_for_good(book: Book) -> None:
    """An authorization is captured once. Its guard is free again, and only the conflicting guard says so."""
    capture = book.new(1, kind=Kind.CAPTURE, subject="authorization/h", guard="authorization/h")
    await book.accept(capture)
    done = await book.advance(capture, Event.SUCCEEDED)
    second = book.new(2, kind=Kind.CAPTURE, subject="authorization/h", guard="authorization/h")
    bar = captured_guard("authorization/h")

    assert await book.accept(second, conflicts_with=bar) == GuardedOperation(done)
    assert await book.journal.get(second.id) is None
    assert isinstance(
        await book.accept(book.new(3), conflicts_with=captured_guard("authorization/i")), AcceptedOperation
    )


async def test_of_many_with_one_claim_one_is_accepted(book: Book) -> None:
    """An app that repeats at once must not charge twice, whatever the order of arrival."""
    results = await asyncio.gather(*[book.accept(book.new(n, claim="key/k")) for n in range(AT_ONCE)])

    assert sum(isinstance(result, AcceptedOperation) for result in results) == 1
    assert {result.operation.claim for result in results if isinstance(result, ClaimedOperation)} == {"key/k"}
    assert len(await book.journal.list(OperationFilter(), before=None, limit=AT_ONCE)) == 1


async def test_of_many_with_one_guard_one_is_accepted(book: Book) -> None:
    """Two clients that charge the same order at once must not both succeed."""
    results = await asyncio.gather(*[book.accept(book.new(n, guard="order/A")) for n in range(AT_ONCE)])

    assert sum(isinstance(result, AcceptedOperation) for result in results) == 1
    assert len([result for result in results if isinstance(result, GuardedOperation)]) == AT_ONCE - 1


async def test_of_many_captures_at_once_one_succeeds(book: Book) -> None:
    """Each that is accepted succeeds at once here, so that only the bar can stop the next."""

    async def capture(number: int) -> bool:
        operation = book.new(number, kind=Kind.CAPTURE, subject="authorization/h", guard="authorization/h")
        if not isinstance(
            await book.accept(operation, conflicts_with=captured_guard("authorization/h")), AcceptedOperation
        ):
            return False
        await book.advance(operation, Event.SUCCEEDED)
        return True

    assert sum(await asyncio.gather(*[capture(number) for number in range(AT_ONCE)])) == 1


async def test_a_change_is_stored_with_its_entry_and_its_answer(book: Book, answer: Answer) -> None:
    """State, history and answer never disagree."""
    operation = book.new(1)
    await book.accept(operation)
    done = await book.advance(operation, Event.SUCCEEDED, answer)

    assert await book.journal.get(operation.id) == done
    assert await book.journal.answer_of(operation.id) == answer
    entries = await book.journal.history(operation.id)
    assert [(entry.version, entry.event, entry.state) for entry in entries] == [
        (1, None, State.SENDING),
        (2, Event.SUCCEEDED, State.SUCCEEDED),
    ]
    assert entries[1].evidence.gateway_msg == "Successfully completed"


async def test_an_answer_stays_until_there_is_another(book: Book, answer: Answer) -> None:
    """An entry without an answer says nothing about the answer."""
    await book.accept(book.new(1))
    unknown = await book.advance(book.new(1), Event.UNKNOWN, answer)
    still = await book.advance(unknown, Event.UNKNOWN)

    assert await book.journal.answer_of(still.id) == answer
    other = Answer(http_status=402, body=b"{}")
    await book.advance(still, Event.DECLINED, other)
    assert await book.journal.answer_of(still.id) == other


async def test_what_a_reply_tells_is_stored(book: Book) -> None:
    """A capture learns its order and payment from the reply."""
    capture = book.new(1, kind=Kind.CAPTURE, order_id=None, currency=None)
    await book.accept(capture)
    told = msgspec.structs.replace(
        capture, order_id="A-7", currency="USD", payment_id="3", subscription_id="4", amount_minor=5, result_ref="r"
    )
    done = await book.advance(told, Event.SUCCEEDED)

    assert await book.journal.get(capture.id) == done


async def test_what_a_charge_asked_for_does_not_change(book: Book) -> None:
    """A reply with another order is a difference. A change to another order leaves a row that counts no more."""
    await book.accept(book.new(1))
    await book.advance(book.new(1, order_id="other"), Event.DIFFERED)

    with pytest.raises(OperationForged):
        await book.journal.get(book.new(1).id)


async def test_a_change_of_an_outdated_version_is_refused(book: Book, answer: Answer) -> None:
    """The reply and the worker may bring a change at once; the second must decide again, and leaves no trace."""
    await book.accept(book.new(1))
    first = await book.advance(book.new(1), Event.UNKNOWN)

    with pytest.raises(Outdated):
        await book.advance(book.new(1), Event.SUCCEEDED, answer)
    assert await book.journal.get(first.id) == first
    assert await book.journal.answer_of(first.id) is None
    assert len(await book.journal.history(first.id)) == 2


async def test_a_change_is_chained_to_the_entry_before_it(book: Book) -> None:
    """Whoever forgot to carry the chain along must read again, and not break it."""
    await book.accept(book.new(1))
    operation = await book.journal.get(book.new(1).id)
    changed, entry = advance(operation, Event.UNKNOWN, at_ms=2, retention=RETENTION, evidence=Evidence())

    with pytest.raises(Outdated):
        await book.journal.record(msgspec.structs.replace(changed, chain="0" * 64), entry, None)
    stored = await book.journal.record(changed, entry, None)
    assert stored == await book.journal.get(operation.id)
    assert stored.chain != operation.chain


async def test_a_change_of_nothing_is_refused(book: Book) -> None:
    """An operation that was never stored can't have been sent."""
    with pytest.raises(Outdated):
        await book.advance(book.new(1), Event.SUCCEEDED)


async def test_of_many_changes_at_once_one_is_stored(book: Book) -> None:
    """Each was decided on the same version, so that only one decision holds."""
    await book.accept(book.new(1))
    results = await asyncio.gather(
        *[book.advance(book.new(1), Event.UNKNOWN) for _ in range(AT_ONCE)], return_exceptions=True
    )

    assert sum(isinstance(result, Outdated) for result in results) == AT_ONCE - 1
    assert len(await book.journal.history(book.new(1).id)) == 2


async def test_a_guard_that_another_took_is_outdated(book: Book) -> None:
    """An operation that is reopened may find its order locked; that is a decision to be taken anew, not a crash."""
    await book.accept(book.new(1))
    done = await book.advance(book.new(1), Event.SUCCEEDED)
    await book.accept(book.new(2, guard="order/A-1"))
    entry = (await book.journal.history(done.id))[-1]
    reopened = msgspec.structs.replace(done, version=3, guard="order/A-1")

    with pytest.raises(Outdated):
        await book.journal.record(reopened, msgspec.structs.replace(entry, version=3), None)


async def test_an_entry_of_another_version_is_our_own_mistake(book: Book) -> None:
    """Operation and entry come from one decision; anything else is a bug that must not reach the disk."""
    await book.accept(book.new(1))
    entry = (await book.journal.history(book.new(1).id))[0]

    with pytest.raises(ValueError, match="another version"):
        await book.journal.record(book.new(1, version=2), entry, None)


async def test_the_newest_is_found_by_its_key(book: Book) -> None:
    """A key that was given back and used again stands for the newer operation."""
    await book.accept(book.new(1, claim="key/k", idempotency_key="k"))
    await book.advance(book.new(1, claim="key/k", idempotency_key="k"), Event.NOT_SENT)
    assert (await book.journal.newest_by_key("gateway", "shop", "k")).id == book.new(1).id

    await book.accept(book.new(2, claim="key/k", idempotency_key="k"))
    assert (await book.journal.newest_by_key("gateway", "shop", "k")).id == book.new(2).id
    assert await book.journal.newest_by_key("gateway", "other", "k") is None


async def test_the_newest_of_all_principals_is_found_by_its_key(book: Book) -> None:
    """An operator who gets a key doesn't know its principal."""
    await book.accept(book.new(1, claim="key/k", idempotency_key="k"))
    await book.accept(book.new(2, claim="key/k", idempotency_key="k", principal="other"))

    assert (await book.journal.newest_by_key("gateway", None, "k")).principal == "other"
    assert (await book.journal.newest_by_key("gateway", "shop", "k")).principal == "shop"
    assert await book.journal.newest_by_key("gateway", None, "l") is None
    assert await book.journal.newest_by_key("second", None, "k") is None


async def test_pages_follow_each_other_newest_first(book: Book) -> None:
    """Paging by id neither repeats nor leaves out a row, whatever is added meanwhile."""
    for number in range(5):
        await book.accept(book.new(number))

    first = await book.journal.list(OperationFilter(), before=None, limit=2)
    await book.accept(book.new(9))
    second = await book.journal.list(OperationFilter(), before=first[-1].id, limit=10)
    assert [operation.id for operation in first + second] == [book.new(n).id for n in (4, 3, 2, 1, 0)]


@pytest.mark.parametrize(
    "wanted",
    [
        OperationFilter(principal="other"),
        OperationFilter(account="second"),
        OperationFilter(state=State.ACCEPTED),
        OperationFilter(kind=Kind.REFUND),
        OperationFilter(order_id="A-77"),
        OperationFilter(payment_id="3"),
        OperationFilter(subscription_id="4"),
    ],
    ids=repr,
)
async def test_a_list_holds_what_is_equal_in_a_member(book: Book, wanted: OperationFilter) -> None:
    """A principal that sees another's operations would be a leak."""
    members = {name: value for name, value in msgspec.structs.asdict(wanted).items() if value is not None}
    await book.accept(book.new(1))
    await book.accept(book.new(2, **members))
    await book.accept(book.new(3))

    assert [row.id for row in await book.journal.list(wanted, before=None, limit=9)] == [book.new(2).id]


async def test_a_list_holds_what_is_equal_in_all_members(book: Book) -> None:
    """Filters narrow each other."""
    await book.accept(book.new(1))
    await book.accept(book.new(2, account="second"))
    wanted = OperationFilter(principal="shop", account="second", state=State.SENDING, kind=Kind.CHARGE, order_id="A-2")

    assert [row.id for row in await book.journal.list(wanted, before="op_9", limit=9)] == [book.new(2).id]


async def test_stranded_are_those_whose_time_to_be_sent_is_over(book: Book) -> None:
    """A row under way without its process would otherwise be under way for ever."""
    await book.accept(book.new(1, state=State.ACCEPTED, send_by_ms=5_000))
    await book.accept(book.new(2, send_by_ms=7_000))
    await book.accept(book.new(3, send_by_ms=1_000))
    await book.advance(book.new(3), Event.UNKNOWN)

    assert [row.id for row in await book.journal.stranded(before_ms=7_000)] == [book.new(1).id]
    assert [row.id for row in await book.journal.stranded(before_ms=NEVER_MS)] == [book.new(1).id, book.new(2).id]


async def test_an_authorization_is_found_by_its_token(book: Book) -> None:
    """A capture must match its authorization, at the same merchant."""
    await book.accept(book.new(1, result_ref="r"))

    assert (await book.journal.authorization_of("r", "0123456789abcdef")).id == book.new(1).id
    assert await book.journal.authorization_of("r", "fedcba9876543210") is None


async def test_lapsed_claims_are_taken_back_some_at_a_time(book: Book) -> None:
    """The index of claims must not grow for ever; the operations themselves stay."""
    for number in range(3):
        await book.accept(book.new(number))
        await book.advance(book.new(number), Event.SUCCEEDED)

    assert await book.journal.prune(31_999, 10) == 0
    assert await book.journal.prune(32_000, 2) == 2
    assert await book.journal.prune(32_000, 2) == 1
    assert await book.journal.find_claim("shop", "key/k-1", now_ms=0) is None
    assert (await book.journal.newest_by_key("gateway", "shop", "k-1")).state is State.SUCCEEDED


def _run(sql: str, *parameters: Value) -> Unit[None]:
    yield Statement(query(sql), parameters)


@pytest.mark.parametrize("sql", ["UPDATE history SET state = 'failed'", "DELETE FROM history"])
async def test_history_is_never_rewritten(book: Book, sql: str) -> None:
    """The database itself refuses, whoever asks."""
    await book.accept(book.new(1))

    with pytest.raises(StoreError, match="append-only"):
        await book.database.write(_run(sql))
    assert len(await book.journal.history(book.new(1).id)) == 1


async def test_a_call_of_a_later_version_is_left_to_it(book: Book) -> None:
    """A newer process beside this one asked for what is unknown here: without it, that would be another call."""
    await book.accept(book.new(1), call=later(CHARGE, added="given"))
    await book.accept(book.new(2), call=later(CHARGE))

    with pytest.raises(StoreUnusable, match="another version"):
        await book.journal.call_of(book.new(1).id)
    assert await book.journal.call_of(book.new(2).id) == CHARGE


async def test_a_sealed_value_does_not_open_in_another_row(book: Book) -> None:
    """Whoever can write to the database must not be able to give one customer another's answer."""
    await book.accept(book.new(1))
    await book.accept(book.new(2))
    swap = "UPDATE operations SET sealed_call = (SELECT sealed_call FROM operations WHERE id = $1)"
    await book.database.write(_run(swap, book.new(1).id))

    assert await book.journal.call_of(book.new(1).id)
    with pytest.raises(StoreUnusable, match="belongs elsewhere"):
        await book.journal.call_of(book.new(2).id)


async def test_another_key_opens_nothing(book: Book, database: Database) -> None:
    """The database alone, stolen, is of no use."""
    await book.accept(book.new(1))

    with pytest.raises(StoreUnusable, match="PAYRELAY_ENCRYPTION_KEY"):
        await Journal(database, Seal((b"x" * 32,)), digests_of(database), chain_key=b"c" * 32).call_of(book.new(1).id)
