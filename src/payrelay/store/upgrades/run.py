"""Runs the upgrade steps that a database has not had yet.

A migration of the schema is SQL alone. A step runs after it, and may open sealed values and make keyed digests.

Rules:

1. A step runs before anything is served, and before any command acts on sealed values.
2. A step may be stopped at any time and run again; several processes may run it at once. It is done when it returns.
3. The names of the finished steps are sealed in the store's check of its encryption key (``store.meta``). A new
   database has all of them from the first. A check from before a step may lie in a backup or in a log, and whoever puts
   it back wants the step to take forged rows for old ones. So a step that trusts rows tells whether it has run before
   (``has_run``), and nothing is upgraded where it has and the check doesn't say so.
4. No process of the version before may run beside a step that writes digests or moves seals: it can't read what the
   step has written, and what it writes would count as not existing. On an embedded database the upgrade holds the
   owner's lock (``app.opened_resources``). On PostgreSQL the sessions of other versions are asked for. Such a step has
   a migration beside it that the version before can't work with, so that nobody starts that version again. A step with
   ``runs_beside_others`` needs none of this.
"""

from collections.abc import Sequence

from payrelay.errors import DatabaseNotReady, StoreUnusable
from payrelay.store.meta import finished_upgrades, note_upgrade, sessions_of_other_versions
from payrelay.store.upgrades.steps import STEPS, UpgradeContext, UpgradeStep
from payrelay.store.upgrades.told_database import ToldDatabase

__all__ = ["UpgradeContext", "require_upgraded", "upgrade"]


async def require_upgraded(context: UpgradeContext, steps: Sequence[UpgradeStep] = STEPS) -> None:
    """Raises DatabaseNotReady where the database has not had every step."""
    finished = await finished_upgrades(context.database, context.seal)
    if any(step.name not in finished for step in steps):
        raise DatabaseNotReady(
            "the data of this database are not upgraded yet; run payrelay db upgrade, or start payrelay serve --upgrade"
        )


async def upgrade(context: UpgradeContext, steps: Sequence[UpgradeStep] = STEPS) -> list[str]:
    """Runs the steps that the database has not had; returns their names.

    May be repeated. Raises StoreError; what was finished until then stays finished. Raises StoreUnusable, and runs no
    step, where one of them has run before although the check of the key doesn't name it, and where another version of
    Payrelay uses the database.
    """
    finished = await finished_upgrades(context.database, context.seal)
    pending = [step for step in steps if step.name not in finished]
    for step in pending:
        await _require_first_run(context, step)
    if any(not step.runs_beside_others for step in pending):
        await _require_no_other_version(context)
    for step in pending:
        context.tell(f"upgrade step {step.name!r}")
        await step.run(context._replace(database=ToldDatabase(context.database, context.tell)))
        await note_upgrade(context.database, context.seal, step.name)
    return [step.name for step in pending]


async def _require_first_run(context: UpgradeContext, step: UpgradeStep) -> None:
    if step.has_run is None or not await step.has_run(context):
        return
    if step.name not in await finished_upgrades(context.database, context.seal):  # else another process was quicker
        raise StoreUnusable(
            f"the upgrade step {step.name!r} was finished before, and the check of the encryption key doesn't say so:"
            " an older check was put into the database; bring it back from a backup, and find out who wrote to it"
        )


async def _require_no_other_version(context: UpgradeContext) -> None:
    sessions = await sessions_of_other_versions(context.database)
    if sessions:
        raise StoreUnusable(
            f"another version of Payrelay has {sessions} sessions on this database, and can't use it afterwards:"
            " stop its processes, and begin again"
        )
