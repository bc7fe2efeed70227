"""What the relay is told where it asks of a recovery."""

from collections.abc import Sequence
from typing import Final

from payrelay.core.payments.operation import Operation
from payrelay.core.payments.proof import SendingWindow
from payrelay.flows.relay import Relay
from payrelay.flows.requests.recovery_gate import Recovery
from payrelay.recovery.flows.clear_request import clear
from payrelay.recovery.rules.lost_effects import began_before_loss, sendings_of


async def lost_sendings(relay: Relay, operation: Operation, sending_ms: int) -> Sequence[SendingWindow]:
    """Gives when operations of the lost windows that an operation went through can have been sent; see ``Recovery``."""
    incarnations = (await relay.database.lost_commits.identity()).incarnations
    return [sendings_of(lost, sending_ms) for lost in began_before_loss(operation, incarnations)]


GATES: Final = Recovery(clear=clear, lost_sendings=lost_sendings)
