import pytest
from tests.flows.world import World, asked, outcome_of

from payrelay.core.calls import CancelSubscription, RetrySubscription
from payrelay.core.outcomes import OutcomeKind
from payrelay.core.payments.operation import Kind
from payrelay.errors import Code, Refusal
from payrelay.flows.subscriptions.cancel_subscription import cancel_subscription
from payrelay.flows.subscriptions.retry_subscription import retry_subscription

RETRY = RetrySubscription(subscription_id=420075032251)


async def test_a_retry_is_asked_once(world: World) -> None:
    """It charges the customer's installment."""
    await retry_subscription(world.relay, asked(world.relay), RETRY)
    await retry_subscription(world.relay, asked(world.relay), RETRY)
    row = await world.operation()
    assert world.account.ledger == [RETRY]
    assert (row.kind, row.subject, row.subscription_id) == (
        Kind.RETRY,
        "subscription/420075032251",
        "420075032251",
    )


async def test_a_limit_forbids_a_retry_of_unknown_amount(world: World) -> None:
    """What an installment costs is the gateway's to say, so that a key with a largest amount can't ask for it."""
    with pytest.raises(Refusal) as caught:
        await retry_subscription(world.relay, asked(world.relay, amount_max_minor=1), RETRY)
    assert (caught.value.code, world.account.sent) == (Code.FORBIDDEN, [])


async def test_while_a_retry_is_open_nothing_else_happens_to_the_subscription(world: World) -> None:
    """A second retry could charge twice; a cancellation in between would hide what came of the first."""
    world.account.script.append(outcome_of(OutcomeKind.UNKNOWN))
    await retry_subscription(world.relay, asked(world.relay, "k-1"), RETRY)
    with pytest.raises(Refusal, match="same subscription"):
        await retry_subscription(world.relay, asked(world.relay, "k-2"), RETRY)
    with pytest.raises(Refusal, match="same subscription"):
        await cancel_subscription(
            world.relay, asked(world.relay, "k-3"), CancelSubscription(subscription_id=420075032251)
        )
