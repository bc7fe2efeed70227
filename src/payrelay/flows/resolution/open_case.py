"""Opens the case of an operation: reads everything that the proof rests on."""

from payrelay.core.payments.operation import Operation
from payrelay.core.payments.proof import sending_window_of
from payrelay.errors import Outdated
from payrelay.flows.relay import Relay
from payrelay.flows.resolution.case import Case
from payrelay.gateways.gateway import Gateway


async def open_case(relay: Relay, account: Gateway, operation: Operation, *, is_urgent: bool, until_s: float) -> Case:
    """Reads everything that the proof rests on. Raises Outdated where the operation was changed meanwhile."""
    history = await relay.journal.history(operation.id)
    if not history or history[-1].version != operation.version:
        raise Outdated(f"operation {operation.id} was changed since it was read")
    return Case(
        relay=relay,
        account=account,
        operation=operation,
        call=await relay.journal.call_of(operation.id),
        history=history,
        span=sending_window_of(history, operation, int(account.timeout_s * 1000)),
        is_urgent=is_urgent,
        until_s=until_s,
    )
