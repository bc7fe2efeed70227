"""The cells of the matrix: each deed, on each of its ways, dies at each stage of it, each time that it comes there.

What is written down here is held against the program by rehearsals: ways that are gone without dying.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from tests.matrix.deeds import DEEDS, Deed

from payrelay.runtime.hooks import OperationPoint


class Way(StrEnum):
    """How an operation comes to its end, where nobody dies."""

    DIRECT = "direct"
    WAITING = "waiting"
    """The gateway's budget is used up, and a place comes a little later."""
    EXPIRED = "token expired"
    """The gateway turns it away for its token, and it is sent once more."""
    LOST = "reply lost"
    """The gateway does it and cuts the connection; what became of it is looked for."""
    CUT = "request lost"
    """The gateway cuts the connection and does nothing; what became of it is looked for."""
    IN_FLIGHT_DONE = "in flight, done"
    """The gateway has done it and hasn't answered: the process is killed from outside then."""
    IN_FLIGHT_UNDONE = "in flight, not done"
    """The gateway has it and never does it: the process is killed from outside then."""


FAULTS: Final = {
    Way.EXPIRED: "token_expired",
    Way.LOST: "cut_after",
    Way.CUT: "cut_before",
    Way.IN_FLIGHT_DONE: "hang_after",
    Way.IN_FLIGHT_UNDONE: "hang_before",
}
"""What the simulator is told to do to the call."""
IN_FLIGHT: Final = (Way.IN_FLIGHT_DONE, Way.IN_FLIGHT_UNDONE)

_STORED: Final = (OperationPoint.RECORDING, OperationPoint.RECORDED)
_ACCEPTED: Final = (OperationPoint.ACCEPTING, OperationPoint.ACCEPTED)
_SENT: Final = (OperationPoint.SENDING, OperationPoint.REPLIED, *_STORED)
_INQUIRED: Final = (OperationPoint.INQUIRING, OperationPoint.INQUIRED, *_STORED)
_RESENT_TO_RESOLVE: Final = (*_STORED, OperationPoint.RESENDING_TO_RESOLVE, OperationPoint.RESENT_TO_RESOLVE, *_STORED)

_STAGES: Final = {
    Way.DIRECT: (*_ACCEPTED, *_SENT),
    Way.WAITING: (*_ACCEPTED, *_SENT),
    Way.EXPIRED: (
        *_ACCEPTED,
        OperationPoint.SENDING,
        OperationPoint.RESENDING,
        *_STORED,
        OperationPoint.RESENT,
        OperationPoint.REPLIED,
        *_STORED,
    ),
    Way.LOST: (*_ACCEPTED, *_SENT),
    Way.CUT: (*_ACCEPTED, *_SENT),
}

_RESOLVED: Final = {
    "charge": _INQUIRED,
    "charge by handle": _INQUIRED,
    "authorization": (),
    "capture": (*_RESENT_TO_RESOLVE, *_INQUIRED),
    "refund": _INQUIRED,
    "partial refund": _STORED,
    "release": _STORED,
    "retry": _INQUIRED,
    "cancel": _RESENT_TO_RESOLVE,
}
"""What comes after a reply that was lost; of a capture that wasn't made only the second sending."""


def stages_of(deed: Deed, way: Way) -> tuple[OperationPoint, ...]:
    """Gives the stages that the deed comes to on the way, in their order, one a time that it comes there."""
    resolved: tuple[OperationPoint, ...] = ()
    if way is Way.LOST:
        resolved = _RESOLVED[deed.name]
    elif way is Way.CUT:
        resolved = _RESENT_TO_RESOLVE if deed.is_repeatable else _RESOLVED[deed.name]
    return (*_STAGES[way], *resolved)


@dataclass(frozen=True, kw_only=True)
class Cell:
    """One death.

    Attributes:
        store: the name of the store.
        deed: what is under way.
        way: how it would have come to its end.
        crash_point: where the process dies; None for a kill from outside, or for a rehearsal, in which nobody dies.
        time: which time it comes there.
    """

    store: str
    deed: Deed
    way: Way
    crash_point: OperationPoint | None = None
    time: int = 0

    @property
    def is_rehearsal(self) -> bool:
        """Whether nobody dies."""
        return self.crash_point is None and self.way not in IN_FLIGHT

    def __str__(self) -> str:
        where = f" {self.crash_point} {self.time}" if self.crash_point else " rehearsal" if self.is_rehearsal else ""
        return f"{self.store}: {self.deed.name}, {self.way}{where}"


def cells_of(store: str) -> Iterator[Cell]:
    """Gives all deaths on a store."""
    for deed in DEEDS:
        for way in Way:
            if way in IN_FLIGHT:
                yield Cell(store=store, deed=deed, way=way)
                continue
            stages = stages_of(deed, way)
            for place, crash_point in enumerate(stages):
                yield Cell(
                    store=store,
                    deed=deed,
                    way=way,
                    crash_point=crash_point,
                    time=stages[: place + 1].count(crash_point),
                )


def rehearsals_of(store: str) -> Iterator[Cell]:
    """Gives all ways on a store, gone without dying."""
    for deed in DEEDS:
        for way in _STAGES:
            yield Cell(store=store, deed=deed, way=way)
