"""An operation as our books have it, beside what really became of it."""

from dataclasses import dataclass, field
from typing import Final

from tests.simulation.network import Arrival
from tests.simulation.process import START_MS

from payrelay.core.calls import Effect
from payrelay.core.payments.operation import JournalEntry, Kind, Operation, State
from payrelay.core.payments.proof import PROVED_ABSENT_AFTER_MS
from payrelay_simulator.ledger import LedgerEntry

UNTOUCHED: Final = frozenset({State.DECLINED, State.REFUSED, State.NOT_SENT, State.FAILED})
"""What is told as having taken no effect."""
ENTRY_KINDS: Final = {
    Kind.CHARGE: "charge",
    Kind.AUTHORIZATION: "authorization",
    Kind.CAPTURE: "capture",
    Kind.REFUND: "refund",
    Kind.VOID: "release",
    Kind.RETRY: "retry",
    Kind.CANCEL: "cancel",
}
NO_EFFECT: Final = frozenset({400, 401, 402, 403, 404, 409, 415, 422, 429, 502, 503})
"""An answer to a request with one of these says that this request has done nothing."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Book:
    """One operation: what our books say of it, and what really became of it.

    Attributes:
        operation, history, call: what our books say.
        arrivals: its calls, as they came to the gateway.
        earlier: what an earlier try of the same request did to the money, whose operation was lost.
    """

    operation: Operation
    history: list[JournalEntry]
    call: Effect
    arrivals: list[Arrival]
    earlier: list[LedgerEntry] = field(default_factory=list)

    @property
    def entries(self) -> list[LedgerEntry]:
        """What it did to the money."""
        return [*self.earlier, *(entry for arrival in self.arrivals for entry in arrival.entries)]

    @property
    def is_hidden(self) -> bool:
        """True where what it did could not be seen for longer than any proof waits."""
        sent_s = (self.operation.created_at_ms - START_MS) / 1000
        return any(
            arrival.entries and arrival.visible_at_s >= sent_s + PROVED_ABSENT_AFTER_MS / 1000
            for arrival in self.arrivals
        )

    def __str__(self) -> str:
        return f"{self.operation.kind} {self.operation.id} ({self.operation.state})"
