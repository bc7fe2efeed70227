"""After the verdict on what the program did by itself: a person decides what is left, and the audit looks at all."""

from tests.simulation.books import Book
from tests.simulation.process import START_MS

from payrelay.core.payments.operation import FINAL, State
from payrelay.flows.audit.audit import Audit
from payrelay.flows.operators.decidable import Decision
from payrelay.flows.operators.decide import decide
from payrelay.flows.relay import Relay


async def decide_all(relay: Relay, books: dict[str, Book]) -> list[str]:
    """Decides what is left to a person as it really was; everything is final then."""
    faults = []
    for book in books.values():
        if book.operation.state is not State.NEEDS_ATTENTION:
            continue
        verdict = State.SUCCEEDED if book.entries else State.FAILED
        decision = Decision(
            operation_id=book.operation.id,
            seen=State.NEEDS_ATTENTION,
            decided=verdict,
            operator="somebody",
            reason="the ledger says so",
        )
        decided = (await decide(relay, decision)).operation
        if decided.state not in FINAL or decided.state is not verdict:
            faults.append(f"{book} was decided to be {verdict}, and is {decided.state}")
    return faults


async def audit(relay: Relay) -> list[str]:
    """Goes through the chained history, which nobody has touched."""
    findings = Audit(relay.journal.trail, START_MS, lambda *_: None, rows=relay.checkouts.rows).findings()
    return [f"the audit finds {finding}" async for finding in findings]
