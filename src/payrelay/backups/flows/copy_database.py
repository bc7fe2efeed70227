"""Copies an embedded database into PostgreSQL, whole, and lets nothing take effect on the old one afterwards.

The copy counts at once or not at all. The old database says that another took its place just before the copy counts. So
at no moment could two services take effect on two databases with the same operations.
"""

from pathlib import Path
from typing import NamedTuple

import msgspec

from payrelay.backups.flows.check_copy import check_database
from payrelay.backups.store.copied import Moved
from payrelay.backups.store.copy_to_postgresql import CopyUnderWay, copying
from payrelay.clock import Clock
from payrelay.core.database.incarnations import Beginning, DatabaseIdentity
from payrelay.errors import DatabaseNotReady, StoreError, StoreUnusable
from payrelay.flows.audit.audit import Progress
from payrelay.store.database.identity import IdentityStore
from payrelay.store.engine.sealing import Seal
from payrelay.store.meta import is_anything_stored, verify_key


class CopyOrder(NamedTuple):
    """What an operator wants.

    Attributes:
        path: the embedded database.
        url: the PostgreSQL database, which holds nothing yet.
        seal: of the encryption key, which both have.
        operator: who copies.
    """

    path: Path
    url: str
    seal: Seal
    operator: str


class DatabaseCopied(msgspec.Struct, frozen=True, kw_only=True):
    """What was copied.

    Attributes:
        target: the name of the new database, without a password.
        rows: how many rows it has; each was compared.
        operations: how many operations the audit compared in it.
        incarnation: the number of its incarnation.
    """

    target: str
    rows: int
    operations: int
    incarnation: int


async def copy_database(order: CopyOrder, clock: Clock, moved: Moved, progress: Progress) -> DatabaseCopied:
    """Copies every row, compares it, and audits the copy; at once or not at all. May be interrupted, and repeated.

    ``moved`` is told how many rows were copied or compared, ``progress`` of the audit.

    Raises StoreUnusable where a process runs on either database, the new one holds something, the old one needs an
    upgrade or another key, or where the audit finds something; StoreError.
    """
    async with copying(order.path, order.url, clock) as under_way:
        await verify_key(under_way.source, order.seal)
        await _require_empty(under_way, order.seal)
        rows = await under_way.copy(moved)
        identity = await IdentityStore(under_way.target, order.seal).change(
            lambda identity: copied_identity(identity, clock.now_ms(), order.operator)
        )
        checked = await check_database(under_way.target, order.seal, clock, (), progress)
        if checked.findings:
            raise StoreUnusable(
                f"the audit has findings, the first being {checked.findings[0]}; payrelay audit verify tells all"
            )
        await IdentityStore(under_way.source, order.seal).change(
            lambda identity: msgspec.structs.replace(identity, copied_to=under_way.target_name)
        )
    return DatabaseCopied(
        target=under_way.target_name,
        rows=rows,
        operations=checked.operations,
        incarnation=identity.current.number,
    )


async def _require_empty(under_way: CopyUnderWay, seal: Seal) -> None:
    if not await is_anything_stored(under_way.target):
        return
    try:
        await verify_key(under_way.target, seal)
        there = await IdentityStore(under_way.target, seal).read()
    except (DatabaseNotReady, StoreError):
        raise StoreUnusable(f"{under_way.target_name}: the database holds something already") from None
    if there.id == (await IdentityStore(under_way.source, seal).read()).id:
        raise StoreUnusable(f"{under_way.target_name}: the database is there already, whole; serve from it")
    raise StoreUnusable(f"{under_way.target_name}: the database holds something already")


def copied_identity(identity: DatabaseIdentity, now_ms: int, operator: str) -> DatabaseIdentity:
    """Begins the incarnation of a copy; a recovery that is under way goes on in it."""
    current = identity.current
    began = msgspec.structs.replace(
        current,
        number=current.number + 1,
        reason=Beginning.COPIED,
        began_at_ms=now_ms,
        lost=current.lost if current.is_recovering else None,
        ended_recovery_at_ms=None,
        acknowledged=current.acknowledged if current.is_recovering else {},
        operator=operator,
        note="",
    )
    return DatabaseIdentity(id=identity.id, incarnations=(*identity.incarnations, began))
