"""What operators act on in the relay itself."""

from typing import Final

from payrelay.core.operators.roles import Act
from payrelay.flows.operators.acts.actables import Actables
from payrelay.flows.operators.acts.decisions import carry_out_decision
from payrelay.flows.operators.acts.effects import EFFECTS, carry_out_effect
from payrelay.flows.operators.acts.targets import READERS
from payrelay.flows.operators.acts.upkeep import UPKEEP

OF_RELAY: Final = Actables(
    readers=READERS,
    seen_by={},
    carried_out={**dict.fromkeys(EFFECTS, carry_out_effect), Act.DECIDE: carry_out_decision, **UPKEEP},
)
