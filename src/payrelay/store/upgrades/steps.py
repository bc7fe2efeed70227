"""The steps of upgrades, in the order in which they run; ``store.upgrades.run`` has the rules of a step."""

from collections.abc import Awaitable, Callable
from typing import Final, NamedTuple

from payrelay.core.database.schema_changes import Tell, tell_nobody
from payrelay.store.engine.database import Database
from payrelay.store.engine.sealing import Seal
from payrelay.store.recovery.identity import IDENTITY_STEP, IdentityStore
from payrelay.store.upgrades.cover_earlier_rows import ROW_DIGESTS, cover_earlier_rows, has_covered_rows
from payrelay.store.upgrades.cover_more_rows import MORE_ROW_DIGESTS, cover_more_rows, has_covered_more_rows
from payrelay.store.upgrades.cover_told_rows import TOLD_ROW_DIGESTS, cover_told_rows, has_covered_told_rows
from payrelay.store.upgrades.data_keys import seal_with_data_keys
from payrelay.store.upgrades.sealed_references import seal_references
from payrelay.store.upgrades.signed_texts import fill_signed_texts


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


async def _seal_references(context: UpgradeContext) -> None:
    """Hides what lay in clear in checkouts; a row that a process of the version before writes later has no digest."""
    await seal_references(context.database, context.seal, context.secret)


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
    UpgradeStep("sealed references", _seal_references),
)
"""All steps, in the order in which they run. ``data keys`` comes behind ``row digests``, and changes nothing that a
digest covers: so a database that has data keys has had its digests. A later step writes digests itself, or covers what
had none."""
