"""What the relay is told where it asks of a recovery."""

from collections.abc import Sequence

from payrelay.core.answers import Answer
from payrelay.core.payments.operation import Operation
from payrelay.core.payments.proof import SendingWindow
from payrelay.flows.relay import Relay, Request
from payrelay.flows.requests.intent import Intent
from payrelay.flows.requests.recovery_gate import Recovery
from payrelay.recovery.flows.clear_request import clear
from payrelay.recovery.rules.lost_effects import began_before_loss, sendings_of


class RecoveryGates(Recovery):
    """The recovery as it is with the part; each answer is a flow's or a rule's."""

    async def clear(
        self, relay: Relay, request: Request, intent: Intent, fingerprint: str, claim: str | None
    ) -> Intent | Answer:
        """Looks at the gateway first where an earlier try of the request may be lost."""
        return await clear(relay, request, intent, fingerprint, claim)

    async def lost_sendings(self, relay: Relay, operation: Operation, *, sending_ms: int) -> Sequence[SendingWindow]:
        """Knows the lost windows of the recoveries that the operation went through."""
        incarnations = (await relay.database.lost_commits.identity()).incarnations
        return [sendings_of(lost, sending_ms) for lost in began_before_loss(operation, incarnations)]
