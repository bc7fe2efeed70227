"""Decides about held operations, one by one: done before, to be sent now, or not to be sent.

A decision is a journal entry with the operator's name and reason, as any decision (``flows.operators.decide``).
"""

from collections.abc import AsyncIterator

import msgspec

from payrelay.core.operators.held_decisions import HeldDecision
from payrelay.core.outcomes import Evidence
from payrelay.core.payments.changes import Report
from payrelay.core.payments.operation import Event, Kind, Operation, State
from payrelay.errors import Outdated, UndecidedError
from payrelay.flows.apply_change import OverruledError, apply
from payrelay.flows.operators.decidable import Decision, require_whole
from payrelay.flows.operators.decide import decide
from payrelay.flows.operators.held.send_held import send_held
from payrelay.flows.relay import Relay


class HeldFilter(msgspec.Struct, frozen=True, kw_only=True):
    """Selects held operations: those that fit every member that is given.

    ``since_ms`` and ``until_ms`` are of the time when the request was held, in ms since 1970, UTC; both belong to it.
    """

    ids: frozenset[str] = frozenset()
    account: str | None = None
    kind: Kind | None = None
    order_id: str | None = None
    principal: str | None = None
    since_ms: int | None = None
    until_ms: int | None = None

    def has(self, operation: Operation) -> bool:
        """Tells whether a held operation is selected."""
        equal = (
            (self.account, operation.account),
            (self.kind, operation.kind),
            (self.order_id, operation.order_id),
            (self.principal, operation.principal),
        )
        at_ms = operation.created_at_ms
        return (
            (not self.ids or operation.id in self.ids)
            and all(wanted in {None, value} for wanted, value in equal)
            and (self.since_ms is None or self.since_ms <= at_ms)
            and (self.until_ms is None or at_ms <= self.until_ms)
        )


async def held_operations(relay: Relay, held_filter: HeldFilter) -> AsyncIterator[Operation]:
    """Yields the selected held operations, oldest first. Raises StoreError."""
    page = await relay.resolution.in_state(State.HELD)
    while page:
        for operation in page:
            if held_filter.has(operation):
                yield operation
        page = await relay.resolution.in_state(State.HELD, after=page[-1].id)


async def decide_held(
    relay: Relay, held: Operation, decision: HeldDecision, *, operator: str, reason: str, payment_id: str | None = None
) -> Operation:
    """Decides about one held operation, for good, and returns it as it is stored then.

    ``payment_id`` is the payment that an earlier try made; only for DONE. Raises UndecidedError where the operation is
    held no more or the payment is another operation's; Refusal and StoreError as ``send_held`` does.
    """
    try:
        match decision:
            case HeldDecision.DONE:
                return (await decide(relay, done(held, operator, reason, payment_id))).operation
            case HeldDecision.SEND:
                return await send_held(relay, held, operator=operator, reason=reason)
            case HeldDecision.REFUSE:
                await require_whole(relay)
                evidence = Evidence(operator=operator, reason=reason)
                return (await apply(relay, held, Report(event=Event.DECIDED_REFUSE, evidence=evidence))).operation
    except (Outdated, OverruledError):
        raise UndecidedError(f"{held.id} is held no more; look at it again") from None


def done(held: Operation, operator: str, reason: str, payment_id: str | None) -> Decision:
    """Makes the decision that an earlier try of a held operation was carried out."""
    return Decision(
        operation_id=held.id,
        seen=State.HELD,
        decided=State.SUCCEEDED,
        operator=operator,
        reason=reason,
        payment_id=payment_id,
    )
