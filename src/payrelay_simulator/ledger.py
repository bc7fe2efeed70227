"""The append-only record of what really happened to the money, whatever the callers were told."""

from datetime import datetime
from typing import Literal

import msgspec

from payrelay_simulator.clock import gateway_date

Kind = Literal[
    "charge",
    "authorization",
    "capture",
    "refund",
    "release",
    "retry",
    "installment",
    "cancel",
    "chargeback",
    "refund_reversal",
    "chargeback_reversal",
]


class LedgerEntry(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that happened. `arrival` is the number of the call that caused it, None where time or a seed did.

    Money came in with charge, capture, retry and installment, and went back with refund and chargeback; their reversals
    brought it in again. An authorization sets an amount aside and a release lets it go. A cancel moves nothing.
    """

    number: int
    at: datetime
    gateway_date: str
    kind: Kind
    merchant_id: str
    order_id: str
    amount_cents: int
    currency: str
    payment_id: int | None = None
    authorization_token: str | None = None
    subscription_id: int | None = None
    refund_id: int | None = None
    arrival: int | None = None


class LedgerLine(msgspec.Struct, frozen=True, kw_only=True):
    """What is to be entered: an entry that has no number yet."""

    kind: Kind
    merchant_id: str
    order_id: str
    amount_cents: int
    currency: str
    payment_id: int | None = None
    authorization_token: str | None = None
    subscription_id: int | None = None
    refund_id: int | None = None


class Ledger:
    """Entries in the order in which they happened; nothing is ever changed or taken out."""

    def __init__(self) -> None:
        self._entries: list[LedgerEntry] = []

    def __len__(self) -> int:
        return len(self._entries)

    def enter(self, at: datetime, line: LedgerLine, *, arrival: int | None) -> None:
        """Append one line, with the next number."""
        fields = msgspec.structs.asdict(line)
        number = len(self._entries) + 1
        entry = LedgerEntry(number=number, at=at, gateway_date=gateway_date(at), arrival=arrival, **fields)
        self._entries.append(entry)

    def entries(self, *, after: int = 0, count: int | None = None) -> tuple[LedgerEntry, ...]:
        """Return the entries numbered above `after`, at most `count` of them."""
        return tuple(self._entries[after : None if count is None else after + count])
