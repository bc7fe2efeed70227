"""The command that restores: what an operator types, gets and is told, and what stays as it was where it refuses."""

import base64
import fcntl
import hashlib
import json
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any, Final

import pytest
from tests.cli.commands import Ran, Run

from payrelay.clock import Clock
from payrelay.core.seal_keys import parse_keys
from payrelay.store.database.identity import DATABASE_IDENTITY
from payrelay.store.engine.sealing import Seal

OTHER_KEY: Final = base64.urlsafe_b64encode(b"o" * 32).decode()
ANCHOR: Final = f"7:{'a' * 64}"


@pytest.fixture
def backup(run: Run, upgraded_database: Path, tmp_path: Path) -> Path:
    """A backup of the database in the folder, which has gone on since."""
    assert run("backup", "of-before").code == 0
    mark(upgraded_database)
    return tmp_path / "of-before"


def mark(path: Path) -> None:
    """Stores what the backup does not have."""
    with closing(sqlite3.connect(path)) as database:
        database.execute("INSERT INTO meta (name, value) VALUES ('later', x'00')")
        database.commit()


def is_marked(path: Path) -> bool:
    """Whether a database has what came after the backup."""
    with closing(sqlite3.connect(path)) as database:
        return bool(database.execute("SELECT count(*) FROM meta WHERE name = 'later'").fetchone()[0])


def restored(run: Run, *more: str, **variables: str) -> Ran:
    """Restores with what is always needed."""
    return run("restore", "of-before", "--note", "the disk broke", "--yes", *more, **variables)


def in_place(run: Run, *more: str, **variables: str) -> Ran:
    """Restores in the place of the database that is there."""
    return restored(run, "--replace", "payrelay.db", *more, **variables)


def identity(path: Path) -> dict[str, Any]:
    """The identity in a database, opened with the key beside it."""
    with closing(sqlite3.connect(path)) as database:
        [value] = database.execute("SELECT value FROM meta WHERE name = ?", (DATABASE_IDENTITY,)).fetchone()
    seal = Seal(parse_keys(path.with_name("payrelay.db.key").read_text().strip()))
    members: dict[str, Any] = json.loads(seal.open(value, b"meta/database_identity"))
    return members


def test_a_restored_database_is_in_recovery_from_the_first(run: Run, backup: Path, upgraded_database: Path) -> None:
    """A server that found it without a recovery would send repeats of lost requests once more."""
    ran = in_place(run, "--json", "--by", "nimal")
    told = json.loads(ran.out)
    newest = identity(upgraded_database)["incarnations"][-1]

    assert (ran.code, ran.err, is_marked(upgraded_database)) == (0, "", False)
    assert (newest["number"], newest["reason"], newest["operator"], newest["note"]) == (
        2,
        "recovered",
        "nimal",
        "the disk broke",
    )
    assert newest["lost"]["since_ms"] < newest["lost"]["until_ms"] <= Clock().now_ms()
    assert told["made_at"] == json.loads((backup / "manifest.json").read_text())["made_at"]
    assert told["lost_since"] < told["made_at"] < told["lost_until"]


def test_the_database_of_before_is_kept_beside(run: Run, backup: Path, upgraded_database: Path, tmp_path: Path) -> None:
    """The backup may be the wrong one, and what came after it may have to be looked up."""
    ran = in_place(run)
    [kept] = tmp_path.glob("payrelay.db.replaced-*")

    assert (ran.code, str(kept.name) in ran.err, is_marked(kept)) == (0, True, True)
    assert run("audit", "verify").code == 0
    assert sorted(path.name for path in tmp_path.iterdir() if path.name.startswith(".")) == []
    assert not kept.samefile(upgraded_database)
    assert backup.exists()


def test_no_two_incarnations_have_one_number(run: Run, backup: Path, upgraded_database: Path) -> None:
    """A backup does not know of the recoveries after it. With an equal number, their cursors would look alike."""
    assert backup.exists()
    numbers = []
    for kept in ("first", "second"):
        in_place(run)
        numbers.append(identity(upgraded_database)["incarnations"][-1]["number"])
        for path in upgraded_database.parent.glob("payrelay.db.replaced-*"):
            path.rename(path.with_name(kept))

    assert numbers == [2, 3]


def test_a_backup_is_restored_where_nothing_is(run: Run, backup: Path, upgraded_database: Path) -> None:
    """After the loss of a disk there is nothing to replace, and nothing to name."""
    upgraded_database.unlink()

    assert restored(run).code == 0
    assert identity(upgraded_database)["incarnations"][-1]["lost"] is not None
    assert backup.exists()


def test_what_an_operator_did_not_name_is_not_replaced(run: Run, backup: Path, upgraded_database: Path) -> None:
    """A setting that points elsewhere would cost the wrong database."""
    unnamed = restored(run)
    other = restored(run, "--replace", "shop.db")
    unsure = run("restore", "of-before", "--note", "the disk broke", "--replace", "payrelay.db")

    assert [ran.code for ran in (unnamed, other, unsure)] == [2, 2, 2]
    assert "add --replace payrelay.db" in unnamed.err
    assert "called payrelay.db" in other.err
    assert "nothing was restored" in unsure.err
    assert is_marked(upgraded_database)
    assert backup.exists()


def test_a_running_database_is_not_replaced(run: Run, backup: Path, upgraded_database: Path) -> None:
    """The server would go on with a file that nobody sees any more."""
    with upgraded_database.with_name("payrelay.db.lock").open("w+") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        lock.write("4711\n")
        lock.flush()
        ran = in_place(run)

    assert (ran.code, "(pid 4711) is running on this database" in ran.err) == (2, True)
    assert is_marked(upgraded_database)
    assert backup.exists()


def test_a_database_that_a_command_has_open_is_not_replaced(
    run: Run, backup: Path, upgraded_database: Path, tmp_path: Path
) -> None:
    """What it wrote afterwards would go into the log of the old one, beside the new one."""
    with closing(sqlite3.connect(upgraded_database)) as other:
        other.execute("BEGIN")
        other.execute("SELECT count(*) FROM meta").fetchone()
        ran = in_place(run)

    assert (ran.code, "another program has the database open" in ran.err) == (2, True)
    assert is_marked(upgraded_database)
    assert list(tmp_path.glob("*.replaced-*")) == []
    assert backup.exists()


def test_the_wrong_key_is_named_before_anything_is_touched(run: Run, backup: Path, tmp_path: Path) -> None:
    """An operator with several keys must learn which one to look for."""
    needed = json.loads((backup / "manifest.json").read_text())["key_id"]
    before = sorted(path.name for path in tmp_path.iterdir())
    ran = in_place(run, PAYRELAY_ENCRYPTION_KEY=OTHER_KEY)

    assert (ran.code, f"only with the encryption key {needed}" in ran.err) == (2, True)
    assert sorted(path.name for path in tmp_path.iterdir()) == before


def test_a_missing_key_is_told_too(run: Run, backup: Path, upgraded_database: Path) -> None:
    """After the loss of a machine the key is the first thing that lacks, and a new one would open nothing."""
    upgraded_database.with_name("payrelay.db.key").unlink()
    ran = in_place(run)

    needed = json.loads((backup / "manifest.json").read_text())["key_id"]
    assert (ran.code, f"encryption key {needed}" in ran.err) == (2, True)
    assert not upgraded_database.with_name("payrelay.db.key").exists()


@pytest.mark.parametrize("torn", ["cut", "changed", "no copy", "no manifest", "half a manifest"])
def test_a_backup_that_is_not_whole_is_refused(run: Run, backup: Path, upgraded_database: Path, torn: str) -> None:
    """A half of the rows would look like a database, and send the other half once more."""
    copy, manifest = backup / "payrelay.db", backup / "manifest.json"
    content = copy.read_bytes()
    match torn:
        case "cut":
            copy.write_bytes(content[:-4_096])
        case "changed":
            copy.write_bytes(content[:-1] + b"x")
        case "no copy":
            copy.unlink()
        case "no manifest":
            manifest.unlink()
        case _:
            manifest.write_text(manifest.read_text()[:40])
    ran = in_place(run)

    assert (ran.code, is_marked(upgraded_database)) == (2, True)
    assert list(upgraded_database.parent.glob(".*restoring*")) == []


def test_a_backup_of_a_later_version_is_refused(run: Run, backup: Path, upgraded_database: Path) -> None:
    """This program does not know what it would have to check in it."""
    manifest = json.loads((backup / "manifest.json").read_text())
    (backup / "manifest.json").write_text(json.dumps(manifest | {"format": 2}))
    format_of_later = in_place(run)
    with closing(sqlite3.connect(backup / "payrelay.db")) as copy:
        copy.execute("INSERT INTO schema_version VALUES (9999, 'later', 'x', 0)")
        copy.commit()
    retold(backup, manifest)
    schema_of_later = in_place(run)

    assert (format_of_later.code, "newer Payrelay" in format_of_later.err) == (2, True)
    assert (schema_of_later.code, "install a newer Payrelay" in schema_of_later.err) == (2, True)
    assert is_marked(upgraded_database)


def retold(backup: Path, manifest: dict[str, Any]) -> None:
    """Writes a manifest that fits the copy as it is now."""
    content = (backup / "payrelay.db").read_bytes()
    members = {"bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}
    (backup / "manifest.json").write_text(json.dumps(manifest | members))


def test_a_forged_backup_is_restored_only_as_it_is(run: Run, backup: Path, upgraded_database: Path) -> None:
    """Whoever can write to a backup could bring a revoked key back. A person who has no other one decides."""
    manifest = json.loads((backup / "manifest.json").read_text())
    with closing(sqlite3.connect(backup / "payrelay.db")) as copy:
        copy.execute("INSERT INTO principal_names VALUES ('a', 'b', 0, 'forged')")
        copy.commit()
    retold(backup, manifest)
    refused = in_place(run)
    accepted = in_place(run, "--accept-findings")

    assert (refused.code, "principal_names/a" in refused.err, "--accept-findings" in refused.err) == (1, True, True)
    assert (accepted.code, "1 findings were accepted" in accepted.err) == (0, True)
    assert not is_marked(upgraded_database)


def test_anchors_from_after_the_backup_are_told_and_set_aside(run: Run, backup: Path, tmp_path: Path) -> None:
    """They say what is lost. The service would take them for anchors that somebody removed, and make no more."""
    path = tmp_path / "anchors.txt"
    path.write_text(f"2026-11-22T10:00:00Z {ANCHOR}\n")
    ran = in_place(run, PAYRELAY_ANCHOR_PATH=str(path))
    [aside] = tmp_path.glob("anchors.txt.before-*")

    assert (ran.code, f"2026-11-22T10:00:00Z {ANCHOR}" in ran.err, aside.name in ran.err) == (0, True, True)
    assert not path.exists()
    assert backup.exists()


def test_an_unreadable_database_is_replaced_too(run: Run, backup: Path, upgraded_database: Path) -> None:
    """A damaged file is the reason for most restores. Its log must not be read into the new one."""
    for name in ("payrelay.db", "payrelay.db-wal"):
        upgraded_database.with_name(name).write_bytes(b"no database at all" * 1_000)
    ran = in_place(run)
    [kept] = upgraded_database.parent.glob("payrelay.db.replaced-*[0-9]")

    assert (ran.code, ran.out) == (0, "")
    assert kept.read_bytes().startswith(b"no database")
    assert run("audit", "verify").code == 0
    assert backup.exists()


def test_what_an_interrupted_restore_left_is_no_hindrance(run: Run, backup: Path, upgraded_database: Path) -> None:
    """Power fails at the worst time, and the operator types the same command again."""
    shutil.copy(upgraded_database, upgraded_database.with_name(".payrelay.db.restoring"))
    upgraded_database.with_name("payrelay.db.replaced-1").hardlink_to(upgraded_database)

    assert in_place(run).code == 0
    assert len(list(upgraded_database.parent.glob("payrelay.db.replaced-*"))) == 1
    assert backup.exists()


def test_a_backup_of_the_other_kind_of_database_says_what_to_do(run: Run, backup: Path) -> None:
    """A file of SQLite can't be read by a server of PostgreSQL, but it can be copied there afterwards."""
    key = backup.with_name("payrelay.db.key").read_text().strip()
    url = "postgresql://nobody@127.0.0.1:1/nothing"
    ran = in_place(run, PAYRELAY_DATABASE_URL=url, PAYRELAY_ENCRYPTION_KEY=key)

    assert (ran.code, "payrelay db copy" in ran.err) == (2, True)

    manifest = backup / "manifest.json"
    manifest.write_text(manifest.read_text().replace("payrelay.db", "payrelay.dump"))
    ran = in_place(run, PAYRELAY_ENCRYPTION_KEY=key)
    assert (ran.code, "pg_restore, and then run payrelay recover" in ran.err) == (2, True)
