"""What the demo has beyond the demonstration world: a case to decide in the console, and a hold for the docs.

The case is a charge whose answer was for another amount than was asked for.
"""

from decimal import Decimal
from typing import Final

import payrelay_simulator
from payrelay.core.access.credential import Credential
from payrelay.core.calls import Charge
from payrelay.demo.parts import ACCOUNT
from payrelay.flows.payments.charge import charge
from payrelay.flows.relay import Relay, Request

CASE_ORDER: Final = "Demo-Decide"
ASKED_MINOR: Final = 64_000
ANSWERED: Final = 64.0
"""What the gateway's answer says; its records have what was charged."""
SECOND_HOLD: Final = payrelay_simulator.Seed(
    holds=[
        payrelay_simulator.HoldSeed(
            order_id="DemoHold2",
            amount=Decimal("150.00"),
            description="Hotel room 4",
            authorization_token="d3a0d3a0-0000-4000-8000-000000000002",  # noqa: S106 - known to all
        )
    ]
)
"""What the example of a void in the docs names: the demonstration world's only hold is captured by another example."""


async def make_case(
    relay: Relay, credential: Credential, simulator: payrelay_simulator.Simulator, customer_token: str
) -> None:
    """Charges a customer at a gateway whose answer is wrong. Raises StoreError."""
    simulator.world.faults.add_rules(
        payrelay_simulator.Rule(
            fault="other_amount",
            match=payrelay_simulator.Match(endpoint="charge", order_id=CASE_ORDER),
            args=payrelay_simulator.Arguments(amount=ANSWERED),
        )
    )
    call = Charge(
        authorize=False,
        order_id=CASE_ORDER,
        items="Taxi hire, to the airport",
        currency="LKR",
        amount_minor=ASKED_MINOR,
        customer_token=customer_token,
    )
    request = Request(account=ACCOUNT, credential=credential, request_id="req_demo_case", idempotency_key="demo-case")
    await charge(relay, request, call)
