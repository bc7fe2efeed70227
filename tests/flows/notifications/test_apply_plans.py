"""What follows from a genuine notification of a plan: which one it is, and how it stands, is not signed."""

from collections.abc import AsyncIterator
from datetime import date
from pathlib import Path

import pytest
from tests.flows.inbox_world import (
    MERCHANT,
    SHOWN_PLAN,
    SUBSCRIPTION_ID,
    InboxWorld,
    body_of,
    inbox_world,
    payment_of,
)

from payrelay.core.calls import OneSubscription, PaymentsOfOrder, PaymentsOfSubscription
from payrelay.core.checkouts.checkout import CheckoutKind, CheckoutState
from payrelay.core.checkouts.hosted_payment import Plan
from payrelay.core.notifications.notification import Notification, NotificationReason, NotificationState
from payrelay.core.payments.schedules import DAY_MS
from payrelay.core.subscriptions.subscription import SubscriptionState
from payrelay.flows.alerts.alert_messages import MESSAGES
from payrelay.flows.notifications.replay_notification import replay
from payrelay.flows.subscription_notes import note_cancelled
from payrelay.store.alerts import Alerts, AlertSubject
from payrelay.store.subscriptions import FAILED_MAX, SubscriptionOwner

VICTIM = "420075000001"
NOW_MS = 1_700_000_001_000
"""When the first payment was made."""
PLAN = {
    "subscription_id": SUBSCRIPTION_ID,
    "recurring": "1",
    "item_recurrence": "1 Month",
    "item_duration": "1 Year",
}


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[InboxWorld]:
    """Gives a relay that takes notifications."""
    async with inbox_world(tmp_path / "payrelay.db") as opened:
        yield opened


def installment(number: int, message: str = "RECURRING_INSTALLMENT_SUCCESS", status: str = "2") -> bytes:
    """Writes what the gateway posts of a plan."""
    return body_of(
        status,
        **PLAN,
        payment_id=f"32002500000{number}",
        message_type=message,
        item_rec_status={"RECURRING_STOPPED": "-1", "RECURRING_COMPLETE": "1"}.get(message, "0"),
        item_rec_install_paid=str(number if status == "2" else number - 1),
        item_rec_date_next=f"2024-{number:02}-15",
    )


async def take_later(world: InboxWorld, body: bytes) -> Notification:
    """Takes what the gateway posts on a later day, when the order may be searched for anew."""
    world.clock.passed_ms += DAY_MS
    return await world.take(body)


async def test_a_plan_is_followed_to_its_end(world: InboxWorld) -> None:
    """An app shows what is paid and what comes next, without asking the gateway."""
    await world.open_checkout(CheckoutKind.RECURRING)
    world.payments += [payment_of(payment_id=f"32002500000{number}") for number in (1, 2, 3)]
    first = await world.take(installment(1, "AUTHORIZATION_SUCCESS"))
    assert first.reason is NotificationReason.SUBSCRIPTION_NOTED
    checkout = await world.checkout()
    assert (checkout.state, checkout.subscription_id) == (CheckoutState.COMPLETED, SUBSCRIPTION_ID)
    assert checkout.payment_id == "320025000001"
    await take_later(world, installment(2, "RECURRING_INSTALLMENT_FAILED", "-2"))
    standing = await world.standing()
    assert (standing.paid, standing.subscription.state) == (1, SubscriptionState.ACTIVE)
    assert standing.last_failure is not None
    assert standing.last_failure.payment_id == "320025000002"
    await take_later(world, installment(3))
    world.account.plans[SUBSCRIPTION_ID]["status"] = "COMPLETED"
    await take_later(world, installment(3, "RECURRING_COMPLETE"))

    standing = await world.standing()
    assert (standing.paid, standing.subscription.state) == (3, SubscriptionState.COMPLETED)
    assert standing.subscription.next_on is None
    types = await world.event_types()
    assert [each for each in types if each.startswith("subscription.")] == [
        "subscription.installment_paid",
        "subscription.updated",
        "subscription.installment_failed",
        "subscription.updated",
        "subscription.installment_paid",  # the one that failed, which was paid after all, as the gateway shows
        "subscription.installment_paid",
        "subscription.updated",
        "subscription.completed",
    ]
    assert (await world.checkout()).payment_id == "320025000001"


async def test_an_installment_counts_when_the_gateway_shows_it(world: InboxWorld) -> None:
    """Neither the plan nor the payment is signed."""
    await world.open_checkout(CheckoutKind.RECURRING)
    taken = await world.take(installment(1, "AUTHORIZATION_SUCCESS"))

    assert taken.reason is NotificationReason.NOT_SHOWN
    assert await world.subscriptions.summary("0123456789abcdef", SUBSCRIPTION_ID) is None


async def test_a_plan_that_begins_later_is_proved_by_itself(world: InboxWorld) -> None:
    """There is no payment to be shown before its first day; the gateway shows the plan, and no payment is believed."""
    trial = Plan(recurrence="1 Month", duration="1 Year", starts_on=date(2030, 1, 1))
    await world.open_checkout(CheckoutKind.RECURRING, plan=trial)
    taken = await world.take(installment(1, "AUTHORIZATION_SUCCESS"))

    assert taken.reason is NotificationReason.SUBSCRIPTION_NOTED
    checkout = await world.checkout()
    assert (checkout.state, checkout.subscription_id) == (CheckoutState.COMPLETED, SUBSCRIPTION_ID)
    assert checkout.payment_id is None
    assert (await world.standing()).paid == 0


@pytest.mark.parametrize("body", ["paid", "stopped"])
async def test_the_order_of_one_moves_no_plan_of_another(world: InboxWorld, body: str) -> None:
    """A customer can have the notification of his own order sent to himself, and post it here with another plan in it.

    The address in the form isn't signed, and neither is the plan in a notification.
    """
    await world.open_checkout(CheckoutKind.RECURRING, principal="thief")
    world.account.plans[VICTIM] = {"subscription_id": int(VICTIM), "order_id": "B-7", "currency": "LKR"}
    world.payments.append(payment_of())
    own = body_of(message_type="AUTHORIZATION_SUCCESS", subscription_id=VICTIM)
    failed = body_of("-2", message_type="RECURRING_STOPPED", item_rec_status="-1", subscription_id=VICTIM)
    taken = await world.take(own if body == "paid" else failed)

    assert taken.reason is NotificationReason.NOT_SHOWN
    assert (await world.checkout()).subscription_id is None
    assert await world.subscriptions.summary(MERCHANT, VICTIM) is None
    assert await world.event_types() == []


async def test_a_plan_of_another_amount_needs_attention(world: InboxWorld) -> None:
    """The signature of a form covers the first payment; what comes later the customer's browser may change."""
    await world.open_checkout(CheckoutKind.RECURRING)
    world.account.plans[SUBSCRIPTION_ID]["amount"] = 1.0
    world.payments.append(payment_of())
    taken = await world.take(installment(1, "AUTHORIZATION_SUCCESS"))

    assert (taken.state, taken.reason) == (NotificationState.NEEDS_ATTENTION, NotificationReason.OTHER_AMOUNT)
    assert (await world.checkout()).state is CheckoutState.OPEN


async def test_a_second_plan_of_an_order_needs_attention(world: InboxWorld) -> None:
    """The form was posted twice, and the customer would pay each month twice."""
    await world.open_checkout(CheckoutKind.RECURRING)
    world.account.plans[VICTIM] = SHOWN_PLAN | {"subscription_id": int(VICTIM)}
    world.payments += [payment_of(), payment_of(payment_id="320025000002")]
    await world.take(installment(1, "AUTHORIZATION_SUCCESS"))
    second = {"message_type": "AUTHORIZATION_SUCCESS", "subscription_id": VICTIM}
    taken = await take_later(world, body_of(**second, payment_id="320025000002"))

    assert (taken.state, taken.reason) == (NotificationState.APPLIED, NotificationReason.PAID_AGAIN)
    assert (await world.checkout()).subscription_id == SUBSCRIPTION_ID
    known = await world.subscriptions.summary(MERCHANT, VICTIM)
    assert known is not None
    assert known.subscription.principal == "shop"


async def test_an_installment_of_another_plan_of_the_order_does_not_count(world: InboxWorld) -> None:
    """Their payments look alike, and the subscription's id is not signed: an app would show more paid than was."""
    await world.open_checkout(CheckoutKind.RECURRING)
    world.payments += [payment_of(payment_id=f"32002500000{number}") for number in (1, 2)]
    world.account.plan_of["320025000002"] = VICTIM
    await world.take(installment(1, "AUTHORIZATION_SUCCESS"))
    taken = await take_later(world, installment(2))

    assert taken.reason is NotificationReason.NOT_SHOWN
    assert (await world.standing()).paid == 1


@pytest.mark.parametrize(
    ("word", "why"), [("ACTIVE", NotificationReason.NOT_SHOWN), ("CANCELLED", NotificationReason.SUBSCRIPTION_NOTED)]
)
async def test_a_plan_ends_when_the_gateway_shows_it(world: InboxWorld, word: str, why: NotificationReason) -> None:
    """The end is not signed; a shop that believed it would stop delivering to a customer who pays."""
    await world.open_checkout(CheckoutKind.RECURRING)
    world.payments.append(payment_of())
    await world.take(installment(1, "AUTHORIZATION_SUCCESS"))
    world.account.plans[SUBSCRIPTION_ID]["status"] = word
    taken = await take_later(world, installment(2, "RECURRING_STOPPED", "-2"))

    assert taken.reason is why
    expected = SubscriptionState.ACTIVE if word == "ACTIVE" else SubscriptionState.STOPPED
    assert (await world.standing()).subscription.state is expected


async def test_a_notification_after_the_end_does_not_make_a_plan_active(world: InboxWorld) -> None:
    """A shop that shuts a door at the cancellation would open it for a late installment, and shut it again."""
    await world.open_checkout(CheckoutKind.RECURRING)
    world.payments += [payment_of(payment_id=f"32002500000{number}") for number in (1, 2)]
    await world.take(installment(1, "AUTHORIZATION_SUCCESS"))
    world.account.plans[SUBSCRIPTION_ID]["status"] = "CANCELLED"
    relay = world.relay
    whose = SubscriptionOwner(account="gateway", merchant=relay.account("gateway").merchant)
    await note_cancelled(relay.subscriptions, whose, SUBSCRIPTION_ID, now_ms=relay.clock.now_ms(), log=relay.log)
    world.clock.passed_ms += 5_000
    await take_later(world, installment(2))

    standing = await world.standing()
    assert (standing.paid, standing.subscription.state) == (2, SubscriptionState.STOPPED)
    types = [each for each in await world.event_types() if each.startswith("subscription.")]
    assert types[-2:] == ["subscription.stopped", "subscription.installment_paid"]


async def test_installments_are_counted_by_what_is_shown(world: InboxWorld) -> None:
    """The number of paid installments is not signed; those without a notification are found at the gateway."""
    await world.open_checkout(CheckoutKind.RECURRING)
    world.payments += [payment_of(), payment_of(payment_id="320025000002")]
    taken = await world.take(
        body_of(**PLAN, message_type="RECURRING_INSTALLMENT_SUCCESS", item_rec_install_paid="99", item_rec_status="0")
    )

    assert taken.reason is NotificationReason.SUBSCRIPTION_NOTED
    assert (await world.standing()).paid == 2


@pytest.mark.parametrize("call", [OneSubscription, PaymentsOfSubscription])
async def test_a_plan_that_cannot_be_seen_is_waited_for(world: InboxWorld, call: type) -> None:
    """What could not be asked is asked again."""
    await world.open_checkout(CheckoutKind.RECURRING)
    world.payments.append(payment_of())
    world.account.unreadable.add(call)
    body = body_of(**PLAN, message_type="RECURRING_INSTALLMENT_SUCCESS", item_rec_install_paid="2")
    assert (await world.take(body)).reason is NotificationReason.UNSEEN
    world.account.unreadable.clear()
    await world.later()

    assert [each.reason for each in await world.all()] == [NotificationReason.SUBSCRIPTION_NOTED]


async def test_a_chargeback_finds_an_installment_that_is_shown_with_its_plan_alone(world: InboxWorld) -> None:
    """A payment that was found there must be found there for its chargeback too, or there is no event of it."""
    await world.open_checkout(CheckoutKind.RECURRING)
    world.payments += [payment_of(), payment_of(payment_id="320025000002")]
    await world.take(installment(1, "AUTHORIZATION_SUCCESS"))
    world.account.hidden.add(PaymentsOfOrder)
    world.charge_back("320025000002")

    assert (
        await take_later(world, body_of("-3", payment_id="320025000002"))
    ).reason is NotificationReason.CHARGEBACK_KEPT
    assert (await world.events())[-1] == ("payment.charged_back", "payment:320025000002", "shop")


async def test_a_chargeback_of_a_known_installment_needs_its_record(world: InboxWorld) -> None:
    """That it was paid was seen; that a bank took it back only the gateway's record shows, once it can be read."""
    await world.open_checkout(CheckoutKind.RECURRING)
    world.payments += [payment_of(), payment_of(payment_id="320025000002")]
    await world.take(installment(1, "AUTHORIZATION_SUCCESS"))
    await take_later(world, installment(2, "RECURRING_INSTALLMENT_SUCCESS"))
    world.charge_back("320025000002")
    world.account.is_hidden = True
    assert (await take_later(world, body_of("-3", payment_id="320025000002"))).reason is NotificationReason.UNSEEN
    world.account.is_hidden = False
    await world.later()

    assert await world.chargebacks.of_payment(MERCHANT, "320025000002") is not None


async def test_a_chargeback_of_a_plan_takes_back_no_payment_of_another(world: InboxWorld) -> None:
    """Whoever charges back his own installment must not mark another customer's payment by posting its number."""
    await world.open_checkout(CheckoutKind.RECURRING)
    world.payments += [payment_of(), payment_of(payment_id="320025000002"), payment_of(payment_id="7", order_id="B-7")]
    await world.take(installment(1, "AUTHORIZATION_SUCCESS"))
    assert (await take_later(world, body_of("-3", payment_id="7"))).reason is NotificationReason.UNKNOWN_PAYMENT
    assert await world.chargebacks.of_payment(MERCHANT, "7") is None
    world.charge_back("320025000002")
    world.account.is_hidden = True
    assert (await take_later(world, body_of("-3", payment_id="320025000002"))).reason is NotificationReason.UNSEEN
    world.account.is_hidden = False
    await world.later()

    assert await world.chargebacks.of_payment(MERCHANT, "320025000002") is not None


MONTHLY = Plan(recurrence="1 Month", duration="1 Year")
YEARLY = "Charged every year for 1 year"


@pytest.mark.parametrize("status", ["ACTIVE", "COMPLETED", "words that nobody knows"])
async def test_a_plan_on_another_schedule_is_for_an_operator(world: InboxWorld, status: str) -> None:
    """The form's schedule is not signed: a customer may pay once a year for what was sold by the month."""
    await world.open_checkout(CheckoutKind.RECURRING, plan=MONTHLY)
    world.payments.append(payment_of())
    world.account.plans[SUBSCRIPTION_ID] |= {"recurring": YEARLY, "status": status}
    taken = await world.take(installment(1, "AUTHORIZATION_SUCCESS"))

    assert (taken.state, taken.reason) == (NotificationState.NEEDS_ATTENTION, NotificationReason.OTHER_SCHEDULE)
    assert (await world.checkout()).state is CheckoutState.OPEN
    assert await world.event_types() == []


@pytest.mark.parametrize("message", ["AUTHORIZATION_SUCCESS", "RECURRING_STOPPED"])
async def test_a_plan_on_another_schedule_ends_with_its_cancellation(world: InboxWorld, message: str) -> None:
    """The operator cancels it at the gateway and replays: what was paid is known, and the checkout isn't completed."""
    await world.open_checkout(CheckoutKind.RECURRING, plan=MONTHLY)
    world.payments.append(payment_of())
    world.account.plans[SUBSCRIPTION_ID] |= {"recurring": YEARLY, "status": "ACTIVE"}
    taken = await world.take(installment(1, "AUTHORIZATION_SUCCESS"))
    world.account.plans[SUBSCRIPTION_ID] |= {"status": "CANCELLED"}
    if message == "RECURRING_STOPPED":
        await world.take(installment(1, message, "-2"))
    await replay(world.relay, taken.id)
    await world.later()

    noted = await world.inbox.get(taken.id)
    assert noted is not None
    assert (noted.state, noted.reason) == (NotificationState.APPLIED, NotificationReason.OTHER_SCHEDULE_STOPPED)
    standing = await world.standing()
    assert (standing.paid, standing.subscription.state) == (1, SubscriptionState.STOPPED)
    assert (await world.checkout()).state is CheckoutState.OPEN
    assert "checkout.completed" not in await world.event_types()


async def test_a_plan_that_completed_its_checkout_is_followed_whatever_its_schedule(world: InboxWorld) -> None:
    """A merchant may change the plan at the gateway. The customers' installments must go on being counted."""
    checkout = await world.open_checkout(CheckoutKind.RECURRING, plan=MONTHLY)
    world.payments += [payment_of(), payment_of(payment_id="320025000002")]
    await world.take(installment(1, "AUTHORIZATION_SUCCESS"))
    world.account.plans[SUBSCRIPTION_ID] |= {"recurring": YEARLY, "status": "ACTIVE"}
    taken = await take_later(world, installment(2))

    assert taken.reason is NotificationReason.SUBSCRIPTION_NOTED
    assert (await world.standing()).paid == 2
    assert (await world.checkout()).id == checkout.id


async def test_a_schedule_that_nobody_can_read_is_logged(world: InboxWorld) -> None:
    """The gateway documents two examples of its wording. Operators learn that another one is compared with nothing."""
    await world.open_checkout(CheckoutKind.RECURRING, plan=MONTHLY)
    world.payments.append(payment_of())
    world.account.plans[SUBSCRIPTION_ID] |= {"recurring": "Billed monthly", "status": "ACTIVE"}
    taken = await world.take(installment(1, "AUTHORIZATION_SUCCESS"))

    assert taken.reason is NotificationReason.SUBSCRIPTION_NOTED
    assert "subscription_schedule_not_read" in world.world.log_events


async def test_a_plan_whose_first_payment_is_another_is_for_an_operator(world: InboxWorld) -> None:
    """Amount and startup fee are signed as one sum, which may be that of another form: 10.00 in place of 6000.00."""
    fee = Plan(recurrence="1 Month", duration="1 Year", startup_fee_minor=500_000)
    await world.open_checkout(CheckoutKind.RECURRING, plan=fee, first_minor=600_000)
    world.payments.append(payment_of())
    taken = await world.take(installment(1, "AUTHORIZATION_SUCCESS"))

    assert (taken.state, taken.reason) == (NotificationState.NEEDS_ATTENTION, NotificationReason.OTHER_AMOUNT)
    assert (await world.checkout()).state is CheckoutState.OPEN
    assert await world.event_types() == []


async def test_a_later_payment_is_not_taken_for_the_first(world: InboxWorld) -> None:
    """Who paid 10.00 first pays the whole amount a month later, and may claim that payment as the first one."""
    await world.open_checkout(CheckoutKind.RECURRING)
    month_ms = 30 * 86_400_000
    world.payments += [payment_of(amount_minor=1_000), payment_of(payment_id="320025000002", at_ms=NOW_MS + month_ms)]
    taken = await world.take(body_of(**PLAN, message_type="AUTHORIZATION_SUCCESS", payment_id="320025000002"))

    assert (taken.state, taken.reason) == (NotificationState.NEEDS_ATTENTION, NotificationReason.OTHER_AMOUNT)
    assert (await world.checkout()).state is CheckoutState.OPEN


async def test_an_installment_waits_for_the_first_payment(world: InboxWorld) -> None:
    """Without it nothing shows what was paid first. The installment counts, and completes the checkout with that."""
    await world.open_checkout(CheckoutKind.RECURRING)
    second = payment_of(payment_id="320025000002", at_ms=NOW_MS + 30 * 86_400_000)
    world.payments.append(second)
    taken = await world.take(installment(2))
    assert (taken.reason, (await world.checkout()).state) == (NotificationReason.NOT_SHOWN, CheckoutState.OPEN)
    assert (await world.standing()).paid == 1
    world.payments.append(payment_of())
    await world.later()

    checkout = await world.checkout()
    assert (checkout.state, checkout.payment_id) == (CheckoutState.COMPLETED, "320025000001")


@pytest.mark.parametrize(
    ("members", "reason"),
    [
        ({"date": "2019-01-01 00:00:00"}, NotificationReason.EARLIER_PAYMENT),
        ({"date": "some day"}, NotificationReason.EARLIER_PAYMENT),
        ({"amount": None}, NotificationReason.OTHER_AMOUNT),
        ({"status": "CANCELLED"}, NotificationReason.SUBSCRIPTION_NOTED),
        ({"status": "words that nobody knows"}, NotificationReason.NOT_SHOWN),
    ],
)
async def test_a_plan_that_begins_later_must_be_the_one_that_was_asked_for(
    world: InboxWorld, members: dict[str, object], reason: NotificationReason
) -> None:
    """Nothing is paid yet: an old subscription of the order, or one that was stopped, would complete the checkout."""
    trial = Plan(recurrence="1 Month", duration="1 Year", starts_on=date(2030, 1, 1))
    await world.open_checkout(CheckoutKind.RECURRING, plan=trial)
    world.account.plans[SUBSCRIPTION_ID] |= members
    taken = await world.take(installment(1, "AUTHORIZATION_SUCCESS"))

    assert taken.reason is reason
    assert (await world.checkout()).state is CheckoutState.OPEN


@pytest.mark.parametrize("is_first_notified", [True, False])
@pytest.mark.parametrize("fee_minor", [0, 500_000])
async def test_the_first_payment_of_a_plan_that_began_later_is_compared_when_it_shows(
    world: InboxWorld, fee_minor: int, *, is_first_notified: bool
) -> None:
    """Of such a plan only 10.00 is signed: whoever deletes the startup fee from the form pays 1000.00 for 6000.00."""
    trial = Plan(recurrence="1 Month", duration="1 Year", starts_on=date(2023, 11, 20), startup_fee_minor=fee_minor)
    await world.open_checkout(CheckoutKind.RECURRING, plan=trial, first_minor=100_000 + fee_minor)
    await world.take(installment(1, "AUTHORIZATION_SUCCESS"))
    assert (await world.checkout()).state is CheckoutState.COMPLETED
    world.clock.passed_ms += 6 * 86_400_000
    at_ms = world.clock.now_ms()
    world.payments += [payment_of(at_ms=at_ms), payment_of(payment_id="320025000002", at_ms=at_ms + 1)]
    taken = await take_later(world, installment(1 if is_first_notified else 2))

    checkout, alerts = await world.checkout(), await alerts_of(world)
    assert (await world.standing()).paid == (1 if is_first_notified else 2)
    if fee_minor == 0:
        assert (taken.reason, checkout.payment_id) == (NotificationReason.SUBSCRIPTION_NOTED, "320025000001")
        assert alerts == []
    else:
        expected = NotificationReason.OTHER_AMOUNT if is_first_notified else NotificationReason.SUBSCRIPTION_NOTED
        assert (taken.reason, checkout.payment_id) == (expected, None)
        assert alerts == ([] if is_first_notified else ["chk_0001"])


async def alerts_of(world: InboxWorld) -> list[str]:
    """Reads which checkouts an operator is alerted about, as the alert channels are told."""
    alerts = Alerts(world.database, AlertSubject.CHECKOUT)
    leased = await alerts.lease_due(world.clock.now_ms(), leased_until_ms=world.clock.now_ms() + 1, limit=9)
    return [each.subject_id for each in leased if await MESSAGES[AlertSubject.CHECKOUT](world.relay, each) is not None]


async def test_made_up_failures_of_a_plan_are_few(world: InboxWorld) -> None:
    """No record shows a failed installment, and its number isn't signed: a customer may post any number of them.

    The shop would get an event for each of them. What is paid counts all the same, on the same day too.
    """
    await world.open_checkout(CheckoutKind.RECURRING)
    world.payments += [payment_of(), payment_of(payment_id="320025000002")]
    await world.take(installment(1, "AUTHORIZATION_SUCCESS"))
    for number in range(10):
        failure = {"payment_id": f"3299000000{number:02}", "message_type": "RECURRING_INSTALLMENT_FAILED"}
        await world.take(body_of("-2", **PLAN, **failure))
    await take_later(world, body_of("-2", **PLAN, message_type="RECURRING_INSTALLMENT_FAILED", payment_id="7"))
    await take_later(world, installment(2))

    types = await world.event_types()
    assert types.count("subscription.installment_failed") == FAILED_MAX + 1
    assert types.count("subscription.installment_paid") == (await world.standing()).paid == 2


@pytest.mark.parametrize("day", ["9999-99-99", "9999-12-31", "2025-01-01"])
async def test_a_next_date_that_can_not_be_is_not_shown(world: InboxWorld, day: str) -> None:
    """Nobody signs it, and the latest one is shown: a made-up one would be shown for ever."""
    await world.open_checkout(CheckoutKind.RECURRING)
    world.payments.append(payment_of())
    await world.take(installment(1, "AUTHORIZATION_SUCCESS"))
    failure = {"message_type": "RECURRING_INSTALLMENT_FAILED", "item_rec_date_next": day}
    await take_later(world, body_of("-2", **PLAN, **failure))

    assert (await world.standing()).subscription.next_on == "2024-01-15"
