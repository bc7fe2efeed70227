from contextlib import suppress

import pytest
from tests.needed import lacking
from tests.postgresql_server import ProgramsMissing, running_on_small_disk

from payrelay.clock import Clock
from payrelay.errors import StoreFault, StoreUnavailable
from payrelay.store import open_database
from payrelay.store.engine.database import Database, Statement, Unit, Value
from payrelay.store.engine.queries import query
from payrelay.store.heartbeats import KEPT_MS, ROOM_BYTES, Heartbeats

NOW_MS = 1_800_000_000_000


def run(text: str, *parameters: Value) -> Unit[int]:
    """Runs a statement; gives how many rows it has."""
    rows = yield Statement(query(text), parameters)
    return len(rows)


async def stored(database: Database) -> int:
    """Counts the heartbeats that are stored."""
    return await database.read(run("SELECT process FROM heartbeats"))


async def test_a_process_has_one_row_until_it_ends(database: Database) -> None:
    """A table that grew with every heartbeat would be the next thing to fill the disk."""
    heartbeats = Heartbeats(database, "process_1")

    beats = [await heartbeats.beat(NOW_MS + each) for each in range(3)]

    assert [beat.is_own_lost for beat in beats] == [False] * 3
    assert await stored(database) == 1
    await heartbeats.end()
    assert await stored(database) == 0


async def test_a_row_that_is_gone_is_told_once(database: Database) -> None:
    """Somebody has removed what this process wrote: what else is gone must be looked for."""
    heartbeats = Heartbeats(database, "process_1")
    await heartbeats.beat(NOW_MS)
    await database.write(run("DELETE FROM heartbeats"))

    assert [(await heartbeats.beat(NOW_MS + each)).is_own_lost for each in (1, 2)] == [True, False]


async def test_a_row_that_is_older_than_was_told_counts_as_gone(database: Database) -> None:
    """The database was put back to an earlier state under the running process."""
    heartbeats = Heartbeats(database, "process_1")
    await heartbeats.beat(NOW_MS)
    await database.write(run("UPDATE heartbeats SET at_ms = at_ms - 1000"))

    assert (await heartbeats.beat(NOW_MS + 1)).is_own_lost


async def test_a_clock_that_is_set_back_looks_like_no_loss(database: Database) -> None:
    """Otherwise every correction of a clock would call an operator."""
    heartbeats = Heartbeats(database, "process_1")

    beats = [await heartbeats.beat(NOW_MS - 1000 * each) for each in range(3)]

    assert not any(beat.is_own_lost for beat in beats)


async def test_processes_do_not_disturb_each_other_and_old_rows_go(database: Database) -> None:
    """The row of a process that was killed is removed by a later one, and not before a week has passed."""
    killed, other = Heartbeats(database, "process_1"), Heartbeats(database, "process_2")
    await killed.beat(NOW_MS)
    await other.beat(NOW_MS + KEPT_MS)
    assert await stored(database) == 2

    await Heartbeats(database, "process_3").beat(NOW_MS + KEPT_MS + 1)

    assert await stored(database) == 2


async def test_a_process_that_slept_for_long_takes_its_missing_row_for_no_loss(database: Database) -> None:
    """Another process may delete the row of one that was suspended for more than a week."""
    heartbeats = Heartbeats(database, "process_1")
    await heartbeats.beat(NOW_MS)
    await database.write(run("DELETE FROM heartbeats"))

    assert not (await heartbeats.beat(NOW_MS + KEPT_MS + 1)).is_own_lost


async def test_a_server_tells_its_clock(database: Database, request: pytest.FixtureRequest) -> None:
    """A clock that is wrong is noticed before it misdates money; an embedded database has our own clock."""
    heartbeats = Heartbeats(database, "process_1")
    now_ms = Clock().now_ms()
    told = [(await heartbeats.beat(now_ms + each)).database_ms for each in (0, 1)]

    if "postgresql" in request.node.name:
        assert all(each is not None and abs(each - now_ms) < 60_000 for each in told)
    else:
        assert told == [None, None]


async def test_a_file_without_room_beside_it_is_not_ready(database: Database) -> None:
    """SQLite writes over its own log as long as nothing grows, and would look well on a full disk."""
    heartbeats = Heartbeats(database, "process_1", lambda: ROOM_BYTES - 1)

    with pytest.raises(StoreUnavailable) as raised:
        await heartbeats.beat(NOW_MS)

    assert raised.value.fault is StoreFault.DISK_FULL


@pytest.mark.integration
async def test_a_server_whose_disk_is_full_is_noticed_without_any_load() -> None:
    """A row that is written over needs no room: a full disk showed as ready until the first operation failed."""
    try:
        with running_on_small_disk(160) as server:
            database = await open_database(server.url(), clock=Clock(), owner=True)
            heartbeats = Heartbeats(database, "process_1")
            await heartbeats.beat(NOW_MS)
            filler = server.folder / "filler"
            with suppress(OSError), filler.open("wb", buffering=0) as file:
                while True:
                    file.write(bytes(1 << 16))
            with pytest.raises(StoreUnavailable) as raised:
                await heartbeats.beat(NOW_MS + 1)
            filler.unlink()

            assert raised.value.fault is StoreFault.DISK_FULL
            assert not (await heartbeats.beat(NOW_MS + 2)).is_own_lost
            await database.close()
    except ProgramsMissing as missing:
        lacking(str(missing))
