"""Begins the recovery of a restored database, while nobody but the restore knows of it."""

from collections.abc import Awaitable, Callable
from typing import Final

from payrelay.backups.store.drafts import Draft
from payrelay.backups.store.manifest import Backup
from payrelay.clock import Clock
from payrelay.core.database.incarnations import Incarnation
from payrelay.core.database.marks import MarksShown
from payrelay.errors import StoreError, StoreUnusable
from payrelay.flows.database.begin_recovery import begin_recovery
from payrelay.store.database.identity import IdentityStore
from payrelay.store.engine.database import Database
from payrelay.store.engine.sealing import Seal
from payrelay.store.meta import require_opened

LOST_MARGIN_MS: Final = 5 * 60 * 1000
"""A commit may come so much later than the time in it, and the clocks of two machines may differ."""


NO_MARKS: Final = MarksShown(read=0, newest_at_ms=None, missing=(), foreign=(), unusable=())
LookAtMarks = Callable[[Database, Seal], Awaitable[MarksShown]]
"""Compares the marks with a database that was not begun anew yet; raises StoreError, OSError."""


async def no_marks(_database: Database, _seal: Seal) -> MarksShown:
    """Says that no mark names anything, where none are kept."""
    return NO_MARKS


async def begin_in_draft(
    draft: Draft, backup: Backup, seal: Seal, clock: Clock, look_at_marks: LookAtMarks, *, operator: str, note: str
) -> tuple[Incarnation, MarksShown]:
    """Begins the recovery in a loaded draft; returns it with what the marks show.

    Raises StoreUnusable where the draft can't be opened with the key; StoreError, OSError.
    """
    number_above = await _replaced_number(draft, seal) if draft.is_taken else 0
    async with draft.changed() as opened:
        _require_opened(seal, opened.key_check, backup)
        marks = await look_at_marks(opened.database, seal)
        since_ms = backup.made_at_ms - LOST_MARGIN_MS
        incarnation = await begin_recovery(
            IdentityStore(opened.database, seal),
            clock,
            lost_since_ms=since_ms if marks.lost_since_ms is None else min(since_ms, marks.lost_since_ms),
            operator=operator,
            note=note,
            number_above=max(number_above, marks.incarnation),
        )
    return incarnation, marks


def _require_opened(seal: Seal, check: bytes | None, backup: Backup) -> None:
    if check is None:
        raise StoreUnusable(f"{backup.copy}: the check of the encryption key is missing from it")
    require_opened(seal, check)


async def _replaced_number(draft: Draft, seal: Seal) -> int:
    """Reads the number of the incarnation that is replaced; 0 where the database can't be read any more."""
    try:
        async with draft.replaced() as opened:
            return (await IdentityStore(opened.database, seal).read()).current.number
    except StoreError:
        return 0
