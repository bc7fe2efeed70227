"""One call's turn at the gateway: who calls, when, and what may be touched."""

from datetime import datetime, timedelta

import msgspec

from payrelay_simulator.faults import Fault
from payrelay_simulator.ledger import Ledger, LedgerLine
from payrelay_simulator.notifications import Message
from payrelay_simulator.records import Merchant
from payrelay_simulator.state import State
from payrelay_simulator.switches import Switches


class Turn(msgspec.Struct, frozen=True, kw_only=True):
    """What an operation is given. `fault` is the one drawn for this call, if any; a seed has no arrival."""

    merchant: Merchant
    now: datetime
    arrival: int | None
    state: State
    ledger: Ledger
    switches: Switches
    fault: Fault | None = None

    def enter(self, line: LedgerLine) -> None:
        """Write a line into the ledger as this call's doing."""
        self.ledger.enter(self.now, line, arrival=self.arrival)

    def tell(self, message: Message, *, at: datetime | None = None) -> tuple[int, ...]:
        """Plan a notification, for now or for later, and return the numbers given."""
        return self.state.notifications.plan(self.now, message, send_at=at, switches=self.switches)

    def visible_at(self) -> datetime | None:
        """Return when a payment of this call can be found; None: at once."""
        late = self.fault_named("late_visibility") or self.fault_named("pending")
        return None if late is None else self.now + timedelta(seconds=late.wait_s)

    def fault_named(self, name: str) -> Fault | None:
        """Return the call's fault if it is the one of that name."""
        return self.fault if self.fault is not None and self.fault.name == name else None
