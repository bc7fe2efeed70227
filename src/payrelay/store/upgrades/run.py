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

from collections.abc import Awaitable, Callable, Sequence
from typing import Final, NamedTuple

from payrelay.core.database.schema_changes import Tell, tell_nobody
from payrelay.errors import DatabaseNotReady, StoreUnusable
from payrelay.store.engine.database import Database
from payrelay.store.engine.sealing import Seal
from payrelay.store.meta import finished_upgrades, note_upgrade, sessions_of_other_versions
from payrelay.store.recovery.identity import IDENTITY_STEP, IdentityStore
from payrelay.store.upgrades.cover_earlier_rows import ROW_DIGESTS, cover_earlier_rows, has_covered_rows
from payrelay.store.upgrades.cover_more_rows import MORE_ROW_DIGESTS, cover_more_rows, has_covered_more_rows
from payrelay.store.upgrades.cover_told_rows import TOLD_ROW_DIGESTS, cover_told_rows, has_covered_told_rows
from payrelay.store.upgrades.data_keys import seal_with_data_keys
from payrelay.store.upgrades.signed_texts import fill_signed_texts
from payrelay.store.upgrades.told_database import ToldDatabase


class UpgradeContext(NamedTuple):
    """What a step works with.

    Attributes:
        database: migrated to the newest schema.
        seal: opens and seals values.
        secret: the key of the audit chain, of which all keyed digests are made.
        now_ms: when the upgrade began, in ms since 1970, UTC.
        tell: hears how it goes on.
    """

    database: Database
    seal: Seal
    secret: bytes
    now_ms: int
    tell: Tell = tell_nobody


class UpgradeStep(NamedTuple):
    """A step: its name, which never changes, and what it does. It raises StoreError, and is then run again later.

    ``has_run`` tells of a step that trusts rows whether it has run before; None where the step may run at any time.
    ``runs_beside_others``: the version before neither reads nor writes what the step does, and may go on meanwhile.
    """

    name: str
    run: Callable[[UpgradeContext], Awaitable[None]]
    has_run: Callable[[UpgradeContext], Awaitable[bool]] | None = None
    runs_beside_others: bool = False


async def _begin_chain(_: UpgradeContext) -> None:
    """Does nothing: that it is finished says that the audit chain has a key, which may not be missing any more."""


async def _cover_earlier_rows(context: UpgradeContext) -> None:
    """Gives rows their digests; a row that a process of the version before writes later counts as not existing."""
    await cover_earlier_rows(context.database, context.seal, context.secret, at_ms=context.now_ms)


async def _has_covered_rows(context: UpgradeContext) -> bool:
    return await has_covered_rows(context.database)


async def _cover_more_rows(context: UpgradeContext) -> None:
    """Gives further rows their digests; a row that a process of the version before writes later has none."""
    await cover_more_rows(context.database, context.seal, context.secret)


async def _has_covered_more_rows(context: UpgradeContext) -> bool:
    return await has_covered_more_rows(context.database)


async def _cover_told_rows(context: UpgradeContext) -> None:
    """Covers what shops are told; an event that a process of the version before writes later is told to nobody."""
    await cover_told_rows(context.database, context.seal, context.secret)


async def _has_covered_told_rows(context: UpgradeContext) -> bool:
    return await has_covered_told_rows(context.database)


async def _fill_signed_texts(context: UpgradeContext) -> None:
    """Fills in the signed texts; what a process of the version before stores meanwhile counts with every amount."""
    await fill_signed_texts(context.database, context.secret, at_ms=context.now_ms)


async def _seal_with_data_keys(context: UpgradeContext) -> None:
    await seal_with_data_keys(context.database, context.seal)


async def _give_identity(context: UpgradeContext) -> None:
    await IdentityStore(context.database, context.seal).add_first(context.now_ms)


STEPS: Final[tuple[UpgradeStep, ...]] = (
    UpgradeStep("audit chain", _begin_chain),
    UpgradeStep("signed texts", _fill_signed_texts),
    UpgradeStep(ROW_DIGESTS, _cover_earlier_rows, _has_covered_rows),
    UpgradeStep("data keys", _seal_with_data_keys),
    UpgradeStep(MORE_ROW_DIGESTS, _cover_more_rows, _has_covered_more_rows),
    UpgradeStep(IDENTITY_STEP, _give_identity, runs_beside_others=True),
    UpgradeStep(TOLD_ROW_DIGESTS, _cover_told_rows, _has_covered_told_rows),
)
"""All steps, in the order in which they run. ``data keys`` comes behind ``row digests``, and changes nothing that a
digest covers: so a database that has data keys has had its digests. A later step writes digests itself, or covers what
had none."""


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
