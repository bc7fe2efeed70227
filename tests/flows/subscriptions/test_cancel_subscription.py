from tests.flows.world import World, asked

from payrelay.core.calls import CancelSubscription
from payrelay.core.payments.operation import Kind
from payrelay.flows.subscriptions.cancel_subscription import cancel_subscription

CANCEL = CancelSubscription(subscription_id=420075032251)


async def test_a_cancellation_is_asked_once(world: World) -> None:
    """A repeat gets the first answer and not the gateway's "already cancelled"."""
    first = await cancel_subscription(world.relay, asked(world.relay, None), CANCEL)
    again = await cancel_subscription(world.relay, asked(world.relay, None), CANCEL)
    row = await world.operation()
    assert (first.body, world.account.ledger) == (again.body, [CANCEL])
    assert (row.kind, row.subscription_id, row.amount_minor) == (Kind.CANCEL, "420075032251", None)
