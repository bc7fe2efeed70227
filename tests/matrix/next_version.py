"""The version after this one, as an upgrade finds it: a copy of this program with further migrations and a step."""

import shutil
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from payrelay.store.engine.migrations import shipped

COMMAND: Final = (sys.executable, "-m", "payrelay")
"""What runs the program that ``PYTHONPATH`` names."""
SOURCES: Final = Path(__file__).parents[2] / "src"
THIS: Final = len(shipped("sqlite"))
"""The version of the schema that this program knows."""
ADDED: Final = {
    f"{THIS + 1:04}_lanes_since_{THIS:04}.sql": "ALTER TABLE operations ADD COLUMN lane text;",
    f"{THIS + 2:04}_lanes_online_since_{THIS:04}.sql": (
        "-- online\n"
        "DROP INDEX CONCURRENTLY IF EXISTS operations_lane;\n"
        "CREATE INDEX CONCURRENTLY operations_lane ON operations (lane);\n"
    ),
}
"""Migrations that this program can work with."""
CLOSED: Final = {f"{THIS + 3:04}_lanes_alone.sql": "ALTER TABLE operations ADD COLUMN only_lane text;"}
"""A migration that it can't work with."""
BROKEN: Final = {f"{THIS + 2:04}_lanes_online_since_{THIS:04}.sql": "ALTER TABLE lanes ADD COLUMN lane text;"}
"""One of the former, in a build in which it was mistaken."""

_NO_STEPS: Final = "STEPS: Final[tuple[UpgradeStep, ...]] = ()"
_A_STEP: Final = """
async def _count_lanes(context: UpgradeContext) -> None:
    from payrelay.store.engine.database import Statement, all_rows
    from payrelay.store.engine.queries import query

    counted = "INSERT INTO key_residues (place, times) VALUES ('lanes', 1)"
    await context.database.write(all_rows(Statement(query(counted + " ON CONFLICT DO NOTHING"), ())))


STEPS: Final[tuple[UpgradeStep, ...]] = (UpgradeStep("lanes", _count_lanes),)
"""


def next_version(folder: Path, *migrations: Mapping[str, str]) -> dict[str, str]:
    """Puts it into a new folder, with a step; gives the settings with which ``COMMAND`` runs it."""
    sources = folder / "src"
    shutil.copytree(SOURCES, sources)
    store = sources / "payrelay" / "store"
    for name, text in {name: text for each in migrations for name, text in each.items()}.items():
        (store / "engine" / "schema" / name).write_text(text, encoding="utf-8")
    steps = store / "upgrades" / "run.py"
    text = steps.read_text(encoding="utf-8")
    assert text.count(_NO_STEPS) == 1, "steps of this version stay in the next one"
    steps.write_text(text.replace(_NO_STEPS, _A_STEP), encoding="utf-8")
    return {"PYTHONPATH": str(sources)}
