import asyncio
import subprocess
import sys
from pathlib import Path
from typing import Any, Final

import msgspec
import pytest
from tests.sources import ROOT
from tests.store.conftest import CHARGE

from payrelay.clock import Clock
from payrelay.core.answers import Answer
from payrelay.core.database.schema_changes import ANY, AS_IT_IS, MAKE
from payrelay.core.payments.operation import Event, Operation
from payrelay.errors import Outdated, StoreError, StoreUnavailable, StoreUnusable
from payrelay.store import open_database
from payrelay.store.engine.database import POOL_SIZE, Database, Statement, Unit, Value
from payrelay.store.engine.migrations import shipped
from payrelay.store.engine.queries import Query, query, query_for_each
from payrelay.store.engine.sqlite import BATCH_MAX

Book = Any  # conftest.Book; test folders are not packages, so that it can't be imported

ADD = query("INSERT INTO meta (name, value) VALUES ($1, $2) RETURNING name")
NAMES = query("SELECT name FROM meta ORDER BY name")
ADD_EACH = query_for_each(
    "INSERT INTO meta (name, value) SELECT name ->> 0, ''::bytea FROM json_array_elements($1::json) AS name",
    sqlite="INSERT INTO meta (name, value) VALUES ($1, x'')",
)
WRITTEN_MIN = 100
CLEAR: Final = "INCLEAR"
"""In the tokens of a test of its own: all tests' databases lie on one server, and some store other words in clear."""


def add(*names: str, then: Exception | None = None) -> Unit[str]:
    """Adds names one by one, and fails at the end where it is told to."""
    for name in names:
        yield Statement(ADD, (name, b""))
    if then is not None:
        raise then
    return "done"


def add_each(*names: str) -> Unit[int]:
    """Adds all names by one statement; gives how many rows that gave."""
    return len((yield Statement(ADD_EACH, (msgspec.json.encode([[name] for name in names]).decode(),))))


def names() -> Unit[list[Value]]:
    """Reads the names that are there."""
    rows = yield Statement(NAMES, ())
    return [row[0] for row in rows]


def run(text: Query, *parameters: Value) -> Unit[None]:
    """Runs one statement."""
    yield Statement(text, parameters)


def nothing() -> Unit[str]:
    """Asks for nothing."""
    yield from ()
    return "nothing"


async def test_a_unit_gives_its_value(database: Database) -> None:
    """Whatever it decided on what it read."""
    assert await database.write(add("a")) == "done"
    assert await database.read(names()) == ["a"]
    assert await database.write(nothing()) == await database.read(nothing()) == "nothing"


async def test_a_unit_is_whole_or_not_at_all(database: Database) -> None:
    """Half a change is a state that nobody has thought of."""
    with pytest.raises(ZeroDivisionError):
        await database.write(add("a", "b", then=ZeroDivisionError()))

    assert await database.read(names()) == []


async def test_a_unit_that_fails_leaves_the_others_alone(database: Database) -> None:
    """They share a commit, but not a fate."""
    results = await asyncio.gather(
        database.write(add("a", "b")),
        database.write(add("c", then=ZeroDivisionError())),
        database.write(add("d", "d")),
        database.write(run(query("SELECT nonsense FROM meta"))),
        database.write(add("e")),
        return_exceptions=True,
    )

    assert [type(result) for result in results] == [str, ZeroDivisionError, Outdated, StoreError, str]
    assert await database.read(names()) == ["a", "b", "e"]


async def test_a_statement_is_carried_out_for_each_of_its_rows(database: Database) -> None:
    """Hundreds of events are published at once, each as if it had a statement of its own."""
    assert await database.write(add_each("a", "b", "c", "d")) == 0
    assert await database.write(add_each("e")) == 0
    assert await database.read(names()) == ["a", "b", "c", "d", "e"]


async def test_one_wrong_row_of_a_statement_undoes_the_unit(database: Database) -> None:
    """The rows before it must not be left behind: half of what was published would be told twice."""
    with pytest.raises(Outdated):
        await database.write(add_each("a", "b", "b", "c"))

    assert await database.read(names()) == []


async def test_a_wrong_value_is_refused_without_harm(database: Database) -> None:
    """A number beyond 64 bits is our mistake; the database must outlive it."""
    with pytest.raises((StoreError, OverflowError)):
        await database.write(run(query("SELECT $1::bigint"), 2**64))

    await database.ping()


async def test_who_stops_waiting_does_not_disturb_the_others(database: Database) -> None:
    """A client that hangs up cancels nobody else's charge."""
    waiting = [asyncio.ensure_future(database.write(add(name))) for name in "abc"]
    await asyncio.sleep(0)
    waiting[1].cancel()

    results = await asyncio.gather(*waiting, return_exceptions=True)
    assert [type(result) for result in results] == [str, asyncio.CancelledError, str]
    assert {"a", "c"} <= set(await database.read(names()))


async def test_many_writes_at_once_are_all_stored(database: Database, engine: str) -> None:
    """More than one batch, and more than there are connections."""
    # No more than that: a unit waits two seconds for a connection, and a busy machine makes some 300 commits in these.
    count = 4 * POOL_SIZE if engine == "postgresql" else 2 * BATCH_MAX + 1
    await asyncio.gather(*[database.write(add(f"{number:03d}")) for number in range(count)])

    assert await database.read(names()) == [f"{number:03d}" for number in range(count)]


async def test_what_is_written_is_there_after_closing(database: Database, url: str, engine: str) -> None:
    """What waits when the service stops is finished first."""
    writing = asyncio.ensure_future(database.write(add("a")))
    await asyncio.sleep(0)
    await writing if engine == "postgresql" else await database.close()
    await database.close()

    again = await open_database(url, clock=Clock(), owner=True)
    assert (await writing, await again.read(names())) == ("done", ["a"])
    await again.close()


async def test_a_closed_database_is_unavailable(database: Database) -> None:
    """A request that comes during the stop gets 503, not a traceback."""
    await database.close()

    for using in (database.read(names()), database.write(add("a")), database.ping()):
        with pytest.raises(StoreUnavailable):
            await using


async def test_a_newer_schema_is_refused(database: Database, url: str) -> None:
    """With both numbers, so that it is clear which program to install."""
    newer = query("INSERT INTO schema_version (number, name, checksum, applied_at_ms) VALUES (99, 'x', 'x', 0)")
    await database.write(run(newer))

    with pytest.raises(StoreUnusable, match=f"version 99, this program knows version {len(shipped('sqlite'))};"):
        await open_database(url, clock=Clock(), owner=False)


async def test_a_schema_that_was_only_added_to_is_worked_with(database: Database, url: str) -> None:
    """The next version has upgraded it, and disappointed: this one is started again."""
    name = f"lanes_since_{len(shipped('sqlite')):04}"
    newer = query("INSERT INTO schema_version (number, name, checksum, applied_at_ms) VALUES (99, $1, 'x', 0)")
    await database.write(run(newer, name))

    for changes in (AS_IT_IS, MAKE, ANY):
        again = await open_database(url, clock=Clock(), owner=False, changes=changes)
        assert await again.read(names()) == []
        await again.close()


async def test_a_changed_migration_is_refused(database: Database, url: str) -> None:
    """The tables are then not what this program believes them to be."""
    await database.write(run(query("UPDATE schema_version SET checksum = 'x'")))

    with pytest.raises(StoreUnusable, match="migration 1"):
        await open_database(url, clock=Clock(), owner=False)


async def test_several_may_open_it_at_once(url: str) -> None:
    """Three machines start a new version together: one migrates, all work."""
    opened = await asyncio.gather(*[open_database(url, clock=Clock(), owner=False) for _ in range(3)])

    await asyncio.gather(*[database.write(add(str(number))) for number, database in enumerate(opened)])
    assert await opened[0].read(names()) == ["0", "1", "2"]
    for database in opened:
        await database.close()


@pytest.mark.story
async def test_what_was_acknowledged_outlives_a_kill(url: str) -> None:
    """No lost intent: whatever a client got an answer for is on disk, however the process ends."""
    acknowledged = _acknowledged_before_a_kill(url)

    database = await open_database(url, clock=Clock(), owner=True)
    assert acknowledged <= set(await database.read(_ids()))
    assert len(acknowledged) >= WRITTEN_MIN
    await database.close()


def _acknowledged_before_a_kill(url: str) -> set[Value]:
    """Gives the ids that another process had acknowledged when it was killed in the middle of its work."""
    command = [sys.executable, "-m", "tests.store.engine.writes_until_killed", url]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as writer:
        assert writer.stdout is not None
        lines = [writer.stdout.readline() for _ in range(WRITTEN_MIN)]
        writer.kill()
        return {line.strip() for line in (*lines, *writer.stdout) if line.endswith("\n")}


def _ids() -> Unit[list[Value]]:
    rows = yield Statement(query("SELECT id FROM operations"), ())
    return [row[0] for row in rows]


async def test_no_token_lies_in_clear(
    book: Book, answer: Answer, engine: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    """Neither the customer's token in a call nor the authorization's in an answer, in no file of the database."""
    kept = Answer(http_status=200, body=f'{{"authorization_token":"{CLEAR}-7f9d-481d-b47f"}}'.encode())
    operation: Operation = book.new(1)
    await book.accept(operation, call=msgspec.structs.replace(CHARGE, customer_token=f"{CLEAR}59AFEE022CC69CA39D"))
    await book.advance(await book.advance(operation, Event.UNKNOWN, answer), Event.SUCCEEDED, kept)
    folder = tmp_path
    if engine == "postgresql":
        await book.database.write(_checkpoint())
        folder = request.getfixturevalue("postgresql_server").folder / "data"

    content = [path.read_bytes() for path in folder.rglob("*") if path.is_file()]
    assert any(operation.id.encode() in text for text in content)
    assert not any(CLEAR.encode() in text for text in content)


def _checkpoint() -> Unit[None]:
    yield Statement(query("CHECKPOINT"), (), is_whole=True)
