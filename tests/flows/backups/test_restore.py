"""What a restore concludes from what is known outside the database."""

import json
from pathlib import Path
from typing import Final

import msgspec
import pytest

from payrelay.backups.flows.back_up import BackupSource, back_up
from payrelay.backups.flows.begin_in_draft import NO_MARKS
from payrelay.backups.flows.noted_anchors import noted_in
from payrelay.backups.flows.restore import Restored, RestoreOrder, RestorePlace, restore
from payrelay.backups.store.manifest import MANIFEST, read_backup
from payrelay.clock import Clock
from payrelay.core.database.marks import MarksShown, Missing
from payrelay.core.moments import moment_of, rfc3339
from payrelay.errors import StoreUnusable
from payrelay.flows.audit.audit import Phase
from payrelay.store import open_database
from payrelay.store.engine.database import Database
from payrelay.store.engine.sealing import Seal
from payrelay.store.upgrades.begin import begin_store

SEAL: Final = Seal((b"1" * 32,))
HOUR_MS: Final = 3_600_000


@pytest.fixture
async def url(tmp_path: Path) -> str:
    """The address of a database that has a backup."""
    address = f"sqlite:///{tmp_path}/payrelay.db"
    database = await open_database(address, clock=Clock(), owner=True)
    await begin_store(database, SEAL, Clock())
    await database.close()
    await back_up(BackupSource(address, SEAL, {}), tmp_path / "backup", Clock(), lambda *_: None)
    return address


async def restored(url: str, folder: Path, marks: MarksShown | None) -> Restored:
    """Restores with high-water marks that show this much; with None they can't be compared with the backup."""

    async def look(_database: Database, _seal: Seal) -> MarksShown:
        if marks is None:
            raise StoreUnusable("the identity of the database is missing from it")
        return marks

    def progress(_phase: Phase, _done: int, _total: int) -> None:
        """Tells nobody."""

    place = RestorePlace(url, lambda: SEAL, None, look)
    order = RestoreOrder(folder, "payrelay.db", accepts_findings=False, operator="nimal", note="")
    return await restore(place, order, Clock(), lambda *_: None, progress)


def lacking(since_ms: int, incarnation: int = 1) -> MarksShown:
    """What marks show that name one operation more than the backup has."""
    missing = (Missing("operation 1 in version 3", since_ms),)
    return msgspec.structs.replace(NO_MARKS, missing=missing, lost_since_ms=since_ms, incarnation=incarnation)


def set_back(folder: Path, by_ms: int) -> int:
    """Makes a backup older than it is; gives when it was made, in ms."""
    manifest = json.loads((folder / "manifest.json").read_text())
    made_at_ms = moment_of(manifest["made_at"]) - by_ms
    (folder / "manifest.json").write_text(json.dumps(manifest | {"made_at": rfc3339(made_at_ms)}))
    return made_at_ms


async def test_all_since_the_backup_may_be_lost(url: str, tmp_path: Path) -> None:
    """A mark that names less than was lost must not make the time shorter: what came after it, no mark has."""
    made_at_ms = set_back(tmp_path / "backup", HOUR_MS)
    late = lacking(made_at_ms + HOUR_MS // 2)
    done = await restored(url, tmp_path / "backup", late)

    assert moment_of(done.lost_since) < made_at_ms
    assert moment_of(done.lost_until) >= made_at_ms + HOUR_MS
    assert done.missing == (late.missing[0].name,)


async def test_a_mark_that_names_more_than_the_manifest_is_believed(url: str, tmp_path: Path) -> None:
    """A manifest can be written by anybody who can write to backups, or by a clock that was wrong."""
    made_at_ms = set_back(tmp_path / "backup", 0)
    early = lacking(made_at_ms - HOUR_MS)

    assert moment_of((await restored(url, tmp_path / "backup", early)).lost_since) == early.lost_since_ms


async def test_a_copy_without_its_key_check_is_refused(url: str, tmp_path: Path) -> None:
    """The manifest alone says which key opens it, and anybody can write a manifest."""
    manifest = json.loads((tmp_path / "backup" / "manifest.json").read_text())
    other = Seal((b"2" * 32,))
    (tmp_path / "backup" / "manifest.json").write_text(json.dumps(manifest | {"key_id": other.key_id.hex()}))
    order = RestoreOrder(tmp_path / "backup", "payrelay.db", accepts_findings=False, operator="nimal", note="")

    with pytest.raises(StoreUnusable, match="is not the key that this database was sealed with"):
        await restore(RestorePlace(url, lambda: other, None), order, Clock(), lambda *_: None, lambda *_: None)


def test_a_line_that_was_cut_off_is_no_anchor(tmp_path: Path) -> None:
    """A full disk must not keep anybody from restoring."""
    path = tmp_path / "anchors.txt"
    path.write_text(f"2026-11-21T10:00:00Z 7:{'a' * 64}\n2026-11-22T10:00:00Z 8:{'b' * 20}\n")

    assert [(each.number, each.at) for each in noted_in(path)] == [(7, "2026-11-21T10:00:00Z")]
    assert noted_in(tmp_path / "missing") == noted_in(None) == []


def test_a_manifest_that_is_deeper_than_any_is_not_whole(tmp_path: Path) -> None:
    """A folder from elsewhere ends the restore with a sentence."""
    (tmp_path / MANIFEST).write_bytes(b'{"format":1,"x":' + b"[" * 60_000)

    with pytest.raises(StoreUnusable, match=r"manifest\.json is not whole"):
        read_backup(tmp_path)


async def test_no_number_of_an_incarnation_is_given_twice(url: str, tmp_path: Path) -> None:
    """A backup doesn't know how often the database began anew after it; positions of events are told by the number."""
    made_at_ms = set_back(tmp_path / "backup", HOUR_MS)
    done = await restored(url, tmp_path / "backup", lacking(made_at_ms, incarnation=4))

    assert done.incarnation == 5
