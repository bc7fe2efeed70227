"""The payers' banks: they take payments back, at once, after days, or while what made them is still under way.

They take a part, or all. Some must return it later, and some don't take what is given back. Nobody is told of either.
"""

from random import Random
from typing import Final, Protocol

from tests.simulation.fate import PageFate
from tests.simulation.loop import OUTSIDE, SimulatedLoop
from tests.simulation.network import DAY_S, Gateway

from payrelay_simulator.chargebacks import charge_back, fail_refund, win_chargeback
from payrelay_simulator.errors import ControlError

TAKING: Final = frozenset({"charge", "capture", "retry", "installment"})
"""What the ledger calls it when money came in."""
AFTER_S: Final = (0.0, 1.0, 30.0, 900.0, 20_000.0, 200_000.0)
"""How long after a payment its bank takes it back; at first it may not even be answered yet."""

PART_SHARE: Final = 0.3
"""Of what banks take back, what they take a part of."""
WON_SHARE: Final = 0.3
"""Of what banks have taken, what they must return."""
FAILED_SHARE: Final = 0.2
"""Of the refunds, those that a bank doesn't take."""
LATER_S: Final = 6 * DAY_S
"""After so long: by then every inquiry into a refund, and every notification of a chargeback, has come to an end."""


class Ground(Protocol):
    """What banks know of the world."""

    loop: SimulatedLoop
    gateway: Gateway

    def note(self, *words: object) -> None:
        """Something happened."""
        ...

    def count(self, what: str) -> None:
        """Counts."""
        ...

    def tell(self) -> None:
        """Says that the gateway may have something to tell."""
        ...


class Bank:
    """Decides of each payment that we are notified of whether it is taken back, and when.

    ``open`` tells how many are still to be.
    """

    def __init__(self, ground: Ground, random: Random, fate: PageFate) -> None:
        self._ground = ground
        self._random = random
        self._share = fate.chargeback_share
        self._seen = 0
        self.open = 0

    def look(self) -> None:
        """Looks at what came in since the last time."""
        ledger, payments = self._ground.gateway.world.ledger, self._ground.gateway.world.state.payments
        if self._share == 0.0 or len(ledger) == self._seen:
            return
        entries = ledger.entries(after=self._seen)
        self._seen = len(ledger)
        for entry in entries:
            if entry.kind == "refund" and entry.refund_id is not None and self._random.random() < FAILED_SHARE:
                self.open += 1
                self._ground.loop.call_later(LATER_S, self._fail, entry.refund_id, context=OUTSIDE.context())
            payment = payments.get(entry.payment_id or 0)
            is_told = entry.kind in TAKING and payment is not None and bool(payment.notify_url)
            if is_told and self._random.random() < self._share:
                self.open += 1
                after_s = self._random.choice(AFTER_S)
                self._ground.loop.call_later(after_s, self._take_back, entry.payment_id, context=OUTSIDE.context())

    def _take_back(self, payment_id: int) -> None:
        self.open -= 1
        world = self._ground.gateway.world
        left_cents = world.state.payments[payment_id].amount_cents - world.state.payments[payment_id].refunded_cents
        part_cents = left_cents // 3 if self._random.random() < PART_SHARE and left_cents >= 3 else None
        try:
            numbers = charge_back(world, payment_id, amount_cents=part_cents)
        except ControlError as error:  # it was given back meanwhile
            self._ground.note("not charged back", payment_id, error)
            return
        self._ground.note("charged back", payment_id, part_cents, len(numbers))
        self._ground.count("charged back" if part_cents is None else "charged back in part")
        self._ground.tell()
        if self._random.random() < WON_SHARE:
            self.open += 1
            self._ground.loop.call_later(LATER_S, self._win, payment_id, context=OUTSIDE.context())

    def _win(self, payment_id: int) -> None:
        self.open -= 1
        win_chargeback(self._ground.gateway.world, payment_id)
        self._ground.note("chargeback won", payment_id)
        self._ground.count("chargeback won")

    def _fail(self, refund_id: int) -> None:
        self.open -= 1
        fail_refund(self._ground.gateway.world, refund_id)
        self._ground.note("refund failed", refund_id)
        self._ground.count("refund failed later")
