"""A loss of power: the disk has lost all that was not synced, and not only what a process still had in memory."""

import subprocess
import sys
from pathlib import Path

import pytest
from tests.databases import sqlite_url
from tests.sources import ROOT

from payrelay.clock import Clock
from payrelay.store import open_database
from payrelay.store.engine.database import Statement, all_rows
from payrelay.store.engine.queries import query

pytestmark = pytest.mark.story

WRITTEN_MIN = 60


async def acknowledged_and_left(folder: Path, *options: str) -> tuple[set[str], set[str]]:
    """Gives the ids that a process had acknowledged when it was killed, and those that a loss of power leaves."""
    left = folder / "left"
    left.mkdir()
    acknowledged = _acknowledged_before_a_kill(sqlite_url(folder / "payrelay.db"), str(left), *options)
    database = await open_database(f"sqlite:///{left / 'payrelay.db'}", clock=Clock(), owner=True)
    rows = await database.read(all_rows(Statement(query("SELECT id FROM operations"), ())))
    await database.close()
    return acknowledged, {str(row[0]) for row in rows}


def _acknowledged_before_a_kill(*arguments: str) -> set[str]:
    command = [sys.executable, "-m", "tests.store.engine.writes_until_killed", *arguments]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as writer:
        assert writer.stdout is not None
        lines = [writer.stdout.readline() for _ in range(WRITTEN_MIN)]
        writer.kill()
        return {line.strip() for line in (*lines, *writer.stdout) if line.endswith("\n")}


async def test_what_was_acknowledged_outlives_a_loss_of_power(tmp_path: Path) -> None:
    """A charge that a client was told of, and that a new start knows nothing of, would be charged again."""
    acknowledged, left = await acknowledged_and_left(tmp_path)
    assert len(acknowledged) >= WRITTEN_MIN
    assert acknowledged <= left


async def test_without_syncs_it_would_not(tmp_path: Path) -> None:
    """So the test above would fail, should a setting or a release of SQLite leave the syncs out."""
    acknowledged, left = await acknowledged_and_left(tmp_path, "unsynced")
    assert len(acknowledged) >= WRITTEN_MIN
    assert acknowledged - left
