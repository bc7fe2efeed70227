"""Calls on a folder that hangs: a pipe without an other end stands for a file system whose server is gone."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import pytest
from tests.relays import CHAIN_KEY

from payrelay.core.access.revocations import Revocation, RevocationKind
from payrelay.core.database.marks import Mark
from payrelay.runtime.database.folder_calls import FolderCalls
from payrelay.runtime.database.mark_files import MarkFiles
from payrelay.runtime.database.revocation_list import RevocationList

SOON_S: Final = 0.05
MARK: Final = Mark(database="one", incarnation=1, written_at_ms=1)
REVOKED: Final = Revocation(kind=RevocationKind.KEY, at_ms=1, id="000000000001")


@contextmanager
def hanging(path: Path) -> Iterator[None]:
    """Lets whoever opens a file hang, until the context ends."""
    path.parent.mkdir(exist_ok=True)
    os.mkfifo(path)
    yield
    os.close(os.open(path, os.O_RDWR | os.O_NONBLOCK))


def open_and_read(path: Path) -> bytes:
    """Reads a file, for as long as that takes."""
    with path.open("rb") as file:
        return file.read()


async def test_what_answers_is_answered(tmp_path: Path) -> None:
    """What the call returns, or raises."""
    calls = FolderCalls()
    (tmp_path / "a").write_bytes(b"x")
    assert await calls.make(open_and_read, tmp_path / "a") == b"x"
    with pytest.raises(FileNotFoundError):
        await calls.make(open_and_read, tmp_path / "b")


async def test_nothing_waits_for_a_folder_that_hangs(tmp_path: Path) -> None:
    """Each call fails with words for the log, and while as many hang as may, the next one fails at once."""
    calls = FolderCalls(SOON_S, stuck_max=2)
    with hanging(tmp_path / "a"):
        for _ in range(2):
            with pytest.raises(TimeoutError) as late:
                await calls.make(open_and_read, tmp_path / "a")
            assert late.value.strerror == "it gives no answer within 0.05 s"
        with pytest.raises(TimeoutError) as refused:
            await calls.make(open_and_read, tmp_path / "a")
        assert refused.value.strerror == "it still gives no answer to an earlier call"


async def test_a_mark_that_can_not_be_read_or_written_is_an_error_soon(tmp_path: Path) -> None:
    """The start compares no mark then, and goes on; a process that ends doesn't wait for its last write."""
    with hanging(tmp_path / "other.mark"), pytest.raises(TimeoutError):
        await MarkFiles(tmp_path, CHAIN_KEY, wait_s=SOON_S).read()
    files = MarkFiles(tmp_path, CHAIN_KEY, wait_s=SOON_S)
    with hanging(tmp_path / f"{files._name}.draft"), pytest.raises(TimeoutError):
        await files.write(MARK)


async def test_a_revocation_is_answered_although_its_list_hangs(tmp_path: Path) -> None:
    """It holds in the database. A request that waited for ever would keep the customer waiting, too."""
    revocations = RevocationList(tmp_path, CHAIN_KEY, wait_s=SOON_S)
    with hanging(tmp_path / "revocations-1970"):
        assert not await revocations.add(REVOKED)
