"""What really became of the money of each payment, by the gateway's ledger alone, and which operation did it."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from tests.simulation.books import Book
from tests.simulation.network import Gateway

from payrelay_simulator.ledger import LedgerEntry

TAKING: Final = frozenset({"charge", "capture", "retry", "installment"})
"""What the ledger calls it when money came in."""


@dataclass(kw_only=True, slots=True)
class TrueMoney:
    """One payment, as the ledger has it; amounts are hundredths.

    Attributes:
        entry: with which it came in.
        paid: what came in.
        refunds: what went back, without what failed later.
        failed_refunds: what went back and came in again.
        charged_back: what a bank has taken and still has.
        won: what a bank had taken, and had to return.
        made_by: the operations that made it and its refunds, by the numbers of the entries; none for what time, a
            customer or a lost operation did.
    """

    entry: LedgerEntry
    paid: int = 0
    refunds: list[LedgerEntry] = field(default_factory=list)
    failed_refunds: list[LedgerEntry] = field(default_factory=list)
    charged_back: int = 0
    won: int = 0
    made_by: dict[int, Book] = field(default_factory=dict)

    def __str__(self) -> str:
        """Says the figures, and which operations made them."""
        by = ", ".join(map(str, self.made_by.values()))
        figures = f"{self.paid} paid, {self.given_back} given back, {self.charged_back} charged back"
        entry = self.entry
        return f"{entry.kind} {entry.payment_id} of {entry.order_id} ({figures} {entry.currency}; by {by or 'nobody'})"

    @property
    def given_back(self) -> int:
        """What went back by refunds that stand."""
        return sum(each.amount_cents for each in self.refunds)

    @property
    def left(self) -> int:
        """What is left; less than nothing where the gateway gave back more than there was."""
        return self.paid - self.given_back - self.charged_back

    @property
    def group(self) -> str:
        """What is one payment to its order: all payments of a plan, and all captures of a hold."""
        entry = self.entry
        if entry.subscription_id is not None:
            return f"plan {entry.subscription_id}"
        return f"payment {entry.payment_id}" if entry.authorization_token is None else entry.authorization_token


def true_money_of(gateway: Gateway, books: Iterable[Book]) -> dict[str, TrueMoney]:
    """Gives what became of each payment that took money, by its number."""
    made_by = {entry.number: book for book in books for entry in book.entries}
    found: dict[str, TrueMoney] = {}
    for entry in gateway.world.ledger.entries():
        number = str(entry.payment_id)
        if entry.kind in TAKING:
            money = found.setdefault(number, TrueMoney(entry=entry))
            money.paid += entry.amount_cents
        elif number in found:
            _enter(found[number], entry)
        if number in found and entry.number in made_by:
            found[number].made_by[entry.number] = made_by[entry.number]
    return found


def _enter(money: TrueMoney, entry: LedgerEntry) -> None:
    if entry.kind == "refund":
        money.refunds.append(entry)
    elif entry.kind == "refund_reversal":
        failed = next(each for each in money.refunds if each.refund_id == entry.refund_id)
        money.refunds.remove(failed)
        money.failed_refunds.append(failed)
    elif entry.kind == "chargeback":
        money.charged_back += entry.amount_cents
    elif entry.kind == "chargeback_reversal":
        money.charged_back -= entry.amount_cents
        money.won += entry.amount_cents


def held_of(gateway: Gateway, order_id: str) -> Mapping[str, int]:
    """Gives what is held for an order, by the number of each hold's payment."""
    holds, now = gateway.world.state.holds.values(), gateway.world.clock.now()
    return {
        str(each.payment_id): each.amount_cents
        for each in holds
        if each.order_id == order_id and each.status == "HELD" and each.expires_at > now
    }
