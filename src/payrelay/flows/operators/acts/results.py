"""What came of an act, as far as it is known: read from the operation each time, and never guessed."""

from typing import NamedTuple

from payrelay.core.operators.confirmations import Confirmation, ConfirmationState, KnownEnding, ending_of, is_stuck
from payrelay.core.payments.operation import Operation, claim_of_key
from payrelay.core.payments.sentences import STATE_SENTENCES
from payrelay.flows.operators.acts.effects import EFFECTS
from payrelay.flows.relay import Relay

UNDER_WAY = "It was begun, and isn't finished yet. Look again in a moment."
LEFT_EFFECT = (
    "It was begun, and no operation of it is stored. Carry it on: what may be stored meanwhile is found by its key,"
    " so it is done once."
)
LEFT = "It was begun, and whether it was finished isn't known. Carry it on: done twice, it comes to the same."


class ActEnding(NamedTuple):
    """What came of an act, in words; ``can_carry_on`` where it was left by a process that died."""

    ending: KnownEnding
    said: str
    operation: Operation | None = None
    can_carry_on: bool = False


async def ending_now(relay: Relay, confirmation: Confirmation) -> ActEnding | None:
    """Returns what is known now of what was confirmed; None where it has not begun. Raises StoreError."""
    match confirmation.state:
        case ConfirmationState.SHOWN | ConfirmationState.PROPOSED:
            return None
        case ConfirmationState.REFUSED | ConfirmationState.WITHDRAWN:
            return ActEnding(KnownEnding.REFUSED, confirmation.said)
        case ConfirmationState.BEGUN | ConfirmationState.DONE:
            return await _known(relay, confirmation)


async def _known(relay: Relay, confirmation: Confirmation) -> ActEnding:
    operation = await operation_of(relay, confirmation)
    if confirmation.act_name in EFFECTS and operation is not None:
        return ActEnding(ending_of(operation.state), STATE_SENTENCES[operation.state], operation)
    if confirmation.state is ConfirmationState.DONE:
        return ActEnding(KnownEnding.DONE, confirmation.said, operation)
    if not is_stuck(confirmation, relay.clock.now_ms()):
        return ActEnding(KnownEnding.UNKNOWN, UNDER_WAY)
    said = LEFT_EFFECT if confirmation.act_name in EFFECTS else LEFT
    return ActEnding(KnownEnding.UNKNOWN, said, can_carry_on=True)


async def operation_of(relay: Relay, confirmation: Confirmation) -> Operation | None:
    """Finds the operation that came of a confirmation, also where nobody could note its id. Raises StoreError."""
    if confirmation.operation_id is not None:
        return await relay.journal.get(confirmation.operation_id)
    if confirmation.act_name not in EFFECTS:
        return None
    claim = claim_of_key(confirmation.idempotency_key)
    claimed = await relay.journal.find_claim(confirmation.principal, claim, now_ms=relay.clock.now_ms())
    return None if claimed is None else claimed.operation
