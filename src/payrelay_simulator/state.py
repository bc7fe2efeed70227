"""Everything that the simulated gateway remembers, with the indexes to find it by."""

import heapq
from collections import defaultdict
from datetime import datetime
from typing import Literal

import msgspec

from payrelay_simulator.draws import Draws, Numbers
from payrelay_simulator.notifications import Notifications
from payrelay_simulator.records import Customer, Hold, Merchant, Payment, Subscription

FIRST_PAYMENT_ID = 320_025_000_001
FIRST_SUBSCRIPTION_ID = 420_075_000_001
FIRST_REFUND_ID = 560_034_000_001


class Due(msgspec.Struct, frozen=True, kw_only=True):
    """Something that time brings about: a hold's end, or a subscription's next installment under its current plan."""

    at: datetime
    kind: Literal["hold_end", "installment"]
    key: str
    plan: int = 0


class State:
    """The gateway's memory. Values in it are frozen; a change puts a new value in the old one's place."""

    def __init__(self, seed: int, merchants: tuple[Merchant, ...] = ()) -> None:
        self.draws = Draws(seed)
        self.notifications = Notifications(merchants)
        self.customers: dict[str, Customer] = {}
        self.payments: dict[int, Payment] = {}
        self.holds: dict[str, Hold] = {}
        self.subscriptions: dict[int, Subscription] = {}
        self._orders: defaultdict[tuple[str, str], list[int]] = defaultdict(list)
        self._agenda: list[tuple[datetime, int, Due]] = []
        self._agenda_numbers = Numbers()
        self._payment_ids = Numbers(FIRST_PAYMENT_ID)
        self._subscription_ids = Numbers(FIRST_SUBSCRIPTION_ID)
        self._refund_ids = Numbers(FIRST_REFUND_ID)

    def next_payment_id(self) -> int:
        """Return a payment id that was never given out."""
        return next(self._payment_ids)

    def next_subscription_id(self) -> int:
        """Return a subscription id that was never given out."""
        return next(self._subscription_ids)

    def next_refund_id(self) -> int:
        """Return a refund id that was never given out."""
        return next(self._refund_ids)

    def put_payment(self, payment: Payment) -> None:
        """Keep a payment, new or changed."""
        if payment.payment_id not in self.payments:
            self._orders[payment.merchant_id, payment.order_id].append(payment.payment_id)
        self.payments[payment.payment_id] = payment

    def payments_of(self, merchant_id: str, order_id: str) -> list[Payment]:
        """Return the order's payments, oldest first."""
        found = [self.payments[payment_id] for payment_id in self._orders.get((merchant_id, order_id), ())]
        return sorted(found, key=lambda payment: (payment.at, payment.payment_id))

    def put_hold(self, hold: Hold) -> None:
        """Keep a hold, new or changed; a new one is put on the agenda for its end."""
        if hold.authorization_token not in self.holds:
            self.plan(Due(at=hold.expires_at, kind="hold_end", key=hold.authorization_token))
        self.holds[hold.authorization_token] = hold

    def plan(self, due: Due) -> None:
        """Put something on the agenda."""
        heapq.heappush(self._agenda, (due.at, next(self._agenda_numbers), due))

    def pop_due(self, now: datetime) -> Due | None:
        """Take the earliest thing that is due by now from the agenda; None where nothing is."""
        if not self._agenda or self._agenda[0][0] > now:
            return None
        return heapq.heappop(self._agenda)[2]
