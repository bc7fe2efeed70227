"""The payers' banks and the gateway's portal: they take payments back, at once, after days, or while one is being made.

Banks take a part, or all. Some must return it later, and some don't take what is given back. In the portal somebody
gives back the rest of what was given back in part. Nobody is told of that. Somebody looks at the order afterwards, and
a copy of the gateway's records may show it late.
"""

from collections.abc import Callable
from functools import partial
from random import Random
from typing import Final, Protocol

import msgspec
from tests.simulation.clients import Ask, Told
from tests.simulation.fate import BankFate, Fate
from tests.simulation.loop import OUTSIDE, SimulatedLoop, wait_seconds
from tests.simulation.network import DAY_S, Gateway

from payrelay_simulator.chargebacks import charge_back, fail_refund, win_chargeback
from payrelay_simulator.errors import ControlError
from payrelay_simulator.ledger import LedgerEntry
from payrelay_simulator.records import Payment
from payrelay_simulator.refunds import give_payment_back

TAKING: Final = frozenset({"charge", "capture", "retry", "installment"})
"""What the ledger calls it when money came in."""
BACK: Final = frozenset({"refund", "chargeback"})
"""What it calls it when money went back."""
RETURNS: Final = BACK | {"refund_reversal", "chargeback_reversal"}
AFTER_S: Final = (0.0, 1.0, 30.0, 900.0, 20_000.0, 200_000.0)
"""How long after a payment its bank takes it back; at first it may not even be answered yet."""

PART_SHARE: Final = 0.3
"""Of what banks take back, what they take a part of."""
WON_SHARE: Final = 0.5
"""Of what banks have taken, what they must return."""
LATER_S: Final = 6 * DAY_S
"""After so long: by then every inquiry into a refund, and every notification of a chargeback, has come to an end."""
LOOKS_S: Final = ((2.0,), (2.0, 10.0), (2.0, 90.0), (2.0, 5_000.0), (2.0, 90.0, 5_000.0))
"""When somebody looks at an order after its money has moved; the last of these counts as a second look."""
LATE_NEWS_S: Final = 30.0
"""So long before the verdict the last chargeback is told that no record shows yet."""
HIDDEN_S: Final = 900.0
"""For so long no record shows that one."""


class Ground(Protocol):
    """What banks know of the world."""

    loop: SimulatedLoop
    gateway: Gateway

    async def call(self, ask: Ask, patience_s: float) -> Told:
        """Asks as a client does."""
        ...

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
    """Decides of each payment that we are notified of whether it is taken back, and when; and the fate of refunds.

    ``open`` tells how many things are still to be done.
    """

    def __init__(self, ground: Ground, random: Random, fate: Fate) -> None:
        self._ground = ground
        self._random = random
        self._share = 0.0 if fate.pages is None else fate.pages.chargeback_share
        self._fate = fate.banks or BankFate(failed_share=0.0, rest_share=0.0, lag_s=0.0, stale_share=0.0)
        self._is_idle = self._share == 0.0 and fate.banks is None
        self._seen = 0
        self.open = 0

    def look(self) -> None:
        """Looks at what came in since the last time."""
        ledger = self._ground.gateway.world.ledger
        if self._is_idle or len(ledger) == self._seen:
            return
        entries = ledger.entries(after=self._seen)
        self._seen = len(ledger)
        for entry in entries:
            self._see(entry)

    def _see(self, entry: LedgerEntry) -> None:
        world = self._ground.gateway.world
        payment = world.state.payments.get(entry.payment_id or 0)
        if payment is None or entry.kind not in RETURNS | TAKING:
            return
        if entry.kind in RETURNS:
            for after_s in self._random.choice(LOOKS_S):
                self._later(after_s, partial(self._begin_look, entry.order_id))
        if entry.kind in BACK and self._fate.stale_share:
            before = {"refunds": payment.refunds[:-1]} if entry.kind == "refund" else {"charged_back_cents": 0}
            self._hide(msgspec.structs.replace(payment, **before), self._fate.lag_s, self._fate.stale_share)
        if entry.kind == "refund" and entry.refund_id is not None:
            if self._random.random() < self._fate.failed_share:
                self._later(LATER_S, partial(self._fail, entry.refund_id))
            if payment.refunded_cents < payment.amount_cents and self._random.random() < self._fate.rest_share:
                self._later(LATER_S, partial(self._give_rest_back, payment.payment_id))
        if entry.kind in TAKING and payment.notify_url and self._random.random() < self._share:
            self._later(self._random.choice(AFTER_S), partial(self._take_back, payment.payment_id))

    def _hide(self, before: Payment, for_s: float, share: float) -> None:
        """Lets a copy show a payment as it was."""
        self._ground.gateway.lagging[before.payment_id] = before, self._ground.loop.time() + for_s, share

    def _later(self, after_s: float, act: Callable[[], None]) -> None:
        self.open += 1
        self._ground.loop.call_later(after_s, self._do, act, context=OUTSIDE.context())

    def _do(self, act: Callable[[], None]) -> None:
        self.open -= 1
        act()
        self.look()

    def _begin_look(self, order_id: str) -> None:
        self.open += 1
        self._ground.loop.create_task(self._look_at(order_id), context=OUTSIDE.context())

    async def _look_at(self, order_id: str) -> None:
        """Asks for an order's payments, as each of those whose order it may be."""
        for principal in ("shop", "app"):
            await self._ground.call(Ask(principal=principal, method="GET", path=f"payments/{order_id}", body=b""), 60.0)
        self.open -= 1

    def _take_back(self, payment_id: int) -> None:
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
            self._later(LATER_S, partial(self._win, payment_id))

    async def take_back_last(self) -> None:
        """Lets a payment be taken back that no record shows so yet, and waits for what is told of it."""
        world = self._ground.gateway.world
        before = {each.payment_id for each in world.ledger.entries() if each.kind == "chargeback"}
        payments = [each for each in world.state.payments.values() if each.notify_url and each.payment_id not in before]
        if self._share == 0.0 or not payments:
            return
        payment = payments[-1]
        self._hide(payment, HIDDEN_S, 1.0)
        self._is_idle = True
        try:
            charge_back(world, payment.payment_id)
        except ControlError:  # it was given back
            return
        self._ground.note("charged back at last", payment.payment_id)
        self._ground.tell()
        await wait_seconds(LATE_NEWS_S)

    def _win(self, payment_id: int) -> None:
        win_chargeback(self._ground.gateway.world, payment_id)
        self._ground.note("chargeback won", payment_id)
        self._ground.count("chargeback won")

    def _fail(self, refund_id: int) -> None:
        fail_refund(self._ground.gateway.world, refund_id)
        self._ground.note("refund failed", refund_id)
        self._ground.count("refund failed later")

    def _give_rest_back(self, payment_id: int) -> None:
        world = self._ground.gateway.world
        payment = world.state.payments[payment_id]
        rest_cents = payment.amount_cents - payment.refunded_cents - payment.charged_back_cents
        if rest_cents <= 0:
            return
        merchant = next(each for each in world.merchants if each.merchant_id == payment.merchant_id)
        give_payment_back(world.turn_of(merchant, None), payment, rest_cents)
        self._ground.note("given back in the portal", payment_id, rest_cents)
        self._ground.count("rest given back in the portal")
