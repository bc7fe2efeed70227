"""Counts what each key seals, and seals everything anew with the first key while the service runs."""

from collections import Counter
from collections.abc import Callable

import msgspec

from payrelay.store.tables.seals import Seals

Progress = Callable[[str, int, int], None]
"""Called with a column's name, how many values were exchanged or found unreadable so far, and how many there are."""


class SealStatus(msgspec.Struct, frozen=True, kw_only=True):
    """How many values each key seals.

    Attributes:
        key_ids: the configured keys, in hex digits; the first one seals, the others only open.
        counts: for each column's name, how many of its values each key seals, configured or not.
    """

    key_ids: tuple[str, ...]
    counts: dict[str, Counter[str]]

    @property
    def under_others(self) -> int:
        """How many values are sealed with another key than the first."""
        return sum(counts.total() - counts[self.key_ids[0]] for counts in self.counts.values())


class Rotation(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a rotation.

    Attributes:
        key_id: the first key, in hex digits.
        total: how many values were sealed with another one.
        unopened: the values that no key opens, by column and row; they stay as they are.
        left: how many values are sealed with another key at the end.
    """

    key_id: str
    total: int
    unopened: list[str]
    left: int


async def seal_status(seals: Seals) -> SealStatus:
    """Counts what each key seals. Raises StoreError."""
    counted = await seals.count()
    return SealStatus(key_ids=seals.key_ids, counts={column.name: counts for column, counts in counted.items()})


async def rotate_seal(seals: Seals, progress: Progress) -> Rotation:
    """Seals everything anew with the first key; may be interrupted and begun again. Raises StoreError."""
    before = await seal_status(seals)
    total, done, unopened = before.under_others, 0, list[str]()
    async for exchanged in seals.rotate():
        unopened += (f"{exchanged.column.name} {row}" for row in exchanged.unopened)
        done += exchanged.done + len(exchanged.unopened)
        progress(exchanged.column.name, done, total)
    after = await seal_status(seals)
    return Rotation(key_id=before.key_ids[0], total=total, unopened=unopened, left=after.under_others)
