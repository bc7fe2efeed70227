"""The cells of the errands: each dies at each passage of it, each time that it surely comes there."""

from collections.abc import Iterator
from dataclasses import dataclass

from tests.matrix.errands import ERRANDS, Errand

from payrelay.runtime.hooks import Passage


@dataclass(frozen=True, kw_only=True)
class ErrandCell:
    """One death on an errand.

    Attributes:
        store: the name of the store.
        errand: what is under way.
        passage: where the process dies; None for a rehearsal, in which nobody dies.
        time: which time something comes there.
    """

    store: str
    errand: Errand
    passage: Passage | None = None
    time: int = 0

    @property
    def is_rehearsal(self) -> bool:
        """Whether nobody dies."""
        return self.passage is None

    def __str__(self) -> str:
        return f"{self.store}: {self.errand.name}, " + (
            "rehearsal" if self.passage is None else f"{self.passage} {self.time}"
        )


def errand_cells_of(store: str) -> Iterator[ErrandCell]:
    """Gives all deaths on a store."""
    for errand in ERRANDS:
        for place, passage in enumerate(errand.passages):
            time = errand.passages[: place + 1].count(passage)
            yield ErrandCell(store=store, errand=errand, passage=passage, time=time)


def errand_rehearsals_of(store: str) -> Iterator[ErrandCell]:
    """Gives all errands on a store, run without dying."""
    for errand in ERRANDS:
        yield ErrandCell(store=store, errand=errand)
