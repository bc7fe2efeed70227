"""Compares entries of our books with lines of statements, and gives one finding for each thing.

Rules:

1. The result depends on what was read, never on the order or the number of times in which it was.
2. What isn't in a statement is a difference only where the statement is complete for every day in question, or where
   the gateway was asked for that very order afterwards. Everything else is *can't be known*.
3. An entry without a payment may have been paid by a payment of its order that belongs to nothing else.
"""

from collections.abc import Iterable

from payrelay.reconciliation.rules.entries import BooksEntry, Movement, StatementLine
from payrelay.reconciliation.rules.payments_compared import compare_payments
from payrelay.reconciliation.rules.refunds_compared import compare_returns
from payrelay.reconciliation.rules.sides import Known, Sides
from payrelay.reconciliation.rules.verdicts import BooksFinding


def judge(entries: Iterable[BooksEntry], lines: Iterable[StatementLine], known: Known) -> list[BooksFinding]:
    """Compares payments, refunds and chargebacks.

    The entries and the lines must be all that there are of each order and payment that is among them. Gives the
    findings by movement and identity.
    """
    sides = Sides.of(entries, lines, known)
    findings = [
        *compare_payments(sides),
        *compare_returns(sides, Movement.REFUND),
        *compare_returns(sides, Movement.CHARGEBACK),
    ]
    return sorted(findings, key=lambda each: (each.movement, each.identity))
