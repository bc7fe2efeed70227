"""Many operations at the same moment, which both engines store together."""

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any, Self

import asyncpg
import msgspec
import pytest
from tests.store.conftest import Book

from payrelay.clock import Clock
from payrelay.core.answers import Answer
from payrelay.core.payments.operation import Event, Operation, State
from payrelay.errors import Outdated, StoreDoubtful, StoreError
from payrelay.store import open_database
from payrelay.store.payments.journal import AcceptedOperation, ClaimedOperation, GuardedOperation

MANY = 60
NOW_MS = 1_000
DEADLOCK_MS = 20
"""How soon our sessions look for a deadlock; the others' never do, so that ours is the one that is undone."""

_CLONE = """
    INSERT INTO operations SELECT (jsonb_populate_record(operations, $2::jsonb)).* FROM operations WHERE id = $1"""
_WAITS = "SELECT pid FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()"


def answer_to(number: int) -> Answer:
    """Gives an answer that tells of which operation it is."""
    return Answer(http_status=200, body=b'{"status":1,"msg":"OK","data":%d}' % number)


async def test_operations_of_one_moment_are_each_stored_as_they_are(book: Book) -> None:
    """Each with its own order, answer and history: one shop's reply must never be given to another."""
    operations = [book.new(number, principal=f"shop-{number}", amount_minor=number + 1) for number in range(MANY)]
    accepted = await asyncio.gather(*(book.accept(each) for each in operations))
    assert all(isinstance(each, AcceptedOperation) for each in accepted)
    answers = [answer_to(number) for number in range(MANY)]
    await asyncio.gather(
        *(book.advance(each, Event.SUCCEEDED, answer) for each, answer in zip(operations, answers, strict=True))
    )

    async def repeated(operation: Operation) -> ClaimedOperation | None:
        return await book.journal.find_claim(operation.principal, operation.claim or "", now_ms=NOW_MS)

    for operation, answer, found in zip(
        operations, answers, await asyncio.gather(*map(repeated, operations)), strict=True
    ):
        assert found is not None
        assert (found.answer, found.operation.amount_minor) == (answer, operation.amount_minor)
        assert [entry.state for entry in await book.journal.history(operation.id)] == [State.SENDING, State.SUCCEEDED]


async def test_of_operations_of_one_moment_the_losers_learn_who_won(book: Book) -> None:
    """Of two with one claim, or with one guard, one is stored; the other is told which."""
    first = [book.new(number) for number in range(MANY)]
    same_claim = [msgspec.structs.replace(each, id=f"op_c{each.id[4:]}") for each in first[:20]]
    same_guard = [
        msgspec.structs.replace(each, id=f"op_g{each.id[4:]}", claim=f"key/g-{number}")
        for number, each in enumerate(first[20:40])
    ]
    results = await asyncio.gather(*(book.accept(each) for each in [*first, *same_claim, *same_guard]))
    assert all(isinstance(each, AcceptedOperation) for each in results[:MANY])
    claimed, guarded = results[MANY : MANY + 20], results[MANY + 20 :]
    assert [type(each) for each in claimed] == [ClaimedOperation] * 20
    assert [type(each) for each in guarded] == [GuardedOperation] * 20
    assert [each.operation.id for each in (*claimed, *guarded)] == [each.id for each in first[:40]]


async def test_a_change_that_comes_too_late_stops_no_other(book: Book) -> None:
    """It was decided on a row that another writer has changed; its writer decides anew, and the others are done."""
    operations = [book.new(number) for number in range(MANY)]
    await asyncio.gather(*(book.accept(each) for each in operations))
    late = operations[7]
    await book.advance(late, Event.SUCCEEDED, answer_to(7))
    results = await asyncio.gather(
        *(book.advance(each, Event.SUCCEEDED, answer_to(1)) for each in operations), return_exceptions=True
    )
    assert [type(each) for each in results] == [Operation] * 7 + [Outdated] + [Operation] * (MANY - 8)
    assert await book.journal.answer_of(late.id) == answer_to(7)


async def test_a_change_whose_guard_is_taken_stops_no_other(book: Book) -> None:
    """The database refuses the whole statement for it, so that the others are stored by one of their own."""
    operations = [book.new(number) for number in range(MANY)]
    await asyncio.gather(*(book.accept(each) for each in operations))
    taken = msgspec.structs.replace(book.stored(operations[7]), guard=operations[8].guard)
    results = await asyncio.gather(
        *(book.advance(taken if each is operations[7] else each, Event.UNKNOWN) for each in operations),
        return_exceptions=True,
    )
    assert [type(each) for each in results] == [Operation] * 7 + [Outdated] + [Operation] * (MANY - 8)


@pytest.fixture
async def books(postgresql_url: str) -> AsyncIterator[list[Book]]:
    """Gives the journals of two processes on one shared database."""
    url = f"{postgresql_url}&deadlock_timeout={DEADLOCK_MS}"
    databases = [await open_database(url, clock=Clock(), owner=True) for _ in range(2)]
    yield [Book(each) for each in databases]
    for each in databases:
        await each.close()


class Others:
    """Sessions of others: some that hang in the midst of a transaction, and one that looks on."""

    def __init__(self, hanging: list[Any], watching: Any) -> None:  # noqa: ANN401 - asyncpg is shipped without types
        self._hanging = hanging
        self._transactions = [each.transaction() for each in hanging]
        self._watching = watching

    async def __aenter__(self) -> Self:
        """Begins the transactions."""
        for each in self._transactions:
            await each.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        """Undoes those that are left."""
        while self._transactions:
            await self.undo()

    async def undo(self) -> None:
        """Undoes the newest transaction."""
        await self._transactions.pop().rollback()

    async def take(self, sample: Operation, guard: str, *, session: int = 0) -> None:
        """Stores an operation with a guard, in a transaction."""
        changed = {"id": f"op_{guard}", "claim": f"key/{guard}", "guard": guard}
        await self._hanging[session].execute(_CLONE, sample.id, json.dumps(changed))

    async def waiting(self, count: int = 1) -> list[int]:
        """Gives the processes of sessions that wait for a lock, once there are so many."""
        while len(found := [row[0] for row in await self._watching.fetch(_WAITS)]) < count:
            pass
        return found

    async def end(self, process: int) -> None:
        """Ends a session."""
        await self._watching.execute("SELECT pg_terminate_backend($1)", process)


@pytest.fixture
async def others(postgresql_url: str) -> AsyncIterator[Others]:
    """Gives sessions of others; those that hang wait for locks as long as it takes."""
    hanging = [await asyncpg.connect(f"{postgresql_url}&deadlock_timeout=3600000") for _ in range(2)]
    watching = await asyncpg.connect(postgresql_url)
    yield Others(hanging, watching)
    for each in (*hanging, watching):
        await each.close()


def orders(book: Book, names: str) -> list[Operation]:
    """Gives operations on orders of these names."""
    return [book.new(number, guard=f"order/{name}") for number, name in enumerate(names)]


@pytest.mark.postgresql
async def test_of_crossed_claims_and_guards_of_two_processes_one_is_stored_each(books: list[Book]) -> None:
    """Both store at the same moment, in opposite orders; whoever loses learns of an operation that is stored."""

    def asked_by(process: int) -> list[Operation]:
        numbers = range(MANY) if process == 0 else reversed(range(MANY))
        claims = {n: (n + 1) % MANY if n % 3 else n + process * MANY for n in numbers}
        return [books[0].new(n, id=f"op_{process}{n:025d}", claim=f"key/k-{claim}") for n, claim in claims.items()]

    asked = [(books[process], each) for process in (0, 1) for each in asked_by(process)]
    results = await asyncio.gather(*(book.accept(each) for book, each in asked))
    stored = [each.operation for each in results if isinstance(each, AcceptedOperation)]
    assert len({each.guard for each in stored}) == len({each.claim for each in stored}) == len(stored)
    assert {each.operation.id for each in results} == {each.id for each in stored}
    for (_, each), result in zip(asked, results, strict=True):
        assert each.guard == result.operation.guard or each.claim == result.operation.claim


@pytest.mark.postgresql
async def test_a_deadlock_with_another_process_costs_nobody_his_operation(books: list[Book], others: Others) -> None:
    """The server undoes one of two that wait for each other; what was in it goes on one by one."""
    book, sample = books[0], books[0].new(9_999)
    await book.accept(sample)
    async with others:
        await others.take(sample, "order/C")
        await others.take(sample, "order/B", session=1)
        accepting = asyncio.gather(*(book.accept(each) for each in orders(book, "XABC")))
        await others.waiting()  # the batch holds order A, and waits for order B
        taking = asyncio.ensure_future(others.take(sample, "order/A"))
        await others.waiting(2)
        await others.undo()  # order B is free: the batch goes on, and waits for order C, whose holder waits for it
        await asyncio.gather(taking, return_exceptions=True)  # ours may be back before the other has order A
    assert [type(each) for each in await accepting] == [AcceptedOperation] * 4


@pytest.mark.postgresql
async def test_a_batch_whose_session_is_lost_leaves_doubt_for_each_and_is_not_repeated(
    books: list[Book], others: Others
) -> None:
    """It may be stored, so that each caller looks for itself. Here it was not, and nothing stored it later."""
    book, sample = books[0], books[0].new(9_999)
    await book.accept(sample)
    async with others:
        await others.take(sample, "order/A")
        operations = orders(book, "XABC")
        accepting = asyncio.gather(*(book.accept(each) for each in operations), return_exceptions=True)
        [process] = await others.waiting()
        await others.end(process)
        assert [type(each) for each in await accepting] == [AcceptedOperation, *[StoreDoubtful] * 3]
        assert [await book.journal.get(each.id) is not None for each in operations] == [True, False, False, False]


@pytest.mark.postgresql
async def test_a_value_that_the_database_cannot_hold_stops_no_other(books: list[Book]) -> None:
    """The whole statement is refused for it."""
    operations = [books[0].new(number, request_id="a\0" if number == 7 else "r") for number in range(20)]
    results = await asyncio.gather(*(books[0].accept(each) for each in operations), return_exceptions=True)
    assert [type(each) for each in results] == [AcceptedOperation] * 7 + [StoreError] + [AcceptedOperation] * 12
