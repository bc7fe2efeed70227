"""The anchors over what is to be cleared: whether their spans are still as they were, and what is left of each."""

from bisect import bisect_right
from collections.abc import Iterable
from typing import Final

from payrelay.core.payments.audit_chain import AnchorCheckpoint, sum_text
from payrelay.store.engine.database import Database, Statement, all_rows
from payrelay.store.payments.audit import Anchor, Trail
from payrelay.store.statements.retention import clearing as statements

SPANS_KEPT_MAX: Final = 1_000
"""Spans that are remembered from one batch to the next: the clearing goes through them in their order."""


class AnchoredSpans:
    """Finds the anchor of each time, and compares an anchor with its span before anything of it is cleared.

    It remembers what it found until ``begin_batch``: all spans of a batch, however many they are.
    """

    def __init__(self, database: Database, trail: Trail, *, kept_max: int = SPANS_KEPT_MAX) -> None:
        self._database = database
        self._trail = trail
        self._kept_max = kept_max
        self._spans: dict[int, Anchor] = {}
        self._order: list[tuple[int, int]] = []
        self._first: dict[int, AnchorCheckpoint | None] = {}

    def begin_batch(self) -> None:
        """Forgets the spans of earlier batches where they have become many."""
        if len(self._spans) >= self._kept_max:
            self._spans.clear()
            self._order.clear()
            self._first.clear()

    async def anchored_until_ms(self) -> int:
        """Gives up to when journal entries are anchored; 0 where none are. Raises StoreUnavailable."""
        last = await self._trail.last_anchor()
        return 0 if last is None else last.until_ms

    async def are_right(self, times_ms: Iterable[int]) -> bool:
        """Tells whether the spans of these times are as their anchors say, or were, before anything was cleared.

        Raises StoreUnavailable.
        """
        for at_ms in sorted(set(times_ms)):
            anchor = await self._anchor_at(at_ms)
            if anchor is None:
                return False
            if anchor.number not in self._first:
                self._first[anchor.number] = await self._checked(anchor)
            if self._first[anchor.number] is None:
                return False
        return True

    def number_at(self, at_ms: int) -> int:
        """Gives the number of the anchor of a time for which ``are_right`` was true in this batch."""
        return self._known(at_ms) or 0

    def first_checkpoint(self, number: int) -> AnchorCheckpoint:
        """Gives the checkpoint of an anchor of which nothing was cleared; ``are_right`` was true of its span.

        Raises LookupError where it was not.
        """
        found = self._first[number]
        if found is None:
            raise LookupError(f"anchor {number} does not fit its span")
        return found

    def _known(self, at_ms: int) -> int | None:
        place = bisect_right(self._order, (at_ms, 2**62)) - 1
        if place < 0:
            return None
        number = self._order[place][1]
        return number if self._spans[number].until_ms > at_ms else None

    async def _anchor_at(self, at_ms: int) -> Anchor | None:
        known = self._known(at_ms)
        if known is not None:
            return self._spans[known]
        last = await self._trail.last_anchor()
        low, high = 1, 0 if last is None else last.number
        while low <= high:
            middle = (low + high) // 2
            anchor = await self._numbered(middle)
            if anchor is None:
                return None
            if anchor.until_ms <= at_ms:
                low = middle + 1
            elif anchor.from_ms > at_ms:
                high = middle - 1
            else:
                self._remember(anchor)
                return anchor
        return None

    async def _numbered(self, number: int) -> Anchor | None:
        rows = await self._database.read(all_rows(Statement(statements.ANCHOR_NUMBERED, (number,))))
        return Anchor(*rows[0]) if rows else None  # type: ignore[arg-type] # columns have their types by the schema

    def _remember(self, anchor: Anchor) -> None:
        self._spans[anchor.number] = anchor
        self._order = sorted((each.from_ms, each.number) for each in self._spans.values())

    async def _checked(self, anchor: Anchor) -> AnchorCheckpoint | None:
        """Compares an anchor with its span; None where they differ, unless something of it was cleared before."""
        stored = await self._trail.anchor_checkpoint(anchor.number)
        if stored is not None:
            return stored if stored.anchor == anchor.digest else None
        before = await self._numbered(anchor.number - 1)
        now = await self._trail.anchor("" if before is None else before.digest, anchor.span)
        if now != anchor:
            explained, _ = await self._trail.explanations()
            if not any((each.anchor, each.present) == (anchor.digest, now.digest) for each in explained):
                return None
        entries, total = await self._trail.sum_of(anchor.span)
        return AnchorCheckpoint(anchor.number, anchor.digest, entries, sum_text(total), 0)
