"""The cells of the errands: each dies at each passage of it, each time that it surely comes there."""

from collections.abc import Iterator
from dataclasses import dataclass

from tests.matrix.errands import ERRANDS, Errand

from payrelay.runtime.hooks import FlowPoint


@dataclass(frozen=True, kw_only=True)
class ErrandCell:
    """One death on an errand.

    Attributes:
        store: the name of the store.
        errand: what is under way.
        crash_point: where the process dies; None for a rehearsal, in which nobody dies.
        time: which time something comes there.
    """

    store: str
    errand: Errand
    crash_point: FlowPoint | None = None
    time: int = 0

    @property
    def is_rehearsal(self) -> bool:
        """Whether nobody dies."""
        return self.crash_point is None

    def __str__(self) -> str:
        return f"{self.store}: {self.errand.name}, " + (
            "rehearsal" if self.crash_point is None else f"{self.crash_point} {self.time}"
        )


def errand_cells_of(store: str) -> Iterator[ErrandCell]:
    """Gives all deaths on a store."""
    for errand in ERRANDS:
        for place, crash_point in enumerate(errand.passages):
            time = errand.passages[: place + 1].count(crash_point)
            yield ErrandCell(store=store, errand=errand, crash_point=crash_point, time=time)


def errand_rehearsals_of(store: str) -> Iterator[ErrandCell]:
    """Gives all errands on a store, run without dying."""
    for errand in ERRANDS:
        yield ErrandCell(store=store, errand=errand)
