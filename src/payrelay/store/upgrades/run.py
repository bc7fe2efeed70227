"""Runs the upgrade steps that a database has not had yet.

A migration of the schema is SQL alone. A step runs after it, and may open sealed values and make keyed digests.

Rules:

1. A step runs before anything is served, and before any command acts on sealed values.
2. A step may be stopped at any time and run again; several processes may run it at once. It is done when it returns.
3. The names of the finished steps are sealed in the store's check of its encryption key (``store.meta``). A new
   database has all of them from the first.
4. A step trusts no row that its digest doesn't fit: an older check may lie in a backup or in a log, and whoever puts it
   back has the step run over rows of his own.
5. A step that older programs can't work beside has a migration that they can't work with. So ``db upgrade`` waits for
   the end of their processes, and none of them starts again.
"""

from collections.abc import Awaitable, Callable, Sequence
from typing import Final, NamedTuple

from payrelay.core.database.schema_changes import Tell, tell_nobody
from payrelay.errors import DatabaseNotReady
from payrelay.store.engine.database import Database
from payrelay.store.engine.sealing import Seal
from payrelay.store.meta import finished_upgrades, note_upgrade


class UpgradeContext(NamedTuple):
    """What a step works with.

    Attributes:
        database: migrated to the newest schema.
        seal: opens and seals values.
        secret: the key of the audit chain, of which all keyed digests are made.
        tell: hears how it goes on.
    """

    database: Database
    seal: Seal
    secret: bytes
    tell: Tell = tell_nobody


class UpgradeStep(NamedTuple):
    """A step: its name, which never changes, and what it does. It raises StoreError, and is then run again later."""

    name: str
    run: Callable[[UpgradeContext], Awaitable[None]]


STEPS: Final[tuple[UpgradeStep, ...]] = ()
"""All steps, in the order in which they run."""


async def require_upgraded(context: UpgradeContext, steps: Sequence[UpgradeStep] = STEPS) -> None:
    """Raises DatabaseNotReady where the database has not had every step."""
    if await _missing(context, steps):
        raise DatabaseNotReady(
            "the data of this database are not upgraded yet; run payrelay db upgrade, or start payrelay serve --upgrade"
        )


async def upgrade(context: UpgradeContext, steps: Sequence[UpgradeStep] = STEPS) -> None:
    """Runs the steps that the database has not had.

    May be repeated. Raises StoreError; what was finished until then stays finished.
    """
    for step in await _missing(context, steps):
        context.tell(f"upgrade step {step.name!r}")
        await step.run(context)
        await note_upgrade(context.database, context.seal, step.name)


async def _missing(context: UpgradeContext, steps: Sequence[UpgradeStep]) -> list[UpgradeStep]:
    finished = await finished_upgrades(context.database, context.seal)
    return [step for step in steps if step.name not in finished]
