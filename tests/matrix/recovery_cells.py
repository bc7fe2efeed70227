"""The cells of a recovery: a request that is held or adopted, and a decision about one, die at each stage of it.

What is held or adopted dies with the service; what is decided dies with the operator's command, beside the service.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from tests.matrix.deeds import DEEDS, Deed

from payrelay.core.operators.held_decisions import HeldDecision
from payrelay.runtime.hooks import OperationPoint


class RecoveryWay(StrEnum):
    """What becomes of a request that comes again in a recovery."""

    HELD = "held"
    """Nothing shows what its first try did, or no order is known to be paid for the control query."""
    ADOPTED = "adopted"
    """Its first try was carried out, and the gateway shows it."""
    DONE = "decided done"
    SEND = "decided send"
    REFUSED = "decided refuse"


DECISIONS: Final = {
    RecoveryWay.DONE: HeldDecision.DONE,
    RecoveryWay.SEND: HeldDecision.SEND,
    RecoveryWay.REFUSED: HeldDecision.REFUSE,
}
_STORED: Final = (OperationPoint.RECORDING, OperationPoint.RECORDED)
STAGES: Final = {
    RecoveryWay.HELD: (OperationPoint.ACCEPTING, OperationPoint.ACCEPTED),
    RecoveryWay.ADOPTED: _STORED,
    RecoveryWay.DONE: _STORED,
    RecoveryWay.SEND: (*_STORED, OperationPoint.SENDING, OperationPoint.REPLIED, *_STORED),
    RecoveryWay.REFUSED: _STORED,
}
HELD_DEEDS: Final = frozenset({"charge", "authorization", "partial refund", "release"})
"""What is held: the charge, because these books know of no paid order."""
ADOPTED_DEEDS: Final = frozenset({"charge"})


@dataclass(frozen=True, kw_only=True)
class RecoveryCell:
    """One death in a recovery.

    Attributes:
        store: the name of the store.
        deed: what is asked for.
        way: what would have become of it.
        crash_point: where the process dies; None for a rehearsal, in which nobody dies.
        time: which time it comes there.
    """

    store: str
    deed: Deed
    way: RecoveryWay
    crash_point: OperationPoint | None = None
    time: int = 0

    @property
    def is_rehearsal(self) -> bool:
        """Whether nobody dies."""
        return self.crash_point is None

    def __str__(self) -> str:
        where = "rehearsal" if self.crash_point is None else f"{self.crash_point} {self.time}"
        return f"{self.store}: {self.deed.name} in a recovery, {self.way} {where}"


def recovery_cells_of(store: str) -> Iterator[RecoveryCell]:
    """Gives all deaths on a store."""
    for rehearsal in recovery_rehearsals_of(store):
        stages = STAGES[rehearsal.way]
        for place, crash_point in enumerate(stages):
            yield RecoveryCell(
                store=store,
                deed=rehearsal.deed,
                way=rehearsal.way,
                crash_point=crash_point,
                time=stages[: place + 1].count(crash_point),
            )


def recovery_rehearsals_of(store: str) -> Iterator[RecoveryCell]:
    """Gives all ways on a store, gone without dying."""
    for way in RecoveryWay:
        names = ADOPTED_DEEDS if way is RecoveryWay.ADOPTED else HELD_DEEDS
        yield from (RecoveryCell(store=store, deed=deed, way=way) for deed in DEEDS if deed.name in names)
