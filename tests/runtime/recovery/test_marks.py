"""The mark of a process in its file, and what a process makes of the marks that it finds."""

import stat
from pathlib import Path
from typing import Final

import msgspec
import pytest
from tests.flows.world import START_MS, World, asked
from tests.relays import CHAIN_KEY, SEAL
from tests.samples import CHECKOUT

from payrelay.core.database.incarnations import Beginning, DatabaseIdentity, Incarnation, LostWindow
from payrelay.core.database.marks import LOST_TOLERANCE_MS, MarksShown
from payrelay.core.payments.audit_chain import ChainKey
from payrelay.core.payments.operation import Operation
from payrelay.flows.payments.charge import charge
from payrelay.runtime.database.lost_commits import IDENTITY_KEPT_MS, LostCommits
from payrelay.runtime.database.mark_files import MarkFiles, remove_marks
from payrelay.runtime.database.marks import Marks, shown_by
from payrelay.store.database.marked_rows import MarkedRows
from payrelay.store.payments.audit import Trail

FIRST: Final = Incarnation(number=1, reason=Beginning.CREATED, began_at_ms=0)
LOST: Final = LostWindow(since_ms=0, until_ms=1)


class Process:
    """A process on the database of a world, as far as marks go."""

    def __init__(
        self, world: World, folder: Path | None, *, database_id: str = "one", secret: bytes = CHAIN_KEY
    ) -> None:
        self.world = world
        self.identity = DatabaseIdentity(id=database_id, incarnations=(FIRST,))
        self.lost_commits = LostCommits(self._read, world.clock, world.relay.log)
        rows = MarkedRows(world.database, Trail(world.database, SEAL, ChainKey(CHAIN_KEY)))
        self.marks = Marks(MarkFiles(folder, secret), rows, self.lost_commits, world.clock, world.relay.log)

    @property
    def behind(self) -> str | None:
        """Why this process takes the database for behind."""
        return self.lost_commits.behind

    async def started(self) -> "Process":
        """Compares the files, as a service does at its start."""
        await self.marks.compare_files()
        return self

    async def told(self, *operations: Operation) -> "Process":
        """Is told of commits, and ends."""
        async with self.marks.kept():
            for operation in operations:
                self.marks.note_operation(operation)
        return self

    def recover(self, *, number: int = 2) -> None:
        """Lets a recovery begin, which the process reads at once."""
        began_at_ms = self.world.clock.now_ms()
        began = Incarnation(number=number, reason=Beginning.RECOVERED, began_at_ms=began_at_ms, lost=LOST)
        self.identity = msgspec.structs.replace(self.identity, incarnations=(*self.identity.incarnations, began))
        self.world.clock.passed_ms += IDENTITY_KEPT_MS

    async def _read(self) -> DatabaseIdentity:
        return self.identity


async def stored(world: World, number: int = 1) -> Operation:
    """Gives an operation that is in the database."""
    await charge(world.relay, asked(f"k-{number}"), world.charge_of(number))
    return await world.operation()


def lost(operation: Operation, number: int = 9) -> Operation:
    """Gives an operation that the database lacks."""
    return msgspec.structs.replace(operation, id=f"op_lost_{number}")


async def shown_in(world: World, folder: Path) -> MarksShown:
    """Gives what the marks in a folder show of the database."""
    rows = MarkedRows(world.database, Trail(world.database, SEAL, ChainKey(CHAIN_KEY)))
    identity = DatabaseIdentity(id="one", incarnations=(FIRST,))
    return await shown_by(await MarkFiles(folder, CHAIN_KEY).read(), identity, rows)


def files(folder: Path) -> list[Path]:
    """Gives the files in the folder of the marks."""
    return sorted(folder.iterdir()) if folder.exists() else []


async def test_the_next_process_finds_everything_and_takes_the_place_of_the_mark(world: World, tmp_path: Path) -> None:
    """The old mark is removed only once a newer one names a later commit: in between both are needed."""
    folder = tmp_path / "marks"
    await (await Process(world, folder).started()).told(await stored(world))
    (first,) = files(folder)
    assert [stat.S_IMODE(path.stat().st_mode) for path in (folder, first)] == [0o700, 0o600]

    following = await (await Process(world, folder).started()).told()
    assert (following.behind, files(folder)) == (None, [first])
    await following.told(await stored(world, 2))
    (second,) = files(folder)
    assert second != first
    assert (await Process(world, folder).started()).behind is None


async def test_a_process_that_was_told_nothing_writes_nothing(world: World, tmp_path: Path) -> None:
    """A mark without a commit would push nothing aside, and show nothing."""
    process = await Process(world, tmp_path / "marks").started()
    process.marks.note_anchor("1:digest", START_MS)
    await process.told()

    assert files(tmp_path / "marks") == []


async def test_what_is_missing_is_named_and_the_mark_that_names_it_stays(world: World, tmp_path: Path) -> None:
    """Whoever starts the service once more must be stopped once more, whatever was written in between."""
    folder, known = tmp_path / "marks", await stored(world)
    await (await Process(world, folder).started()).told(known, lost(known))
    before = files(folder)
    name = f"operation op_lost_9 in version {known.version}"
    for number in (2, 3):
        process = await (await Process(world, folder).started()).told(await stored(world, number))
        assert process.behind == f"it lacks what a process was told of: {name}"
    shown = await shown_in(world, folder)

    assert (files(folder), shown.read, [each.name for each in shown.missing]) == (before, 1, [name])
    assert shown.lost_since_ms == START_MS - LOST_TOLERANCE_MS


async def test_a_recovery_ends_the_stop_for_good(world: World, tmp_path: Path) -> None:
    """After it the process remembers only what was acknowledged since; the next start finds nothing missing."""
    folder, known = tmp_path / "marks", await stored(world)
    process = await Process(world, folder).started()
    for operation in (known, lost(known)):
        process.marks.note_operation(operation)
    process.marks.note_checkout(CHECKOUT)
    assert (await process.marks.compare(), process.behind is None) == (False, False)
    process.recover()
    assert (await process.marks.compare(), process.behind is None) == (True, True)
    await process.told(await stored(world, 2))

    following = Process(world, folder)
    following.identity = process.identity
    assert (await following.started()).behind is None


async def test_a_recovery_accounts_for_what_a_process_was_told_that_has_never_compared(world: World) -> None:
    """It may know of an anchor alone. Nobody would begin a second recovery, and all would wait for one."""
    process = await Process(world, None).started()
    process.marks.note_anchor("1:digest", START_MS)
    process.recover()

    assert (await process.marks.compare(), process.behind) == (True, None)


async def test_marks_from_before_a_recovery_are_removed_with_the_rest(world: World, tmp_path: Path) -> None:
    """They would otherwise pile up, one for each process that ever ran."""
    folder, known = tmp_path / "marks", await stored(world)
    await (await Process(world, folder).started()).told(lost(known))
    following = Process(world, folder)
    following.recover()
    await (await following.started()).told(await stored(world, 2))

    assert following.behind is None
    assert len(files(folder)) == 1


async def test_a_mark_of_another_database_stops_the_effects_and_says_which_file(world: World, tmp_path: Path) -> None:
    """Somebody put a new or a wrong database there: what the other one knew would be charged anew."""
    known = await stored(world)
    await (await Process(world, tmp_path, database_id="two", secret=b"d" * 32).started()).told(known)
    process = await Process(world, tmp_path).started()

    assert process.behind is not None
    assert process.behind.endswith(".mark")
    assert (await shown_in(world, tmp_path)).lost_since_ms is None


@pytest.mark.parametrize("content", [b"", b'{"mark":{}}', b"\xff"])
async def test_a_file_that_is_no_mark_is_named_and_stops_nothing(world: World, tmp_path: Path, content: bytes) -> None:
    """A loss of power leaves such files; the service that finds one removes it with the other old ones."""
    folder = tmp_path / "marks"
    folder.mkdir()
    (folder / "0123.mark").write_bytes(content)
    (folder / "notes.txt").write_text("not ours")
    process = await Process(world, folder).started()

    assert (process.behind, world.log_events) == (None, ["mark_unusable"])
    await process.told(await stored(world))
    assert [path.suffix for path in files(folder)] == [".mark", ".txt"]
    remove_marks(folder)
    assert [path.name for path in files(folder)] == ["notes.txt"]
    remove_marks(tmp_path / "none")


async def test_a_forged_mark_is_named_and_stops_nothing(world: World, tmp_path: Path) -> None:
    """Who can write to the folder and lacks the key must not be able to stop the service in silence."""
    known = await stored(world)
    await (await Process(world, tmp_path, secret=b"d" * 32).started()).told(lost(known))
    process = await Process(world, tmp_path).started()

    assert (process.behind, world.log_events) == (None, ["mark_unusable"])
    assert len((await shown_in(world, tmp_path)).unusable) == 1


async def test_a_folder_that_cannot_be_written_is_said_once_and_keeps_nothing_up(world: World, tmp_path: Path) -> None:
    """A full disk must not keep anybody from paying; the process still knows what it was told of."""
    folder = tmp_path / "marks"
    folder.write_text("a file, where the folder should be")
    process = Process(world, folder)
    await process.started()
    known = await stored(world)
    for _ in range(2):
        await process.told(known)
    assert (world.log_events, process.marks.failure is None) == (["mark_not_kept"], False)
    assert await process.marks.compare()

    folder.unlink()
    await process.told(known)
    assert (process.marks.failure is None, len(files(folder))) == (True, 1)
    assert world.log_events == ["mark_not_kept", "mark_kept_again"]


async def test_without_a_folder_a_process_still_remembers(world: World) -> None:
    """On PostgreSQL a server may be promoted beneath a process that runs: its memory finds what was lost."""
    process = await (await Process(world, None).started()).told(await stored(world))
    assert await process.marks.compare()
    process.marks.note_operation(lost(await world.operation()))

    assert not await process.marks.compare()
    assert world.log_events == ["database_behind"]


async def test_a_file_that_another_process_has_replaced_is_not_removed(world: World, tmp_path: Path) -> None:
    """It names what that process was told of since, which this one has not compared."""
    folder = tmp_path / "marks"
    other = await (await Process(world, folder).started()).told(await stored(world))
    process = await Process(world, folder).started()
    await other.told(await stored(world, 2))
    await process.told(await stored(world, 3))

    assert len(files(folder)) == 2


async def test_of_a_restored_copy_all_after_its_newest_entry_may_be_lost(world: World) -> None:
    """It says so itself, where no mark is kept. Nobody must know the time of the backup at night."""
    process = Process(world, None)
    assert (await process.marks.shown()).copied_since_ms is None
    process.identity = process.identity.in_place("elsewhere")
    await process.lost_commits.refresh()
    empty = await process.marks.shown()
    await stored(world)
    filled = await process.marks.shown()

    assert (empty.copied_since_ms, filled.copied_since_ms) == (FIRST.began_at_ms, START_MS - LOST_TOLERANCE_MS)
