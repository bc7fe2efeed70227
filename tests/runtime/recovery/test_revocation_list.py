"""The files outside the database that say what was taken back."""

import stat
from pathlib import Path
from typing import Final

import structlog
from structlog.testing import LogCapture

from payrelay.core.access.revocations import Revocation, RevocationKind
from payrelay.runtime.database.revocation_list import RevocationList

SECRET: Final = b"s" * 32
IN_2026: Final = 1_790_000_000_000
YEAR_MS: Final = 366 * 86_400_000


def revoked(number: int, at_ms: int = IN_2026) -> Revocation:
    """Gives the revocation of a key."""
    return Revocation(kind=RevocationKind.KEY, at_ms=at_ms, id=f"key{number}")


def _files(folder: Path) -> list[Path]:
    return list(folder.iterdir())


async def test_what_was_added_is_read_by_any_process_in_its_order(tmp_path: Path) -> None:
    """The command that revokes is another process than the server that does it again; only their user may read it."""
    folder = tmp_path / "marks"
    assert await RevocationList(folder, SECRET).add(revoked(1))
    assert await RevocationList(folder, SECRET).add(revoked(2), revoked(3))
    assert await RevocationList(folder, SECRET).read() == ([revoked(1), revoked(2), revoked(3)], 0)
    [file] = _files(folder)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700


async def test_a_line_that_was_cut_off_swallows_no_later_one(tmp_path: Path) -> None:
    """A disk that was full once must not end every revocation after it."""
    await RevocationList(tmp_path, SECRET).add(revoked(1))
    [file] = _files(tmp_path)
    file.write_bytes(file.read_bytes()[:-5])
    await RevocationList(tmp_path, SECRET).add(revoked(2))

    assert await RevocationList(tmp_path, SECRET).read() == ([revoked(2)], 1)


async def test_a_list_that_can_not_be_written_says_so(tmp_path: Path) -> None:
    """Whoever revokes must know that a backup would bring it back; the log has it for a request's operator."""
    (tmp_path / "marks").write_bytes(b"a file in the folder's place")
    capture = LogCapture()
    log = structlog.wrap_logger(None, processors=[capture], wrapper_class=structlog.make_filtering_bound_logger(0))

    assert not await RevocationList(tmp_path / "marks", SECRET).add(revoked(1))
    assert not await RevocationList(tmp_path / "marks", SECRET, log).add(revoked(1))
    assert [(entry["event"], entry["ids"]) for entry in capture.entries] == [("revocation_not_listed", ["key1"])]


async def test_without_a_folder_there_is_no_list(tmp_path: Path) -> None:
    """PostgreSQL has no place beside it; nothing is written to a place that nobody named."""
    revocations = RevocationList(None, SECRET)
    assert await revocations.add(revoked(1))
    await revocations.forget(IN_2026)
    assert await revocations.read() == ([], 0)
    assert _files(tmp_path) == []


async def test_a_year_is_forgotten_at_the_end_of_the_next(tmp_path: Path) -> None:
    """Backups of two years ago are used no more; until then each line must count."""
    revocations = RevocationList(tmp_path, SECRET)
    await revocations.add(revoked(1))
    await revocations.forget(IN_2026 + YEAR_MS)
    assert (await revocations.read()).revocations == [revoked(1)]
    await revocations.forget(IN_2026 + 2 * YEAR_MS)
    assert (await revocations.read()).revocations == []
