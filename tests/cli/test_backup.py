"""The command that backs up: what an operator types, gets and is told."""

import base64
import hashlib
import json
import shutil
import sqlite3
from pathlib import Path
from typing import Final

from tests.cli.commands import Run

OTHER_KEY: Final = base64.urlsafe_b64encode(b"o" * 32).decode()


def test_it_makes_a_folder_with_a_copy_and_a_manifest(run: Run, upgraded_database: Path, tmp_path: Path) -> None:
    """The manifest says of when the copy is, which program and which key open it, and how to tell that it is whole."""
    ran = run("backup", "of-today", "--json")
    copy = tmp_path / "of-today" / "payrelay.db"
    manifest = json.loads(ran.out)

    assert (ran.code, ran.err) == (0, "")
    assert manifest == json.loads((tmp_path / "of-today" / "manifest.json").read_text())
    assert (manifest["bytes"], manifest["sha256"]) == (
        copy.stat().st_size,
        hashlib.sha256(copy.read_bytes()).hexdigest(),
    )
    assert (manifest["file"], manifest["newest_entry_at"], manifest["format"]) == ("payrelay.db", None, 1)
    assert sorted(path.name for path in copy.parent.iterdir()) == ["manifest.json", "payrelay.db"]
    assert upgraded_database.exists()


def test_the_copy_can_be_used_with_the_key_and_not_without(run: Run, upgraded_database: Path, tmp_path: Path) -> None:
    """The key is kept apart: whoever finds the backup alone can open nothing, and the operator is told so."""
    ran = run("backup", "of-today")
    url = f"sqlite:///{tmp_path}/of-today/payrelay.db"
    key = upgraded_database.with_name("payrelay.db.key").read_text().strip()

    assert (ran.code, ran.out) == (0, "")
    assert "of-today: the database of 2" in ran.err
    assert "keep that key elsewhere" in ran.err
    assert run("audit", "verify", PAYRELAY_DATABASE_URL=url).code == 2
    assert run("audit", "verify", PAYRELAY_DATABASE_URL=url, PAYRELAY_ENCRYPTION_KEY=key).code == 0


def test_an_existing_folder_is_left_alone(run: Run, upgraded_database: Path, tmp_path: Path) -> None:
    """The backup of yesterday must not be lost for that of today."""
    (tmp_path / "of-yesterday").mkdir()
    ran = run("backup", "of-yesterday")

    assert (ran.code, ran.out) == (2, "")
    assert "there is something of this name already" in ran.err
    assert list((tmp_path / "of-yesterday").iterdir()) == []
    assert upgraded_database.exists()


def test_where_it_fails_nothing_is_left_that_looks_like_a_backup(
    run: Run, upgraded_database: Path, tmp_path: Path
) -> None:
    """A folder that is there counts as a backup, to scripts and to people."""
    before = sorted(path.name for path in tmp_path.iterdir())
    wrong_key = run("backup", "of-today", PAYRELAY_ENCRYPTION_KEY=OTHER_KEY)
    shutil.move(upgraded_database.with_name("payrelay.db.key"), tmp_path / "elsewhere")
    no_key = run("backup", "of-today")
    shutil.move(tmp_path / "elsewhere", upgraded_database.with_name("payrelay.db.key"))

    assert (wrong_key.code, "is not the key that this database" in wrong_key.err) == (2, True)
    assert (no_key.code, "payrelay.db.key: the encryption key of this database is missing" in no_key.err) == (2, True)
    assert sorted(path.name for path in tmp_path.iterdir() if path.suffix not in {".db-wal", ".db-shm"}) == before


def test_without_a_database_none_is_made(run: Run, tmp_path: Path) -> None:
    """A backup that was started in the wrong folder would be empty, and called whole."""
    ran = run("backup", "of-today")

    assert (ran.code, "payrelay.db: there is no database" in ran.err) == (2, True)
    assert list(tmp_path.iterdir()) == []


def test_a_database_that_was_never_served_from_has_no_key(run: Run, tmp_path: Path) -> None:
    """Nothing says which key would open it."""
    run("db", "upgrade")
    database = sqlite3.connect(tmp_path / "payrelay.db")
    database.execute("DELETE FROM meta WHERE name = 'key_check'")
    database.commit()
    database.close()

    ran = run("backup", "of-today")
    assert (ran.code, "the check of the encryption key is missing" in ran.err) == (2, True)


def test_a_server_that_is_not_there_is_named_without_its_password(run: Run) -> None:
    """The address in the message helps; the password in it would lie in a log."""
    url = "postgresql://nobody:hush@127.0.0.1:1/nothing"
    ran = run("backup", "of-today", PAYRELAY_DATABASE_URL=url, PAYRELAY_ENCRYPTION_KEY=OTHER_KEY)

    assert (ran.code, "can't be reached" in ran.err, "hush" in ran.err) == (2, True, False)
