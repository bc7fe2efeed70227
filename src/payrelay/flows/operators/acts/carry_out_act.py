"""Carries out what was confirmed, whatever it is."""

from payrelay.core.operators.roles import Act
from payrelay.flows.operators.acting import ActResult, ConfirmedAct
from payrelay.flows.operators.acts.decisions import carry_out_decision
from payrelay.flows.operators.acts.effects import EFFECTS, carry_out_effect
from payrelay.flows.operators.acts.upkeep import UPKEEP
from payrelay.flows.relay import Relay


async def carry_out_act(relay: Relay, act: ConfirmedAct) -> ActResult:
    """Carries out an act. Raises Refusal where nothing was done, StillRunning where it is under way, StoreError."""
    name = act.confirmation.act_name
    if name in EFFECTS:
        return await carry_out_effect(relay, act)
    if name is Act.DECIDE:
        return await carry_out_decision(relay, act)
    return await UPKEEP[name](relay, act)
