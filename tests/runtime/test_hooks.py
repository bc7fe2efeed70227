import dataclasses

import msgspec
from tests.flows.world import World, asked

from payrelay.core.calls import Charge, PaymentsOfOrder
from payrelay.core.outcomes import Reading
from payrelay.core.payments.operation import State
from payrelay.flows.payments.charge import charge
from payrelay.flows.payments.retrieve_payments import retrieve_payments
from payrelay.runtime.hooks import Hooks

CHARGE = Charge(
    authorize=False, order_id="A-1", items="Taxi", currency="LKR", amount_minor=34_567, customer_token="token"
)


async def test_the_hooks_get_changes_and_calls(world: World) -> None:
    """The metrics see every stored change of an operation, and every call with what it came to."""
    states: list[State] = []
    calls: list[tuple[str, object, str]] = []
    hooks = Hooks(
        operation_changed=lambda operation: states.append(operation.state),
        call_made=lambda account, call, outcome, _: calls.append((account, _tag(call), outcome)),
    )
    relay = dataclasses.replace(world.relay, hooks=hooks)
    world.account.readings.append(Reading(code=None, msg="Payments", raw_msg=b'"Payments"', raw_data=b"[]"))
    await charge(relay, asked(relay, "k-1"), CHARGE)
    await retrieve_payments(relay, asked(relay), PaymentsOfOrder(order_id="A-1"))

    assert states == [State.SUCCEEDED]
    assert calls == [("gateway", "charge", "succeeded"), ("gateway", "payments_of_order", "found")]


def _tag(call: msgspec.Struct) -> object:
    return call.__struct_config__.tag
