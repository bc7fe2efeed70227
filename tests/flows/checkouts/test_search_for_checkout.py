"""A customer subscribes, and the notification is lost for good: what the gateway shows of the plan completes it.

The cases: the payment and its plan are shown (asked, or before the end); nothing was paid; the payment or the plan is
another than was asked; several plans of one order; a fee on the first payment; a plan that begins later; a gateway that
can't be asked; a notification that comes before, meanwhile or later; others that may own what is found, also since a
moment ago; a plan that has ended by then; a process that dies in between.
"""

import itertools
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.flows.inbox_world import MERCHANT, SHOWN_PLAN, SUBSCRIPTION_ID, InboxWorld, body_of, inbox_world, payment_of
from tests.flows.notifications.test_apply_plans import installment
from tests.flows.world import Crash, Raising

from payrelay.core.calls import AllSubscriptions, PaymentsOfOrder, PaymentsOfSubscription
from payrelay.core.checkouts.checkout import (
    Checkout,
    CheckoutEvent,
    CheckoutKind,
    CheckoutOutcome,
    CheckoutState,
    advance,
)
from payrelay.core.checkouts.hosted_payment import Plan
from payrelay.core.notifications.notification import NotificationReason
from payrelay.core.outcomes import OutcomeKind
from payrelay.core.payments.order_search import PAUSE_MS_MIN
from payrelay.core.subscriptions.subscription import Fact, SubscriptionState
from payrelay.flows.alerts.alert import begin_alerts
from payrelay.flows.checkouts.doubted_payments import call_to_unread_plan
from payrelay.flows.checkouts.finish_checkout import end_checkouts, finish_checkout, inquire, note_abandoned
from payrelay.flows.notifications.ingest import ingest_notification
from payrelay.gateways.gateway import NO_HEADERS
from payrelay.gateways.pacing.rate_limiter import PAYRELAY, Requester
from payrelay.runtime.alert_channels import AlertChannels
from payrelay.store.alerts import Alerts, AlertSubject
from payrelay.store.subscriptions import SubscriptionOwner

OTHER = "420075000001"
TRIAL = Plan(recurrence="1 Month", duration="1 Year", starts_on=date(2030, 1, 1))
FIRST = body_of(
    subscription_id=SUBSCRIPTION_ID,
    recurring="1",
    message_type="AUTHORIZATION_SUCCESS",
    item_rec_status="0",
    item_rec_install_paid="1",
)
PAID = ["subscription.installment_paid", "subscription.updated", "checkout.completed"]


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[InboxWorld]:
    """Gives a relay whose gateway shows one plan of the order, and no payment yet."""
    async with inbox_world(tmp_path / "payrelay.db") as opened:
        yield opened


async def looked(world: InboxWorld) -> Checkout:
    """Asks for the checkout, a while later."""
    world.clock.passed_ms += 20_000
    return await inquire(world.relay, await world.checkout())


def asked_of(world: InboxWorld) -> list[str]:
    """What the gateway was asked."""
    return [step for step in world.steps.passed if step in {"observe", "list"}]


async def test_a_plan_without_a_notification_is_found(world: InboxWorld) -> None:
    """The customer pays; an app that believed that it expired would let the customer subscribe a second time."""
    await world.open_checkout(CheckoutKind.RECURRING)
    world.payments.append(payment_of())
    done = await looked(world)

    assert (done.state, done.payment_id) == (CheckoutState.COMPLETED, "320025000001")
    assert done.subscription_id == SUBSCRIPTION_ID
    standing = await world.standing()
    assert (standing.paid, standing.subscription.principal) == (1, "shop")
    assert await world.event_types() == PAID
    assert asked_of(world) == ["observe", "list", "observe"]


@pytest.mark.parametrize("begins_later", [False, True])
async def test_what_is_found_is_followed_with_calls_of_our_own(world: InboxWorld, *, begins_later: bool) -> None:
    """An app's share may be one call in each window of the budget: a search of three calls would never end in it.

    A checkout expired in the simulation although its plan was paid, because each second call was refused for a day.
    """
    await world.open_checkout(CheckoutKind.RECURRING, plan=TRIAL if begins_later else None)
    if not begins_later:
        world.payments.append(payment_of())
    await looked(world)

    first, *others = world.account.requesters
    assert first == Requester.of_app("shop", "A-1")
    assert set(others) == {PAYRELAY}


async def test_a_plan_is_searched_for_before_its_checkout_ends(world: InboxWorld) -> None:
    """There may have been no request at all; two months of installments are there, and the first one paid for it."""
    await world.open_checkout(CheckoutKind.RECURRING)
    later = payment_of(payment_id="320025000002", at_ms=1_700_002_000_000)
    world.payments += [later, payment_of()]
    world.clock.passed_ms += 3_600_000
    await end_checkouts(world.relay)
    await world.finish()

    done = await world.checkout()
    assert (done.state, done.payment_id) == (CheckoutState.COMPLETED, "320025000001")
    assert (await world.standing()).paid == 2


async def test_where_nothing_was_paid_one_call_is_enough(world: InboxWorld) -> None:
    """Most customers who don't come back have paid nothing; the gateway takes few calls."""
    await world.open_checkout(CheckoutKind.RECURRING)

    assert (await looked(world)).state is CheckoutState.OPEN
    assert asked_of(world) == ["observe"]


@pytest.mark.parametrize(
    "members",
    [
        {"amount_minor": 99_999},
        {"currency": "USD"},
        {"status": "REFUNDED"},
        {"at_ms": 1_700_000_000_000 - 300_001},
        {"at_ms": 1_700_000_301_001},
    ],
)
async def test_a_payment_that_is_not_its_first_proves_nothing(world: InboxWorld, members: dict[str, object]) -> None:
    """Of other money, given back, from before anybody was asked, or a later installment."""
    await world.open_checkout(CheckoutKind.RECURRING)
    world.payments.append(payment_of(**members))

    assert (await looked(world)).state is CheckoutState.OPEN
    assert await world.event_types() == []


@pytest.mark.parametrize(
    "members",
    [
        {"amount": 1.0},
        {"amount": None},
        {"currency": "USD"},
        {"order_id": "B-7"},
        {"date": "2023-11-15 03:38:19"},
        {"date": None},
    ],
)
async def test_a_subscription_that_is_not_as_asked_proves_nothing(
    world: InboxWorld, members: dict[str, object]
) -> None:
    """Nothing of what is charged later is signed in the form: the customer's browser may have changed it."""
    await world.open_checkout(CheckoutKind.RECURRING)
    world.payments.append(payment_of())
    world.account.plans[SUBSCRIPTION_ID] |= members

    assert (await looked(world)).state is CheckoutState.OPEN
    assert await world.event_types() == []


async def test_a_payment_that_is_none_of_the_plans_proves_nothing(world: InboxWorld) -> None:
    """Another payment has the amount and the order of the checkout."""
    await world.open_checkout(CheckoutKind.RECURRING)
    world.payments.append(payment_of())
    world.account.plan_of["320025000001"] = "another"

    assert (await looked(world)).state is CheckoutState.OPEN


async def test_where_there_is_no_subscription_nothing_is_found(world: InboxWorld) -> None:
    """The payment is of something else, or the gateway's reply for "none" is an error: the checkout stays open."""
    await world.open_checkout(CheckoutKind.RECURRING)
    world.payments.append(payment_of())
    world.account.plans.clear()

    assert (await looked(world)).state is CheckoutState.OPEN
    world.clock.passed_ms += 3_600_000
    await end_checkouts(world.relay)
    await world.finish()
    assert (await world.checkout()).state is CheckoutState.OPEN


async def test_a_record_that_is_shown_twice_is_one(world: InboxWorld) -> None:
    """A list that moves while it is read shows one subscription, or one payment, at two places."""
    await world.open_checkout(CheckoutKind.RECURRING)
    world.payments += [payment_of(), payment_of(description="Tea!")]
    world.account.plans["again"] = SHOWN_PLAN | {"description": "Tea!"}
    done = await looked(world)

    assert (done.state, done.subscription_id) == (CheckoutState.COMPLETED, SUBSCRIPTION_ID)
    assert await world.event_types() == PAID


async def test_a_plan_that_was_read_before_makes_its_events_all_the_same(world: InboxWorld) -> None:
    """Support read the subscription before its principal was known; the shop must get the event of its payment."""
    await world.open_checkout(CheckoutKind.RECURRING)
    world.payments.append(payment_of())
    seen = Fact(
        subscription_id=SUBSCRIPTION_ID,
        at_ms=world.clock.now_ms(),
        is_seen=True,
        state=SubscriptionState.ACTIVE,
        payment="320025000001",
        is_paid=True,
    )
    whose = SubscriptionOwner(account="gateway", merchant=MERCHANT)
    await world.relay.subscriptions.note(whose, [seen], now_ms=world.clock.now_ms())
    await looked(world)

    assert await world.event_types() == PAID


async def test_of_several_plans_none_is_accepted(world: InboxWorld) -> None:
    """The form was posted twice. Only their notifications tell the subscriptions apart; an operator can read them."""
    await world.open_checkout(CheckoutKind.RECURRING)
    world.payments.append(payment_of())
    world.account.plans[OTHER] = SHOWN_PLAN | {"subscription_id": int(OTHER)}

    assert (await looked(world)).state is CheckoutState.OPEN
    assert "checkout_has_several_plans" in world.world.log_events
    world.clock.passed_ms += PAUSE_MS_MIN
    await world.take(FIRST)
    assert (await world.checkout()).subscription_id == SUBSCRIPTION_ID


async def test_an_older_plan_of_the_same_order_id_is_not_in_the_way(world: InboxWorld) -> None:
    """Order ids are not unique at the gateway."""
    await world.open_checkout(CheckoutKind.RECURRING)
    world.payments.append(payment_of())
    world.account.plans[OTHER] = SHOWN_PLAN | {"subscription_id": int(OTHER), "date": "2020-01-01 00:00:00"}

    assert (await looked(world)).subscription_id == SUBSCRIPTION_ID


async def test_the_first_payment_may_have_a_fee_in_it(world: InboxWorld) -> None:
    """What is charged later is another amount."""
    await world.open_checkout(CheckoutKind.RECURRING, first_minor=150_000)
    world.payments.append(payment_of(amount_minor=150_000))
    done = await looked(world)

    assert (done.state, done.payment_id) == (CheckoutState.COMPLETED, "320025000001")
    assert (await world.standing()).subscription.amount_minor == 100_000


@pytest.mark.parametrize("is_paid", [False, True])
async def test_a_plan_that_begins_later_is_shown_by_the_list(world: InboxWorld, *, is_paid: bool) -> None:
    """The plan has no payment before its first day; the inquiry may also come on that day."""
    await world.open_checkout(CheckoutKind.RECURRING, plan=TRIAL)
    world.payments += [payment_of()] if is_paid else []
    done = await looked(world)

    assert (done.state, done.subscription_id) == (CheckoutState.COMPLETED, SUBSCRIPTION_ID)
    assert done.payment_id == ("320025000001" if is_paid else None)
    assert await world.event_types() == (PAID if is_paid else PAID[1:])
    assert asked_of(world) == ["list", "observe"]


@pytest.mark.parametrize(("plan", "state"), [(TRIAL, CheckoutState.COMPLETED), (None, CheckoutState.OPEN)])
async def test_that_there_is_no_payment_of_it_yet_may_be_said_in_any_words(
    world: InboxWorld, plan: Plan | None, state: CheckoutState
) -> None:
    """PayHere doesn't document how it says so; of a plan that has begun they may be those of an error."""
    await world.open_checkout(CheckoutKind.RECURRING, plan=plan)
    world.payments += [] if plan is not None else [payment_of()]
    world.account.denied.add(PaymentsOfSubscription)

    assert (await looked(world)).state is state


@pytest.mark.parametrize("opened_on", [15, 14])
async def test_a_plan_that_began_on_its_first_day_must_show_its_payment(world: InboxWorld, opened_on: int) -> None:
    """It was opened for that day, or the evening before: its payment is charged at once, or was refunded."""
    today = Plan(recurrence="1 Month", duration="1 Year", starts_on=date(2023, 11, 15))
    if opened_on == 14:
        world.clock.passed_ms -= 4 * 3_600_000
    await world.open_checkout(CheckoutKind.RECURRING, plan=today)
    world.clock.passed_ms += 4 * 3_600_000 if opened_on == 14 else 0
    assert (await looked(world)).state is CheckoutState.OPEN
    world.clock.passed_ms += 600_000
    world.payments.append(payment_of())

    done = await looked(world)
    assert (done.state, done.payment_id) == (CheckoutState.COMPLETED, "320025000001")


@pytest.mark.parametrize("members", [{"status": "CANCELLED"}, {"order_id": "B-7"}, {"date": "soon"}, {"date": 7}])
async def test_a_plan_that_begins_later_must_go_on(world: InboxWorld, members: dict[str, object]) -> None:
    """Without a payment nothing else shows that the customer agreed to just this one."""
    await world.open_checkout(CheckoutKind.RECURRING, plan=TRIAL)
    world.account.plans[SUBSCRIPTION_ID] |= members

    assert (await looked(world)).state is CheckoutState.OPEN
    assert await world.event_types() == []


@pytest.mark.parametrize("call", [PaymentsOfOrder, AllSubscriptions, PaymentsOfSubscription])
async def test_what_can_not_be_seen_proves_nothing(world: InboxWorld, call: type) -> None:
    """And nothing ends unseen: it stays open until all of it could be asked."""
    await world.open_checkout(CheckoutKind.RECURRING)
    world.payments.append(payment_of())
    world.account.unreadable.add(call)
    assert (await looked(world)).state is CheckoutState.OPEN
    world.clock.passed_ms += 3_600_000
    await end_checkouts(world.relay)
    await world.finish()
    assert (await world.checkout()).state is CheckoutState.OPEN
    assert await world.event_types() == []
    world.account.unreadable.clear()

    assert (await looked(world)).state is CheckoutState.COMPLETED


async def by_look(world: InboxWorld) -> None:
    """A request causes an inquiry."""
    await looked(world)


async def by_notification(world: InboxWorld) -> None:
    """The gateway sends a notification, when the order may be searched for again."""
    world.clock.passed_ms += PAUSE_MS_MIN
    await world.take(FIRST)


@pytest.mark.parametrize("ways", list(itertools.product((by_look, by_notification), repeat=3)))
async def test_a_plan_makes_its_events_once_in_whatever_way_it_becomes_known(
    world: InboxWorld, ways: tuple[Callable[[InboxWorld], Awaitable[None]], ...]
) -> None:
    """A notification may come late after all; no customer may get one month twice."""
    await world.open_checkout(CheckoutKind.RECURRING)
    world.payments.append(payment_of())
    for way in ways:
        await way(world)

    done = await world.checkout()
    assert (done.state, done.payment_id) == (CheckoutState.COMPLETED, "320025000001")
    assert done.subscription_id == SUBSCRIPTION_ID
    assert await world.event_types() == PAID
    assert (await world.standing()).paid == 1


@pytest.mark.parametrize("step", ["observe", "list"])
async def test_a_notification_that_comes_meanwhile_makes_no_second_event(world: InboxWorld, step: str) -> None:
    """Both find the same, and whoever is second finds it done."""
    await world.open_checkout(CheckoutKind.RECURRING)
    world.payments.append(payment_of())

    async def be_told() -> None:
        await ingest_notification(world.relay, "gateway", NO_HEADERS, FIRST)

    world.steps.put(step, be_told)
    done = await looked(world)
    await world.finish()
    await world.later(PAUSE_MS_MIN)

    assert (done.state, done.payment_id) == (CheckoutState.COMPLETED, "320025000001")
    assert await world.event_types() == PAID


async def test_a_next_date_that_only_the_notification_has_makes_an_event(world: InboxWorld) -> None:
    """What the gateway shows has no date of the next installment."""
    await world.open_checkout(CheckoutKind.RECURRING)
    world.payments.append(payment_of())
    await looked(world)
    world.clock.passed_ms += PAUSE_MS_MIN
    await world.take(installment(1, "AUTHORIZATION_SUCCESS"))

    assert await world.event_types() == [*PAID, "subscription.updated"]
    assert (await world.standing()).subscription.next_on == "2024-01-15"


async def test_what_failed_first_and_was_paid_then_is_found(world: InboxWorld) -> None:
    """The first card was refused, with a notification; the second one paid, without one."""
    await world.open_checkout(CheckoutKind.RECURRING)
    await world.take(body_of("-2", message_type="AUTHORIZATION_FAILED", payment_id=None))
    assert (await world.checkout()).state is CheckoutState.FAILED
    world.payments.append(payment_of())

    assert (await looked(world)).state is CheckoutState.COMPLETED


async def test_a_plan_that_has_ended_makes_no_event_that_says_it_is_active(world: InboxWorld) -> None:
    """Support cancelled it in the gateway's portal before we knew of it; it was paid once all the same."""
    await world.open_checkout(CheckoutKind.RECURRING)
    world.payments.append(payment_of())
    world.account.plans[SUBSCRIPTION_ID]["status"] = "CANCELLED"
    await looked(world)

    assert await world.event_types() == ["subscription.installment_paid", "subscription.stopped", "checkout.completed"]
    assert (await world.standing()).subscription.state is SubscriptionState.STOPPED


@pytest.mark.parametrize("kind", [CheckoutKind.RECURRING, CheckoutKind.AUTHORIZATION])
@pytest.mark.parametrize("plan", [None, TRIAL])
async def test_an_order_that_was_asked_for_otherwise_too_is_left_alone(
    world: InboxWorld, kind: CheckoutKind, plan: Plan | None
) -> None:
    """Only the notification says which of the two owns it; the gateway isn't even asked."""
    await world.open_checkout(CheckoutKind.RECURRING, plan=plan)
    await world.open_checkout(kind, guard=None, state=CheckoutState.EXPIRED)
    world.payments.append(payment_of())

    assert (await looked(world)).state is CheckoutState.OPEN
    assert asked_of(world) == []


async def test_a_payment_that_is_an_operations_is_not_the_plans(world: InboxWorld) -> None:
    """It was charged under the same order, through us."""
    await world.charge(OutcomeKind.SUCCEEDED, payment_id="320025000001")
    await world.open_checkout(CheckoutKind.RECURRING)
    world.payments.append(payment_of())

    assert (await looked(world)).state is CheckoutState.OPEN
    assert await world.event_types() == ["operation.succeeded"]


@pytest.mark.parametrize("plan", [None, TRIAL])
async def test_what_becomes_doubtful_while_the_gateway_is_asked_is_left_alone(
    world: InboxWorld, plan: Plan | None
) -> None:
    """The order was free, and is asked for anew before the list of subscriptions is there."""
    await world.open_checkout(CheckoutKind.RECURRING, plan=plan, guard=None, state=CheckoutState.CANCELLED)
    world.payments += [payment_of()] if plan is None else []

    async def ask_anew() -> None:
        await world.open_checkout(CheckoutKind.RECURRING)

    world.steps.put("list", ask_anew)

    assert (await looked(world)).state is CheckoutState.CANCELLED
    assert await world.event_types() == []


async def test_a_second_plan_is_told_once_both_took_money(world: InboxWorld) -> None:
    """The customer pays each month twice; the payment of one plan is never shown as the other's.

    As long as one of them has no payment yet, nothing was paid again.
    """
    await world.open_checkout(CheckoutKind.RECURRING)
    world.payments.append(payment_of())
    content = CheckoutOutcome(
        account="gateway",
        merchant=MERCHANT,
        order_id="A-1",
        outcome=CheckoutState.COMPLETED,
        subscription_id=OTHER,
    )

    async def be_told() -> None:
        await finish_checkout(world.relay, await world.checkout(), content)

    world.steps.put("list", be_told)
    done = await looked(world)

    assert (done.subscription_id, done.payment_id) == (OTHER, None)
    assert "order.paid_again" not in await world.event_types()
    await finish_checkout(world.relay, done, msgspec.structs.replace(content, payment_id="320025000009"))
    assert (await world.event_types()).count("order.paid_again") == 1


@pytest.mark.parametrize("number", range(1, 4))
@pytest.mark.parametrize("step", ["write", "written"])
async def test_a_process_may_die_at_each_write(world: InboxWorld, step: str, number: int) -> None:
    """The process dies after the lease, the subscription or the checkout: the next inquiry does what is left."""
    await world.open_checkout(CheckoutKind.RECURRING)
    world.payments.append(payment_of())
    world.steps.put(step, Raising(Crash()), first=world.steps.passed.count(step) + number)
    with pytest.raises(Crash):
        await looked(world)
    await world.restart()
    world.account.plans = {SUBSCRIPTION_ID: dict(SHOWN_PLAN)}
    world.clock.passed_ms += 600_000
    await looked(world)

    assert (await world.checkout()).state is CheckoutState.COMPLETED
    assert await world.event_types() == PAID


MONTHLY = Plan(recurrence="1 Month", duration="1 Year")


async def alerted(world: InboxWorld) -> list[dict[str, Any]]:
    """Gives the alerts that are due, and returns what an alert channel got of them."""
    messages: list[dict[str, Any]] = []

    async def channel(body: bytes) -> None:
        messages.append(json.loads(body))

    kinds = tuple(Alerts(world.database, about) for about in AlertSubject)
    relay = replace(world.relay, alerting=AlertChannels(alerts=kinds, channels={"address": channel}))
    await begin_alerts(relay)
    await world.finish()
    return messages


async def test_a_plan_on_another_schedule_calls_an_operator_once(world: InboxWorld) -> None:
    """Its notification never came, and each inquiry finds it again. The checkout ends without it."""
    await world.open_checkout(CheckoutKind.RECURRING, plan=MONTHLY)
    world.account.plans[SUBSCRIPTION_ID] |= {"recurring": "Charged every year for 1 year", "status": "ACTIVE"}
    world.payments.append(payment_of())
    assert (await looked(world)).state is CheckoutState.OPEN
    (message,) = await alerted(world)
    assert (message["kind"], message["checkout_id"]) == ("checkout_contradicted", "chk_0001")
    assert (message["subscription_id"], message["amount"], message["state"]) == (SUBSCRIPTION_ID, 1000.0, "open")
    assert "its schedule" in message["why"]
    world.clock.passed_ms += 3_600_000
    await end_checkouts(world.relay)
    await world.finish()

    assert (await world.checkout()).state is CheckoutState.EXPIRED
    assert await alerted(world) == []
    assert await world.event_types() == ["checkout.expired"]


async def test_a_plan_on_another_schedule_is_noted_once_it_was_stopped(world: InboxWorld) -> None:
    """An operator has cancelled it at the gateway: nobody has to be called, and what was paid is known."""
    await world.open_checkout(CheckoutKind.RECURRING, plan=MONTHLY)
    world.account.plans[SUBSCRIPTION_ID] |= {"recurring": "Charged every year for 1 year", "status": "CANCELLED"}
    world.payments.append(payment_of())
    assert (await looked(world)).state is CheckoutState.OPEN

    assert await alerted(world) == []
    assert (await world.standing()).paid == 1


async def test_an_operator_is_called_by_the_notification_or_by_the_search(world: InboxWorld) -> None:
    """Two alerts about one subscription would be looked into twice."""
    await world.open_checkout(CheckoutKind.RECURRING, plan=MONTHLY)
    world.account.plans[SUBSCRIPTION_ID] |= {"recurring": "Charged every year for 1 year", "status": "ACTIVE"}
    world.payments.append(payment_of())
    taken = await world.take(FIRST)
    assert taken.reason is NotificationReason.OTHER_SCHEDULE
    assert [message.get("notification_id") for message in await alerted(world)] == [taken.id]
    await looked(world)

    assert await alerted(world) == []


async def test_no_operator_is_called_to_a_checkout_that_was_completed_meanwhile(world: InboxWorld) -> None:
    """The customer subscribed once more, as was asked, before the alert was given."""
    checkout = await world.open_checkout(CheckoutKind.RECURRING, plan=MONTHLY)
    await world.checkouts.doubt(checkout, SUBSCRIPTION_ID, at_ms=world.clock.now_ms())
    completed = advance(checkout, CheckoutEvent.COMPLETED, at_ms=world.clock.now_ms())
    assert completed is not None
    await world.checkouts.change(completed, has_event=True)

    assert await alerted(world) == []


async def ended_unread(world: InboxWorld, *, unreadable: type) -> None:
    """Lets a checkout end after a look at the payments, and more than a day in which one thing could not be read."""
    world.account.unreadable.add(AllSubscriptions)
    await looked(world)
    world.account.unreadable = {unreadable}
    for _ in range(5):
        assert (await world.checkout()).state is CheckoutState.OPEN
        assert await alerted(world) == []
        world.clock.passed_ms += 6 * 3_600_000
        await end_checkouts(world.relay)
        await world.finish()
    assert (await world.checkout()).state is CheckoutState.EXPIRED


@pytest.mark.parametrize("unreadable", [AllSubscriptions, PaymentsOfOrder])
async def test_an_operator_is_called_to_a_payment_whose_plan_was_never_read(
    world: InboxWorld, unreadable: type
) -> None:
    """The gateway showed the payment, and not the plan. A shop that sees ``expired`` alone has them paid twice."""
    await world.open_checkout(CheckoutKind.RECURRING)
    world.payments.append(payment_of())
    await ended_unread(world, unreadable=unreadable)

    (message,) = await alerted(world)
    assert (message["kind"], message["checkout_id"]) == ("checkout_payment_unknown", "chk_0001")
    assert (message["payment_id"], message["state"]) == ("320025000001", "expired")
    assert "the first of the subscription" in message["why"]
    assert "checkout_payment_unknown" in world.world.log_events


async def test_no_operator_is_called_where_no_payment_was_shown(world: InboxWorld) -> None:
    """Most customers who leave a page have paid nothing; operators would stop to look at alerts."""
    await world.open_checkout(CheckoutKind.RECURRING)
    await ended_unread(world, unreadable=PaymentsOfOrder)

    assert await alerted(world) == []


async def test_no_operator_is_called_where_nothing_was_ever_read(world: InboxWorld) -> None:
    """The gateway was down from the beginning: nobody knows of any payment."""
    await world.open_checkout(CheckoutKind.RECURRING)
    world.payments.append(payment_of())
    world.account.unreadable.add(PaymentsOfOrder)
    await ended_unread(world, unreadable=PaymentsOfOrder)

    assert await alerted(world) == []


async def test_no_operator_is_called_to_a_payment_that_may_be_another_checkouts(world: InboxWorld) -> None:
    """While a second checkout of the order is open, the payment may be on its page: that one's end tells."""
    await world.open_checkout(CheckoutKind.RECURRING)
    world.payments.append(payment_of())
    world.account.unreadable.add(AllSubscriptions)
    await looked(world)
    checkout = await world.checkout()
    await note_abandoned(world.relay, checkout)
    await world.open_checkout(CheckoutKind.PAYMENT)
    world.account.unreadable.add(PaymentsOfOrder)
    await call_to_unread_plan(world.relay, checkout)

    assert await alerted(world) == []
