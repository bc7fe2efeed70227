"""What operators act on in the relay itself."""

from typing import Final

from payrelay.core.operators.roles import Act
from payrelay.flows.operators.acts.act_registry import ActRegistry
from payrelay.flows.operators.acts.administrative import ADMINISTRATIVE
from payrelay.flows.operators.acts.decisions import carry_out_decision
from payrelay.flows.operators.acts.effects import EFFECTS, carry_out_effect
from payrelay.flows.operators.acts.targets import READERS

ACTS_OF_RELAY: Final = ActRegistry(
    readers=READERS,
    seen_by={},
    carried_out={**dict.fromkeys(EFFECTS, carry_out_effect), Act.DECIDE: carry_out_decision, **ADMINISTRATIVE},
)
