# ruff: noqa: S608 - what is put into the texts are the forgeries that are named here

"""What the journal makes of a row or a history that somebody without the key has written: nothing, and an alert."""

import pytest
from tests.digests import digests_of
from tests.store.conftest import Book, Tamper

from payrelay.core.answers import Answer
from payrelay.core.payments.operation import Event, OperationFilter, State
from payrelay.errors import OperationForged, Outdated
from payrelay.store.alerts import Alerts, AlertSubject
from payrelay.store.engine.database import Statement, all_rows
from payrelay.store.engine.queries import query
from payrelay.store.payments.journal import ClaimedOperation, GuardedOperation
from payrelay.store.payments.resolution import ResolutionStore
from payrelay.store.statements.payments.operations import OPERATIONS

FAR_MS = 2**60
FORGERIES = ("state = 'accepted'", "principal = 'attacker'", "amount_minor = 1", "payment_id = '3'", "row_digest = ''")


async def is_right(book: Book) -> bool:
    """Tells whether all rows have their digests."""
    return all([row.is_right async for row in digests_of(book.database).check(OPERATIONS)])


async def alerted(book: Book) -> list[str]:
    """Gives the rows about which an alert waits."""
    due = await Alerts(book.database, AlertSubject.ROW).lease_due(FAR_MS, leased_until_ms=FAR_MS + 1, limit=10)
    return [alert.subject_id for alert in due]


@pytest.mark.parametrize("forgery", FORGERIES)
async def test_whoever_asks_for_it_is_told_that_it_was_changed(book: Book, tamper: Tamper, forgery: str) -> None:
    """Not that there is none, after which a shop would charge again, nor what the row says now."""
    operation = book.new(1)
    await book.accept(operation)
    await tamper(f"UPDATE operations SET {forgery}")

    for asking in (
        book.journal.get(operation.id),
        book.journal.find_claim(operation.principal if "principal" not in forgery else "attacker", "key/k-1", now_ms=1),
        book.journal.newest_by_key(operation.account, None, "k-1"),
    ):
        with pytest.raises(OperationForged):
            await asking
    assert await alerted(book) == [f"operations/{operation.id}"]


async def test_a_repeat_that_comes_to_be_stored_finds_the_forged_holder_of_its_claim(
    book: Book, tamper: Tamper
) -> None:
    """The claim is held all the same: the repeat is neither stored nor answered with what the row says."""
    await book.accept(book.new(1))
    await tamper("UPDATE operations SET state = 'not_sent'")
    repeat = book.new(2, claim="key/k-1", idempotency_key="k-1")

    with pytest.raises(OperationForged):
        await book.accept(repeat)


async def test_a_forged_holder_of_a_guard_needs_attention(book: Book, tamper: Tamper) -> None:
    """Another request for the order is blocked as by an operation that waits for a person, and learns nothing of it."""
    await book.accept(book.new(1))
    await tamper("UPDATE operations SET state = 'succeeded', principal = 'attacker'")
    blocked = await book.accept(book.new(2, guard="order/A-1", subject="order/A-1"))

    assert isinstance(blocked, GuardedOperation)
    assert (blocked.operation.state, blocked.operation.principal) == (State.NEEDS_ATTENTION, "")


async def test_whatever_looks_for_operations_passes_it_over(book: Book, tamper: Tamper) -> None:
    """The recovery, the status inquiries and the lists work on with the others."""
    for number in (1, 2):
        await book.accept(book.new(number, send_by_ms=5))
    await book.advance(book.new(2), Event.UNKNOWN)
    await tamper("UPDATE operations SET principal = 'attacker'")
    resolution = ResolutionStore(book.database, digests_of(book.database))

    assert await book.journal.stranded(before_ms=FAR_MS) == []
    assert await book.journal.list(OperationFilter(), before=None, limit=10) == []
    assert await resolution.in_state(State.UNKNOWN) == []
    assert await resolution.lease_due(FAR_MS, leased_until_ms=FAR_MS + 1, limit=10) == []


async def test_a_page_goes_on_behind_forged_operations(book: Book, tamper: Tamper) -> None:
    """A page that ended at them would say that there are no others before."""
    for number in range(1, 6):
        await book.accept(book.new(number))
    await tamper("UPDATE operations SET principal = 'attacker' WHERE order_id IN ('A-3', 'A-4')")
    first = await book.journal.list(OperationFilter(), before=None, limit=2)
    second = await book.journal.list(OperationFilter(), before=first[-1].id, limit=2)

    assert [each.order_id for each in (*first, *second)] == ["A-5", "A-2", "A-1"]


@pytest.mark.parametrize("forgery", ["principal = 'attacker'", "amount_minor = 1", "order_id = 'other'"])
async def test_a_change_does_not_make_a_forged_row_right(
    book: Book, tamper: Tamper, answer: Answer, forgery: str
) -> None:
    """The reply comes after the forgery: what it stores covers the operation that was sent, and not the forged row."""
    await book.accept(book.new(1))
    await tamper(f"UPDATE operations SET {forgery}")
    await book.advance(book.new(1), Event.SUCCEEDED, answer)

    assert not await is_right(book)
    with pytest.raises(OperationForged):
        await book.journal.get(book.new(1).id)


@pytest.mark.parametrize("where", ["", ", version = 1, chain = (SELECT hash FROM history WHERE version = 1)"])
async def test_a_row_that_was_put_back_is_not_changed_any_more(
    book: Book, tamper: Tamper, answer: Answer, where: str
) -> None:
    """Even with the digest that it had then: its history says that the gateway has answered since."""
    operation = book.new(1)
    await book.accept(operation)
    before = book.stored(operation)
    [[digest]] = await book.database.read(all_rows(Statement(query("SELECT row_digest FROM operations"), ())))
    await book.advance(operation, Event.SUCCEEDED, answer)
    await tamper(f"UPDATE operations SET state = 'sending', row_digest = '{digest!s}'{where}")

    with pytest.raises(OperationForged):
        await book.journal.get(operation.id)
    with pytest.raises((OperationForged, Outdated)):
        await book.advance(before, Event.LOST)
    assert await book.journal.stranded(before_ms=FAR_MS) == []


@pytest.mark.parametrize(
    "forgery",
    [
        'UPDATE history SET evidence = \'{"reason":"x"}\' WHERE version = 1',
        "UPDATE history SET event = 'looked' WHERE version = 2",
        "DELETE FROM history WHERE version = 2",
        "DELETE FROM history WHERE version = 1",
        "UPDATE history SET hash = ''",
    ],
)
async def test_nothing_is_concluded_from_a_forged_history(book: Book, tamper: Tamper, forgery: str) -> None:
    """How often the gateway showed nothing is read from it: so it could be made to say that a charge never happened."""
    await book.accept(book.new(1))
    await book.advance(book.new(1), Event.UNKNOWN)
    assert len(await book.journal.history(book.new(1).id)) == 2
    await tamper(forgery)

    with pytest.raises(OperationForged):
        await book.journal.history(book.new(1).id)
    assert await alerted(book) == [f"operations/{book.new(1).id}"]


async def test_an_honest_claim_is_found(book: Book) -> None:
    """A row as the journal wrote it is believed: otherwise every repeat would wait for a person."""
    await book.accept(book.new(1))

    assert isinstance(await book.journal.find_claim("shop", "key/k-1", now_ms=1), ClaimedOperation)
    assert await is_right(book)
