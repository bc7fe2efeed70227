import pytest
from tests.flows.hosted import LIFE_S, current, hosting, new, opened, secret_of, seen, told
from tests.flows.world import World

from payrelay.core.checkouts.checkout import LEFT_OPEN_MS, CheckoutOutcome, CheckoutState
from payrelay.core.checkouts.shown import Shown
from payrelay.core.gateways.pauses import Pause
from payrelay.flows.checkouts.finish_checkout import finish_by_notification
from payrelay.flows.checkouts.visit_checkout import CheckoutVisit, return_to_checkout, visit_checkout
from payrelay.flows.relay import Relay
from payrelay.gateways.gateway import CheckoutForm
from payrelay.runtime.paused_accounts import PAUSES_KEPT_MS
from payrelay.store.gateways.pauses import Pauses

LINKS = {"return_to": "myshop://paid?x=1", "cancel_to": "https://shop.example/basket"}


def content(relay: Relay, outcome: CheckoutState = CheckoutState.COMPLETED) -> CheckoutOutcome:
    """An outcome of the order."""
    return CheckoutOutcome(
        account="gateway", merchant=relay.account("gateway").merchant, order_id="A-1", outcome=outcome
    )


async def visited(relay: Relay, checkout_id: str) -> CheckoutVisit:
    """What is at its page."""
    secret = await secret_of(relay, await current(relay, checkout_id))
    found = await visit_checkout(relay, "gateway", checkout_id, secret)
    assert found is not None
    return found


async def came_back(relay: Relay, checkout_id: str, *, is_cancelled: bool = False) -> CheckoutVisit:
    """What who comes back finds."""
    secret = await secret_of(relay, await current(relay, checkout_id))
    found = await return_to_checkout(relay, "gateway", checkout_id, secret, is_cancelled=is_cancelled)
    assert found is not None
    return found


async def test_the_page_has_the_form_as_often_as_it_is_opened(world: World) -> None:
    """A customer who closed the tab opens the link again."""
    relay = hosting(world)
    checkout = await opened(relay)
    first, second = await visited(relay, checkout.id), await visited(relay, checkout.id)

    assert isinstance(first.link_to_gateway, CheckoutForm)
    assert first.link_to_gateway == second.link_to_gateway
    assert first.link_to_gateway.fields["order_id"] == "A-1"


async def test_the_first_opening_is_noted(world: World) -> None:
    """A customer on the gateway's page is given time beyond the end of ours."""
    relay = hosting(world)
    checkout = await opened(relay)
    world.clock.passed_ms += 5_000
    await visited(relay, checkout.id)
    noted = await current(relay, checkout.id)

    assert noted.opened_at_ms == checkout.created_at_ms + 5_000
    assert noted.ends_at_ms == checkout.expires_at_ms + LEFT_OPEN_MS


@pytest.mark.parametrize(
    ("account", "secret", "checkout_id"),
    [("gateway", "wrong", None), ("other", None, None), ("gateway", None, "chk_x")],
)
async def test_without_the_secret_there_is_nothing(
    world: World, account: str, secret: str | None, checkout_id: str | None
) -> None:
    """The id alone stands in logs and events."""
    relay = hosting(world)
    checkout = await opened(relay)
    given = secret or await secret_of(relay, checkout)

    assert await visit_checkout(relay, account, checkout_id or checkout.id, given) is None
    assert await return_to_checkout(relay, account, checkout_id or checkout.id, given, is_cancelled=True) is None
    assert (await current(relay, checkout.id)).state is CheckoutState.OPEN


async def test_an_overdue_checkout_sends_no_customer_to_pay(world: World) -> None:
    """The price may be another one by then."""
    relay = hosting(world)
    checkout = await opened(relay)
    await visited(relay, checkout.id)
    world.clock.passed_ms += LIFE_S * 1000
    shut = await visited(relay, checkout.id)
    assert (shut.link_to_gateway, shut.checkout.state) == (None, CheckoutState.OPEN)

    world.clock.passed_ms += LEFT_OPEN_MS
    assert (await visited(relay, checkout.id)).checkout.state is CheckoutState.EXPIRED
    assert await told(world) == ["checkout.expired"]


@pytest.mark.parametrize("outcome", [CheckoutState.COMPLETED, CheckoutState.FAILED, CheckoutState.CANCELLED])
async def test_what_is_finished_has_no_form_any_more(world: World, outcome: CheckoutState) -> None:
    """Or the customer would pay twice."""
    relay = hosting(world)
    checkout = await opened(relay, new(**LINKS))
    await finish_by_notification(relay, content(relay, outcome))
    found = await visited(relay, checkout.id)
    told = "completed" if outcome is CheckoutState.COMPLETED else "open"

    assert (found.link_to_gateway, found.checkout.state) == (None, outcome)
    assert found.return_link == f"myshop://paid?x=1&checkout={checkout.id}&state={told}"


async def test_an_order_that_was_paid_by_another_page_is_not_paid_again(world: World) -> None:
    """The first was cancelled, the second is open, and then the first one is paid."""
    relay = hosting(world)
    first = await opened(relay, new(amount_minor=100))
    await came_back(relay, first.id, is_cancelled=True)
    second = await opened(relay)
    paid = CheckoutOutcome(
        account="gateway",
        merchant=first.merchant,
        order_id="A-1",
        outcome=CheckoutState.COMPLETED,
        amount_minor=100,
        currency="LKR",
    )
    await finish_by_notification(relay, paid)
    found = await visited(relay, second.id)

    assert (found.link_to_gateway, found.shown) == (None, Shown.ORDER_COMPLETED)


async def test_no_customer_is_sent_to_the_gateway_while_the_account_is_paused(world: World) -> None:
    """The page was asked for before; that the customer goes on to the gateway would be a new effect all the same."""
    relay = hosting(world)
    checkout = await opened(relay)
    await Pauses(world.database).add(Pause(account="gateway", since_ms=0, reason="wrong prices", operator="ann"))
    world.clock.passed_ms += PAUSES_KEPT_MS
    paused = await visited(relay, checkout.id)
    assert (paused.link_to_gateway, paused.shown) == (None, Shown.PAUSED)
    assert (await current(relay, checkout.id)).opened_at_ms is None
    await Pauses(world.database).remove("gateway", 0)
    world.clock.passed_ms += PAUSES_KEPT_MS

    assert (await visited(relay, checkout.id)).link_to_gateway is not None


async def test_a_returning_customer_sees_the_stored_state(world: World) -> None:
    """Not what the browser says: it came to the page for success, and nothing is known."""
    relay = hosting(world)
    checkout = await opened(relay, new(**LINKS))
    found = await came_back(relay, checkout.id)

    assert found.checkout.state is CheckoutState.OPEN
    assert found.return_link == f"myshop://paid?x=1&checkout={checkout.id}&state=open"
    assert await told(world) == []


async def test_a_returning_customer_causes_an_inquiry(world: World) -> None:
    """The notification may come later, or never."""
    relay = hosting(world)
    checkout = await opened(relay)
    world.clock.passed_ms += 3_000
    world.account.observations.append(seen())
    found = await came_back(relay, checkout.id)

    assert (found.checkout.state, found.return_link) == (CheckoutState.COMPLETED, None)


async def test_a_cancellation_counts_until_a_payment_is_known(world: World) -> None:
    """The order is free again, and a payment still completes it."""
    relay = hosting(world)
    checkout = await opened(relay, new(**LINKS))
    found = await came_back(relay, checkout.id, is_cancelled=True)
    assert found.return_link == f"https://shop.example/basket?checkout={checkout.id}&state=open"
    assert (found.checkout.state, found.checkout.guard) == (CheckoutState.CANCELLED, None)

    await finish_by_notification(relay, content(relay))
    again = await came_back(relay, checkout.id, is_cancelled=True)
    assert again.return_link == f"myshop://paid?x=1&checkout={checkout.id}&state=completed"
    assert await told(world) == ["checkout.cancelled", "checkout.completed"]
