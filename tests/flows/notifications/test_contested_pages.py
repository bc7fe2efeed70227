"""Pages of several principals for one order, as databases of before have them: which of them a payment is of."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.flows.inbox_world import PAYMENT_ID, InboxWorld, body_of, inbox_world, payment_of

from payrelay.core.checkouts.checkout import Checkout, CheckoutKind, CheckoutState
from payrelay.core.notifications.notification import NotificationReason, NotificationState, needs_operator
from payrelay.flows.checkouts.finish_checkout import inquire
from payrelay.flows.notifications.replay_notification import replay


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[InboxWorld]:
    """Gives a relay that takes notifications."""
    async with inbox_world(tmp_path / "payrelay.db") as opened:
        yield opened


async def pages(world: InboxWorld, kind: CheckoutKind = CheckoutKind.PAYMENT) -> tuple[Checkout, Checkout]:
    """Opens a page of the shop's whose customer's card was declined, and one of the kiosk's for the same order."""
    failed = await world.open_checkout(kind, guard=None, state=CheckoutState.FAILED)
    return failed, await world.open_checkout(kind, principal="kiosk")


async def group(world: InboxWorld) -> None:
    """Says that both are one shop's."""
    await world.relay.access.principals.put_into_group("one", ["shop", "kiosk"], now_ms=world.clock.now_ms())


@pytest.mark.parametrize("kind", CheckoutKind)
async def test_what_may_be_of_either_is_for_an_operator(world: InboxWorld, kind: CheckoutKind) -> None:
    """The newest page would take the payment, the card or the hold of the other principal's customer."""
    opened = await pages(world, kind)
    world.payments.append(payment_of())
    tokens = {"customer_token": "A" * 32} if kind is CheckoutKind.PREAPPROVAL else {}
    taken = await world.take(body_of(**tokens))

    assert (taken.state, taken.reason) == (NotificationState.NEEDS_ATTENTION, NotificationReason.SEVERAL_OWNERS)
    assert needs_operator(taken)
    assert [await world.checkouts.get(each.id) for each in opened] == list(opened)
    assert await world.all_customers() == []


async def test_a_failure_that_may_be_of_either_ends_neither(world: InboxWorld) -> None:
    """It would end the page of a customer who has not tried yet."""
    _, held = await pages(world)
    taken = await world.take(body_of("-2", payment_id=None))

    assert taken.reason is NotificationReason.INFORMED
    assert await world.checkouts.get(held.id) == held


async def test_a_search_gives_it_to_neither(world: InboxWorld) -> None:
    """The gateway shows the payments of an order, and not the page on which they were made."""
    opened = await pages(world)
    world.payments.append(payment_of())
    for each in opened:
        await inquire(world.relay, each)
        await world.later()

    states = [stored.state for each in opened if (stored := await world.checkouts.get(each.id)) is not None]
    assert states == [CheckoutState.FAILED, CheckoutState.OPEN]


async def test_a_payment_that_only_one_asked_for_is_that_ones(world: InboxWorld) -> None:
    """The amount tells the two apart, and nobody needs to decide."""
    failed, _ = await pages(world)
    held = await world.open_checkout(principal="kiosk", guard=None, amount_minor=500, first_minor=500)
    world.payments.append(payment_of(amount_minor=500))
    taken = await world.take(body_of(payhere_amount="5.00"))

    assert taken.reason is NotificationReason.CHECKOUT_FINISHED
    completed = await world.checkouts.get(held.id)
    assert completed is not None
    assert (completed.state, completed.payment_id) == (CheckoutState.COMPLETED, PAYMENT_ID)
    assert await world.checkouts.get(failed.id) == failed


async def test_principals_that_act_for_each_other_share_it(world: InboxWorld) -> None:
    """A group is one shop. After an operator has said so, the notification goes on where it stopped."""
    _, held = await pages(world)
    world.payments.append(payment_of())
    taken = await world.take(body_of())
    assert taken.reason is NotificationReason.SEVERAL_OWNERS
    await group(world)
    await replay(world.relay, taken.id)
    await world.later()

    completed = await world.checkouts.get(held.id)
    assert completed is not None
    assert (completed.state, completed.payment_id) == (CheckoutState.COMPLETED, PAYMENT_ID)
