"""What the console does at the gateway beside refunds: captures, voids, cancellations and retries; and replays."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import NamedTuple

import msgspec
import pytest
from tests.console.counter import Counter, confirmation_in, sent
from tests.flows.hosted import current, hosting, opened, seen
from tests.flows.world import CHARGE, asked, outcome_of
from tests.samples import NOTIFICATION

from payrelay.core.calls import CancelSubscription, Capture, Effect, RetrySubscription, Void
from payrelay.core.checkouts.checkout import CLOSED_SENTENCE, CheckoutState
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
        await charge(world.relay, asked(world.relay, "hold"), msgspec.structs.replace(CHARGE, authorize=True))
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


async def test_a_page_is_closed_and_its_order_says_so(counter: Counter) -> None:
    """Support reads on the order's page that it was closed, and whether the customer may still pay."""
    checkout = await opened(hosting(counter.world))
    ada = await counter.window("ada")
    await ada.get(f"/console/orders/gateway/{checkout.order_id}")
    assert "closed" not in ada.text
    await sent(ada, f"/console/act/checkout/{checkout.id}", "close_checkout")
    await ada.post(f"/console/confirmations/{confirmation_in(ada)}", reason=WHY)
    assert "the order is free. A form of it is out" in ada.text
    await ada.get(f"/console/act/checkout/{checkout.id}")
    assert 'value="close_checkout"' not in ada.text
    await ada.get(f"/console/orders/gateway/{checkout.order_id}")

    assert (CLOSED_SENTENCE in ada.text, "<dd>closed</dd>" in ada.text) == (True, True)
    assert await counter.acts() == [("close_checkout", WHY)]


async def test_a_page_that_was_paid_while_it_was_confirmed_is_not_closed(counter: Counter) -> None:
    """The last look at the gateway shows the payment; the page of the result says why nothing was closed."""
    checkout = await opened(hosting(counter.world))
    ada = await counter.window("ada")
    await sent(ada, f"/console/act/checkout/{checkout.id}", "close_checkout")
    counter.world.account.observations.append(seen())
    await ada.post(f"/console/confirmations/{confirmation_in(ada)}", reason=WHY)

    assert f"The checkout {checkout.id} is completed already: it can&#39;t be closed." in ada.text
    assert (await current(counter.world.relay, checkout.id)).state is CheckoutState.COMPLETED


async def test_what_nobody_here_owns_is_done_for_the_client_that_is_chosen(counter: Counter) -> None:
    """A plan from before the service: its end is written down for one client, whom the operator names."""
    world = counter.world
    await charge(world.relay, asked(world.relay, "somebody else"), CHARGE)
    owner = SubscriptionOwner(account="gateway", merchant=world.relay.account("gateway").merchant)
    money = {"currency": "LKR", "amount_minor": 2_000}
    facts = {"subscription_id": str(PLAN), "at_ms": 1, "is_seen": True, "order_id": "before", **money}
    fact = msgspec.convert(facts | {"state": SubscriptionState.ACTIVE}, Fact)
    await world.relay.subscriptions.note(owner, [fact], now_ms=1)
    world.account.ledger.clear()
    ada = await counter.window("ada")
    page = f"/console/act/subscription/gateway~{PLAN}"
    for wrong in ({}, {"client": ""}, {"client": "nobody's"}):
        await sent(ada, page, "cancel_subscription", **wrong)
        assert "Choose the client for whom it is done" in ada.text
    await sent(ada, page, "cancel_subscription", client="shop")
    for repeated in ("<dt>For</dt><dd>shop</dd>", "<dd>LKR 20.00</dd>", "<dd>before</dd>"):
        assert repeated in ada.text
    world.account.script.append(outcome_of(OutcomeKind.SUCCEEDED))
    await ada.post(f"/console/confirmations/{confirmation_in(ada)}", reason=WHY)

    assert "<strong>Done.</strong>" in ada.text
    assert world.account.ledger == [CancelSubscription(subscription_id=PLAN)]
    assert (await world.operation()).principal == "shop"
    await ada.get("/console/acts")
    assert "cancel subscription: LKR 20.00, order before, cnf_" in ada.text
    assert f"subscription/gateway~{PLAN}" in ada.text


async def test_a_page_of_a_subscription_that_ended_meanwhile_is_stale(counter: Counter) -> None:
    """The notification of its end came while somebody read the page: nothing is sent, and the page says so."""
    done = EFFECTS[2]
    world, ada = counter.world, await counter.window("ada")
    await sent(ada, await thing_for(counter, done), done.act)
    address = f"/console/confirmations/{confirmation_in(ada)}"
    owner = SubscriptionOwner(account="gateway", merchant=world.relay.account("gateway").merchant, principal="shop")
    ended = Fact(subscription_id=str(PLAN), at_ms=5, is_seen=True, order_id="A-1", state=SubscriptionState.STOPPED)
    await world.relay.subscriptions.note(owner, [ended], now_ms=5)
    world.account.ledger.clear()
    answer = await ada.post(address, reason=WHY)

    assert answer.status == 409
    assert world.account.ledger == []


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
