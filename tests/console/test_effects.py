"""What the console does at the gateway beside refunds: captures, voids, cancellations and retries; and replays."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import NamedTuple

import msgspec
import pytest
from tests.console.counter import Counter, confirmation_in, sent
from tests.flows.world import CHARGE, asked, outcome_of
from tests.samples import NOTIFICATION

from payrelay.core.calls import CancelSubscription, Capture, Effect, RetrySubscription, Void
from payrelay.core.notifications.notification import NotificationReason, NotificationState
from payrelay.core.outcomes import OutcomeKind
from payrelay.core.subscriptions.subscription import Fact, SubscriptionState
from payrelay.flows.payments.charge import charge
from payrelay.store.subscriptions import SubscriptionOwner

WHY = "the customer asked on the phone"
PLAN = 420075032251
CAPTURE = Capture(authorization_token="hold-token", amount_minor=50_000, description="shipped")
VOID = Void(authorization_token="hold-token", description="no stock")


class Done(NamedTuple):
    """An act on a thing, with the fields of its form, and the call that the gateway is to get."""

    act: str
    fields: dict[str, str]
    call: Effect


EFFECTS = [
    Done("capture", {"amount": "500.00", "description": "shipped"}, CAPTURE),
    Done("void", {"description": "no stock"}, VOID),
    Done("cancel_subscription", {}, CancelSubscription(subscription_id=PLAN)),
    Done("retry_subscription", {}, RetrySubscription(subscription_id=PLAN)),
]
each_effect = pytest.mark.parametrize("done", EFFECTS, ids=[each.act for each in EFFECTS])


@pytest.fixture
async def counter(tmp_path: Path) -> AsyncIterator[Counter]:
    """Gives a console where one person is enough."""
    counter = await Counter.opened(tmp_path)
    yield counter
    await counter.close()


async def thing_for(counter: Counter, done: Done) -> str:
    """Has a client begin what the act is about, and gives the address of its page."""
    world = counter.world
    if isinstance(done.call, Capture | Void):
        held = outcome_of(OutcomeKind.SUCCEEDED, authorization_token="hold-token")
        world.account.script.append(msgspec.structs.replace(held, raw_data=b'{"authorization_token":"hold-token"}'))
        await charge(world.relay, asked("hold"), msgspec.structs.replace(CHARGE, authorize=True))
        return f"/console/act/operation/{(await world.operation()).id}"
    owner = SubscriptionOwner(account="gateway", merchant=world.relay.account("gateway").merchant, principal="shop")
    fact = Fact(subscription_id=str(PLAN), at_ms=1, is_seen=True, order_id="A-1", state=SubscriptionState.ACTIVE)
    await world.relay.subscriptions.note(owner, [fact], now_ms=1)
    return f"/console/act/subscription/gateway~{PLAN}"


@each_effect
async def test_an_effect_is_done_once_and_written_down(counter: Counter, done: Done) -> None:
    """The gateway gets what the form says, for whoever owns it; a second click does nothing more."""
    page = await thing_for(counter, done)
    counter.world.account.ledger.clear()
    counter.world.account.script.append(outcome_of(OutcomeKind.SUCCEEDED))
    ada = await counter.window("ada")
    await sent(ada, page, done.act, **done.fields)
    address = f"/console/confirmations/{confirmation_in(ada)}"
    assert "Nothing was done yet." in ada.text
    assert counter.world.account.ledger == []
    await ada.post(address, reason=WHY)
    assert "<strong>Done.</strong>" in ada.text
    await ada.post(address, reason=WHY)
    operation = await counter.world.operation()

    assert counter.world.account.ledger == [done.call]
    assert (operation.principal, await counter.acts()) == ("shop", [(done.act, WHY)])
    [first, *_] = await counter.world.journal.history(operation.id)
    assert (first.evidence.operator, first.evidence.reason) == ("Ada <ada@shop.example>", WHY)


@each_effect
async def test_a_lost_reply_is_told_as_not_known(counter: Counter, done: Done) -> None:
    """Nobody is promised what nobody knows; and the line of who began it is there."""
    ada = await counter.window("ada")
    page = await thing_for(counter, done)
    counter.world.account.script.append(outcome_of(OutcomeKind.UNKNOWN))
    await sent(ada, page, done.act, **done.fields)
    await ada.post(f"/console/confirmations/{confirmation_in(ada)}", reason=WHY)

    assert "<strong>Not known yet.</strong>" in ada.text
    assert await counter.acts() == [(done.act, WHY)]


async def test_what_nobody_here_owns_is_done_for_the_client_that_is_chosen(counter: Counter) -> None:
    """A plan from before the service: its end is written down for one client, whom the operator names."""
    world = counter.world
    await charge(world.relay, asked("somebody else"), CHARGE)
    owner = SubscriptionOwner(account="gateway", merchant=world.relay.account("gateway").merchant)
    fact = Fact(subscription_id=str(PLAN), at_ms=1, is_seen=True, order_id="before", state=SubscriptionState.ACTIVE)
    await world.relay.subscriptions.note(owner, [fact], now_ms=1)
    world.account.ledger.clear()
    ada = await counter.window("ada")
    page = f"/console/act/subscription/gateway~{PLAN}"
    for wrong in ({}, {"client": ""}, {"client": "nobody's"}):
        await sent(ada, page, "cancel_subscription", **wrong)
        assert "Choose the client for whom it is done" in ada.text
    await sent(ada, page, "cancel_subscription", client="shop")
    assert "<dt>For</dt><dd>shop</dd>" in ada.text
    world.account.script.append(outcome_of(OutcomeKind.SUCCEEDED))
    await ada.post(f"/console/confirmations/{confirmation_in(ada)}", reason=WHY)

    assert "<strong>Done.</strong>" in ada.text
    assert world.account.ledger == [CancelSubscription(subscription_id=PLAN)]
    assert (await world.operation()).principal == "shop"


async def test_a_client_is_chosen_for_nothing_that_somebody_owns(counter: Counter) -> None:
    """A form that names another client than the owner changes nothing about whose it is."""
    done = EFFECTS[2]
    ada = await counter.window("ada")
    page = await thing_for(counter, done)
    await sent(ada, page, done.act, client="rival")

    assert "<dt>For</dt><dd>shop</dd>" in ada.text


async def test_a_notification_is_worked_on_again(counter: Counter) -> None:
    """Whoever sees to a notification that waits for a person has it looked at anew, once what it lacked is there."""
    relay = counter.world.relay
    assert await relay.inbox.put(NOTIFICATION, b"payment_id=1")
    stuck = {"state": NotificationState.NEEDS_ATTENTION, "reason": NotificationReason.SEVERAL_OWNERS}
    await relay.inbox.record(msgspec.structs.replace(NOTIFICATION, version=2, next_at_ms=None, **stuck))
    ada = await counter.window("ada")
    await sent(ada, f"/console/act/notification/{NOTIFICATION.id}", "replay_notification")
    await ada.post(f"/console/confirmations/{confirmation_in(ada)}", reason=WHY)

    assert "<strong>Done.</strong>" in ada.text
    assert await counter.acts() == [("replay_notification", WHY)]
