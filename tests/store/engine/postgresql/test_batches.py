"""Statements that wait at the same moment; the database is stood for by a function that the test lets go on."""

import asyncio
from collections.abc import Callable, Sequence

import pytest

from payrelay.errors import StoreDoubtful, StoreError, StoreUnavailable
from payrelay.store.engine.database import Row, Statement, Value
from payrelay.store.engine.postgresql import batches
from payrelay.store.engine.postgresql.batches import Batches, UndoneError
from payrelay.store.engine.queries import Query, query

READ = query("SELECT $1")
OTHER = query("SELECT $1, 2")


class Server:
    """Carries statements out once it is let; each gives its parameters as its row, and perhaps it fails."""

    def __init__(self) -> None:
        self.seen: list[list[Value]] = []
        self.came: asyncio.Queue[int] = asyncio.Queue()
        self.open = asyncio.Event()
        self.fails: Callable[[list[Value]], None] = lambda _: None
        self.batches = Batches(self.carried_out)

    async def carried_out(self, statements: Sequence[Statement]) -> list[list[Row]]:
        """Notes what came, waits until it may go on, and answers."""
        values = [statement.parameters[0] for statement in statements]
        self.seen.append(values)
        self.came.put_nowait(len(values))
        await self.open.wait()
        self.fails(values)
        return [[(value,)] for value in values]

    def ask(self, value: Value, of: Query = READ, **marks: bool) -> "asyncio.Task[list[Row]]":
        """Begins to carry out one statement."""
        return asyncio.ensure_future(self.batches.rows(Statement(of, (value,), **marks)))

    async def asked(self, *values: Value, is_whole: bool = False) -> "list[asyncio.Task[list[Row]]]":
        """Begins to carry out statements, of which the first has reached the server when this returns."""
        asking = [self.ask(value, is_whole=is_whole) for value in values]
        await self.came.get()
        return asking


@pytest.fixture
async def server() -> Server:
    """Gives a server that isn't let go on yet."""
    return Server()


async def results(asking: "list[asyncio.Task[list[Row]]]") -> list[object]:
    """Gives what each caller got: its value, or the class of its exception."""
    got = await asyncio.gather(*asking, return_exceptions=True)
    return [type(each) if isinstance(each, BaseException) else each[0][0] for each in got]


async def test_the_first_goes_at_once_and_those_that_come_meanwhile_go_together(server: Server) -> None:
    """An idle service answers as quickly as before, and a busy one makes two round trips in place of five."""
    asking = await server.asked("a", "b", "c", "d", "e")
    assert server.seen == [["a"]]
    server.open.set()
    assert await results(asking) == ["a", "b", "c", "d", "e"]
    assert server.seen == [["a"], ["b", "c", "d", "e"]]


async def test_a_lone_statement_waits_for_nothing(server: Server) -> None:
    """It reaches the server in its caller's own turn of the event loop."""
    asking = server.batches.rows(Statement(READ, ("a",)))
    asking.send(None)
    assert server.seen == [["a"]]
    asking.close()


async def test_what_comes_in_one_turn_goes_together_while_another_query_is_under_way(server: Server) -> None:
    """What a batch has woken is one round trip then, and not one for the first and one for the rest."""
    asking = await server.asked("a")
    asking += [server.ask(value, OTHER) for value in ("b", "c", "d")]
    assert await server.came.get() == 3
    assert server.seen == [["a"], ["b", "c", "d"]]
    server.open.set()
    assert await results(asking) == ["a", "b", "c", "d"]


@pytest.mark.parametrize("gone_and_there", [("gone", "there"), ("there", "gone")])
async def test_a_caller_that_goes_away_within_its_turn_has_nothing_carried_out(
    server: Server, gone_and_there: tuple[str, str]
) -> None:
    """As everyone who waits. The others of its turn go their way, also where it came first."""
    asking = await server.asked("a")
    asking += [server.ask(value, OTHER) for value in gone_and_there]
    await asyncio.sleep(0)  # both have come, and wait for the end of the turn
    asking[1 + gone_and_there.index("gone")].cancel()
    server.open.set()
    assert sorted(map(str, await results(asking))) == ["<class 'asyncio.exceptions.CancelledError'>", "a", "there"]
    assert server.seen == [["a"], ["there"]]


async def test_a_close_in_mid_turn_carries_out_what_has_come(server: Server) -> None:
    """An outcome that was handed over is stored, whatever is under way."""
    asking = await server.asked("a")
    asking.append(server.ask("b", OTHER, is_whole=True))
    server.open.set()
    await asyncio.sleep(0)  # "b" has come, and waits for the end of the turn
    await server.batches.close()
    assert await results(asking) == ["a", "b"]


async def test_another_query_does_not_wait(server: Server) -> None:
    """Only statements of one query go together; nothing is gained by a wait for another."""
    await server.asked("a")
    server.ask("b", OTHER)
    assert await server.came.get() == 1
    assert server.seen == [["a"], ["b"]]
    server.open.set()


async def test_what_begins_an_effect_goes_with_nothing_else(server: Server) -> None:
    """It is refused as a whole where another server takes the writes, and outcomes must be stored even then."""
    await server.asked("a", is_whole=True)
    server.ask("b", is_whole=True, begins_effect=True)
    assert await server.came.get() == 1
    server.open.set()


async def test_a_fault_of_one_row_fails_its_caller_alone(server: Server) -> None:
    """The batch was undone as a whole, so that each is carried out once more, by itself."""

    def fail(values: list[Value]) -> None:
        if "bad" in values:
            raise UndoneError if len(values) > 1 else StoreError("bad")

    server.fails = fail
    asking = await server.asked("a", "b", "bad", "c", is_whole=True)
    server.open.set()
    assert await results(asking) == ["a", "b", StoreError, "c"]
    assert sorted(map(str, server.seen[2:])) == ["['b']", "['bad']", "['c']"]


@pytest.mark.parametrize("error", [StoreDoubtful("lost"), StoreUnavailable("full"), ValueError("our own fault")])
async def test_a_batch_whose_end_is_not_known_is_not_repeated(server: Server, error: Exception) -> None:
    """It may be stored. Every one of its callers is told, and the next batch begins anew."""

    def fail(values: list[Value]) -> None:
        if len(values) > 1:
            raise error

    server.fails = fail
    asking = await server.asked("a", "b", "c", is_whole=True)
    server.open.set()
    assert await results(asking) == ["a", type(error), type(error)]
    assert server.seen == [["a"], ["b", "c"]]
    assert await server.batches.rows(Statement(READ, ("d",), is_whole=True)) == [("d",)]


async def test_a_caller_that_goes_away_while_it_waits_has_nothing_carried_out(server: Server) -> None:
    """Nobody would learn what became of it."""
    asking = await server.asked("a", "b", "c")
    asking[1].cancel()
    server.open.set()
    assert await results(asking) == ["a", asyncio.CancelledError, "c"]
    assert server.seen == [["a"], ["c"]]


async def test_a_caller_that_goes_away_later_ends_nobody_elses_statement(server: Server) -> None:
    """A client's disconnect cancels its own request only."""
    asking = await server.asked("a", "b", "c", is_whole=True)
    server.open.set()
    await asking[0]
    server.open.clear()
    await server.came.get()
    asking[1].cancel()
    await asyncio.wait({asking[1]})
    server.open.set()
    assert await results(asking) == ["a", asyncio.CancelledError, "c"]


async def test_a_caller_that_goes_away_has_no_second_try(server: Server) -> None:
    """Of a batch that was undone only those rows are carried out again for which somebody waits."""

    def fail(values: list[Value]) -> None:
        if len(values) > 1:
            asking[1].cancel()
            raise UndoneError

    server.fails = fail
    asking = await server.asked("a", "b", "c", is_whole=True)
    server.open.set()
    assert await results(asking) == ["a", asyncio.CancelledError, "c"]
    assert server.seen == [["a"], ["b", "c"], ["c"]]


async def test_a_batch_of_writes_has_each_key_once_and_in_order(server: Server) -> None:
    """One statement can't make two changes of a row, and rows that are locked in one order wait in no circle."""
    asking = await server.asked("x", "c", "a", "c", "b", is_whole=True)
    server.open.set()
    assert await results(asking) == ["x", "c", "a", "c", "b"]
    assert server.seen == [["x"], ["a", "b", "c"], ["c"]]


async def test_reads_of_one_key_go_together(server: Server) -> None:
    """Many requests of one principal ask by the same first value."""
    asking = await server.asked("x", "a", "a", "a")
    server.open.set()
    assert await results(asking) == ["x", "a", "a", "a"]
    assert server.seen == [["x"], ["a", "a", "a"]]


async def test_nobody_waits_long_for_one_that_waits_for_a_lock(server: Server) -> None:
    """A process that hangs in a transaction may hold one order's guard for seconds; other orders are charged."""
    asking = await server.asked("a", "b", "c", is_whole=True)
    assert await server.came.get() == 2  # after OVERDUE_S, though "a" is still under way
    assert not asking[0].done()
    server.open.set()
    assert await results(asking) == ["a", "b", "c"]


async def test_a_batch_has_a_bound(server: Server) -> None:
    """The server must not be busy with one for long."""
    asking = await server.asked("first", *map(str, range(batches.BATCH_MAX + 1)))
    server.open.set()
    await asyncio.gather(*asking)
    assert [len(each) for each in server.seen] == [1, batches.BATCH_MAX, 1]


async def test_more_than_may_wait_are_refused(server: Server) -> None:
    """Waiting would not help them, and memory has an end."""
    asking = await server.asked(*range(batches.WAITING_MAX + 2))
    [refused], _ = await asyncio.wait(asking, return_when=asyncio.FIRST_COMPLETED)
    assert isinstance(refused.exception(), StoreUnavailable)
    assert server.batches.waiting > batches.BATCH_MAX
    server.open.set()
    await asyncio.wait(asking)


async def test_a_close_lets_what_waits_end_and_takes_no_more(server: Server) -> None:
    """Outcomes of calls that were made are stored before the process ends."""
    asking = await server.asked("a", "b", is_whole=True)
    closing = asyncio.ensure_future(server.batches.close())
    await server.came.get()
    server.open.set()
    await closing
    assert await results(asking) == ["a", "b"]
    with pytest.raises(StoreUnavailable):
        await server.batches.rows(Statement(READ, ("c",)))
    await server.batches.close()
