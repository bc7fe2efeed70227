"""What `payrelay check` says of the high-water marks."""

from pathlib import Path

import pytest
from tests.cli.commands import GATEWAY, Run

from payrelay.app import opened_resources
from payrelay.cli.checks.of_marks import NO_FOLDER, of_marks
from payrelay.clock import Clock
from payrelay.core.secret import Secret
from payrelay.settings import Settings

pytestmark = pytest.mark.usefixtures("upgraded_database")
FOREIGN = (
    '{"mark":{"database":"another","incarnation":1,"written_at_ms":1795387606805,"operations":[],"checkout":null,'
    '"anchor":null},"digest":""}'
)


def test_a_database_without_marks_is_right(run: Run) -> None:
    """A new one has none yet."""
    assert "✓ lost commits: no mark is in payrelay.db.marks yet" in run("check", **GATEWAY).out


def test_a_mark_of_another_database_is_named(run: Run, tmp_path: Path) -> None:
    """An operator finds the file that stops the effects, and what to do."""
    folder = tmp_path / "payrelay.db.marks"
    folder.mkdir()
    (folder / "01.mark").write_text(FOREIGN)
    ran = run("check", **GATEWAY)

    assert "✗ lost commits: the database is behind: there is a mark of another database" in ran.out
    assert "payrelay.db.marks/01.mark; nothing takes effect until an operator runs payrelay recover" in ran.out
    assert ran.code == 1


def test_a_file_that_is_no_mark_is_a_warning(run: Run, tmp_path: Path) -> None:
    """It stops nothing, and shows nothing either."""
    (tmp_path / "01.mark").write_text("{")
    ran = run("check", **GATEWAY, PAYRELAY_MARK_PATH=str(tmp_path))

    assert f"! lost commits: {tmp_path}/01.mark is no mark of this database, or was forged" in ran.out


def test_a_folder_that_is_a_file_is_wrong(run: Run, tmp_path: Path) -> None:
    """No mark can be kept there."""
    (tmp_path / "marks").write_text("")
    ran = run("check", **GATEWAY, PAYRELAY_MARK_PATH=str(tmp_path / "marks"))

    assert "lost commits: " in ran.out
    assert "can't be" in ran.out


async def test_postgresql_without_a_folder_is_a_warning(tmp_path: Path) -> None:
    """Nothing would show after a restart that a server was promoted which lacks commits."""
    embedded = Settings.model_validate({"database_url": Secret(f"sqlite:///{tmp_path}/payrelay.db")})
    shared_by_many = Settings.model_validate({"database_url": Secret("postgresql://shop@db.example/payrelay")})
    async with opened_resources(embedded, Clock()) as shared:
        results = [each async for each in of_marks(shared_by_many, shared)]

    assert [(each.text, each.is_right, each.is_warning) for each in results] == [(NO_FOLDER, True, True)]
    assert shared_by_many.marks_folder is None
