"""Runs the upgrade steps that a database has not had yet.

A migration of the schema is SQL alone. A step runs after it, and may open sealed values and make keyed digests.

Rules:

1. A step runs before anything is served, and before any command acts on sealed values.
2. A step may be stopped at any time and run again; several processes may run it at once. It is done when it returns.
3. The names of the finished steps are sealed in the store's check of its encryption key (``store.meta``). So nobody
   without that key can make a finished step run again, which would take forged rows for old ones.
4. A process of the version before may still write while a step runs. A step says in its docstring what that means.
"""

from collections.abc import Awaitable, Callable, Sequence
from typing import Final, NamedTuple

from payrelay.errors import DatabaseNotReady
from payrelay.store.engine.database import Database
from payrelay.store.engine.sealing import Seal
from payrelay.store.meta import finished_upgrades, note_upgrade
from payrelay.store.upgrades.cover_earlier_rows import cover_earlier_rows
from payrelay.store.upgrades.cover_more_rows import cover_more_rows
from payrelay.store.upgrades.data_keys import seal_with_data_keys
from payrelay.store.upgrades.signed_texts import fill_signed_texts


class UpgradeContext(NamedTuple):
    """What a step works with.

    Attributes:
        database: migrated to the newest schema.
        seal: opens and seals values.
        secret: the key of the audit chain, of which all keyed digests are made.
        now_ms: when the upgrade began, in ms since 1970, UTC.
    """

    database: Database
    seal: Seal
    secret: bytes
    now_ms: int


class UpgradeStep(NamedTuple):
    """A step: its name, which never changes, and what it does. It raises StoreError, and is then run again later."""

    name: str
    run: Callable[[UpgradeContext], Awaitable[None]]


async def _begin_chain(_: UpgradeContext) -> None:
    """Does nothing: that it is finished says that the audit chain has a key, which may not be missing any more."""


async def _cover_earlier_rows(context: UpgradeContext) -> None:
    """Gives rows their digests; a row that a process of the version before writes later counts as not existing."""
    await cover_earlier_rows(context.database, context.seal, context.secret, at_ms=context.now_ms)


async def _cover_more_rows(context: UpgradeContext) -> None:
    """Gives further rows their digests; a row that a process of the version before writes later has none."""
    await cover_more_rows(context.database, context.seal, context.secret)


async def _fill_signed_texts(context: UpgradeContext) -> None:
    """Fills in the signed texts; what a process of the version before stores meanwhile counts with every amount."""
    await fill_signed_texts(context.database, context.secret, at_ms=context.now_ms)


async def _seal_with_data_keys(context: UpgradeContext) -> None:
    await seal_with_data_keys(context.database, context.seal)


STEPS: Final[tuple[UpgradeStep, ...]] = (
    UpgradeStep("audit chain", _begin_chain),
    UpgradeStep("signed texts", _fill_signed_texts),
    UpgradeStep("data keys", _seal_with_data_keys),
    UpgradeStep("row digests", _cover_earlier_rows),
    UpgradeStep("more row digests", _cover_more_rows),
)
"""All steps, in the order in which they run. The steps that give digests come last, because they cover what the others
wrote; a later version adds its steps behind them, and they write digests themselves."""


async def require_upgraded(context: UpgradeContext, steps: Sequence[UpgradeStep] = STEPS) -> None:
    """Raises DatabaseNotReady where the database has not had every step."""
    finished = await finished_upgrades(context.database, context.seal)
    if any(step.name not in finished for step in steps):
        raise DatabaseNotReady(
            "the data of this database are not upgraded yet; run payrelay db upgrade, or start payrelay serve"
        )


async def upgrade(context: UpgradeContext, steps: Sequence[UpgradeStep] = STEPS) -> list[str]:
    """Runs the steps that the database has not had; returns their names.

    May be repeated. Raises StoreError; what was finished until then stays finished.
    """
    finished = await finished_upgrades(context.database, context.seal)
    pending = [step for step in steps if step.name not in finished]
    for step in pending:
        await step.run(context)
        await note_upgrade(context.database, context.seal, step.name)
    return [step.name for step in pending]
