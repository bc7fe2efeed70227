"""One search answers all that wait for an order, and an order takes one search a slot: counted at the gateway.

Only five fields of a notification are signed. Whoever has one can post it with any other number of a payment, of a
subscription or of anything else in it, and each body is another notification.
"""

import tempfile
from collections.abc import AsyncIterator
from datetime import datetime
from itertools import pairwise, product
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.draws import examples
from tests.flows.inbox_world import (
    MERCHANT,
    PAYMENT_ID,
    SUBSCRIPTION_ID,
    InboxWorld,
    body_of,
    inbox_world,
    payment_of,
)
from tests.flows.notifications.test_apply_plans import installment
from tests.flows.world import Crash, Raising

from payrelay.core.calls import AllSubscriptions, OneSubscription, PaymentsOfOrder, PaymentsOfSubscription
from payrelay.core.checkouts.checkout import CheckoutKind, CheckoutState
from payrelay.core.notifications.notification import UNFINISHED, NotificationReason, NotificationState
from payrelay.core.outcomes import OutcomeKind
from payrelay.core.payments.order_search import LEASE_MS, PAUSE_MS_MIN, PAUSES_MS, SCHEDULE_MS
from payrelay.core.payments.schedules import DAY_MS, HOUR_MS
from payrelay.errors import StoreUnavailable
from payrelay.flows.checkouts.finish_checkout import LEASE_MS as ENDING_LEASE_MS
from payrelay.flows.checkouts.finish_checkout import RETURNED, end_checkouts, inquire
from payrelay.flows.notifications.ingest import ingest_notification
from payrelay.flows.notifications.replay_notification import replay
from payrelay.flows.order_search import SUBSCRIPTIONS_MAX, forget_searches
from payrelay.gateways.gateway import NO_HEADERS

DISGUISES = 40
SECOND_ID = "320025000002"


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[InboxWorld]:
    """Gives a relay that takes notifications."""
    async with inbox_world(tmp_path / "payrelay.db") as opened:
        yield opened


def disguise(number: int, status: str = "2", **fields: str) -> bytes:
    """Writes the genuine notification under a payment's number that was made up."""
    return body_of(status, payment_id=str(320_099_000_000 + number), **fields)


def kinds_of(world: InboxWorld) -> list[type]:
    """Gives the types of the calls that the gateway got."""
    return [type(call) for _, call in world.account.calls]


async def test_disguises_of_one_payment_share_one_search(world: InboxWorld) -> None:
    """Each had a search of its own, and two hundred of them used up the budget of every other customer for minutes."""
    await world.open_checkout()
    world.payments.append(payment_of())
    await world.take(body_of())
    for number in range(DISGUISES):
        taken = await world.take(disguise(number))
        assert (taken.state, taken.reason) == (NotificationState.WAITING, NotificationReason.NOT_SHOWN)

    assert kinds_of(world) == [PaymentsOfOrder]
    assert (await world.checkout()).payment_id == PAYMENT_ID


async def test_what_waits_takes_one_search_a_slot(world: InboxWorld) -> None:
    """However many wait: each is answered in each slot, and none of them asks by itself."""
    await world.open_checkout()
    for number in range(DISGUISES):
        await world.take(disguise(number))
    attempts = []
    for pause_ms in PAUSES_MS[:4]:
        await world.later(pause_ms)
        attempts.append({each.attempts for each in await world.all()})

    assert kinds_of(world) == [PaymentsOfOrder] * 5
    assert attempts == [{2}, {3}, {4}, {5}]


async def test_one_search_answers_all_that_wait(world: InboxWorld) -> None:
    """The honest one is among those in disguise, and two payments of the order are shown by one search."""
    await world.open_checkout()
    for number in range(10):
        await world.take(disguise(number))
    honest, second = await world.take(body_of()), await world.take(body_of(payment_id=SECOND_ID))
    assert {honest.state, second.state} == {NotificationState.WAITING}
    world.payments += [payment_of(), payment_of(payment_id=SECOND_ID)]
    await world.later(PAUSES_MS[0])

    found = {each.payment_id: each.reason for each in await world.all()}
    assert found[PAYMENT_ID] is NotificationReason.CHECKOUT_FINISHED
    assert found[SECOND_ID] is NotificationReason.PAID_AGAIN
    assert len(kinds_of(world)) == 2


async def test_a_checkouts_inquiry_answers_the_notifications_too(world: InboxWorld) -> None:
    """Whoever searches first, searches for all: the slot of the order is used up by then."""
    await world.open_checkout()
    for number in range(3):
        await world.take(disguise(number))
    honest = await world.take(body_of())
    world.payments.append(payment_of())
    world.clock.passed_ms += 10_000
    assert (await inquire(world.relay, await world.checkout())).state is CheckoutState.COMPLETED
    await world.later(0)

    again = await world.inbox.get(honest.id)
    assert again is not None
    assert (again.state, again.reason) == (NotificationState.APPLIED, NotificationReason.CHECKOUT_FINISHED)
    assert len(kinds_of(world)) == 2
    assert all(each.reason is NotificationReason.NOT_SHOWN for each in await world.all() if each.id != honest.id)


async def test_pages_that_are_reloaded_take_one_search_a_slot(world: InboxWorld) -> None:
    """A customer costs nothing by looking; the first return from the gateway's page is news, and the tenth is not."""
    await world.open_checkout()
    for _ in range(60):
        world.clock.passed_ms += 1_000
        await inquire(world.relay, await world.checkout())
    before = len(kinds_of(world))
    for _ in range(60):
        world.clock.passed_ms += 10_000
        await inquire(world.relay, await world.checkout(), occasion=RETURNED)

    assert before == 4
    assert len(kinds_of(world)) == before + 6


async def test_a_checkout_ends_after_a_search_though_its_order_is_flooded(world: InboxWorld) -> None:
    """The end is news too: a paid checkout must not expire because somebody else has used the slots up."""
    await world.open_checkout()
    for number in range(DISGUISES):
        await world.take(disguise(number))
    for pause_ms in PAUSES_MS[:5]:
        await world.later(pause_ms)
    await world.later(HOUR_MS - world.clock.passed_ms)
    world.payments.append(payment_of())
    world.clock.passed_ms += PAUSE_MS_MIN
    await end_checkouts(world.relay)
    await world.finish()

    assert (await world.checkout()).state is CheckoutState.COMPLETED


async def test_a_checkout_without_a_slot_does_not_end_unseen(world: InboxWorld) -> None:
    """It waits for the slot, and keeps its order meanwhile."""
    await world.open_checkout()
    world.clock.passed_ms += HOUR_MS
    await world.take(disguise(1))
    await end_checkouts(world.relay)
    await world.finish()
    assert (await world.checkout()).state is CheckoutState.OPEN
    world.clock.passed_ms += ENDING_LEASE_MS
    await end_checkouts(world.relay)
    await world.finish()

    assert (await world.checkout()).state is CheckoutState.EXPIRED


@pytest.mark.parametrize("status", ["2", "-2", "0"])
async def test_disguises_of_a_lost_charge_make_one_inquiry(world: InboxWorld, status: str) -> None:
    """A notification is a reason to inquire about the order's charge at once, and reports of failure are signed too."""
    operation = await world.charge(OutcomeKind.UNKNOWN)
    for number in range(DISGUISES):
        await world.take(disguise(number, status))
    assert kinds_of(world) == [PaymentsOfOrder]
    world.payments.append(payment_of(at_ms=world.clock.now_ms()))
    await world.later(PAUSE_MS_MIN)
    await world.take(body_of())

    assert len(kinds_of(world)) == 2
    found = await world.relay.journal.get(operation.id)
    assert found is not None
    assert found.payment_id == PAYMENT_ID


async def test_several_charges_of_an_order_share_one_inquiry(world: InboxWorld) -> None:
    """What one of them is proved by is no proof of the other."""
    await world.charge(OutcomeKind.SUCCEEDED, payment_id=SECOND_ID, order_id="A-1")
    await world.open_checkout()
    world.payments.append(payment_of())
    await world.take(disguise(1))
    await world.take(body_of())

    assert kinds_of(world) == [PaymentsOfOrder]


async def test_made_up_subscriptions_cost_no_calls_of_their_own(world: InboxWorld) -> None:
    """Neither the subscription nor the payment is signed; from the second one on the list of all answers for all."""
    await world.open_checkout(CheckoutKind.RECURRING)
    world.payments.append(payment_of())
    world.clock.passed_ms += SCHEDULE_MS
    world.account.is_hidden = True
    for number in range(DISGUISES):
        made_up = str(420_099_000_000 + number)
        await world.take(disguise(number, message_type="AUTHORIZATION_SUCCESS", subscription_id=made_up))
    await world.take(installment(1, "AUTHORIZATION_SUCCESS"))
    world.account.is_hidden = False
    world.account.calls.clear()
    await world.later(PAUSES_MS[0])

    assert kinds_of(world) == [OneSubscription, AllSubscriptions, PaymentsOfSubscription]
    checkout = await world.checkout()
    assert (checkout.state, checkout.subscription_id) == (CheckoutState.COMPLETED, SUBSCRIPTION_ID)
    reasons = {each.reason for each in await world.all()}
    assert reasons == {NotificationReason.SUBSCRIPTION_NOTED, NotificationReason.NOT_SHOWN}


async def test_what_payrelay_knows_nothing_of_costs_no_call(world: InboxWorld) -> None:
    """One declined attempt gives a text that can be read as eight orders, each with a made-up subscription."""
    text = "319486510.00"
    for status in ("-2", "-1"):
        for border in range(1, 9):
            fields = {"subscription_id": f"4200990000{border:02}", "message_type": "RECURRING_INSTALLMENT_FAILED"}
            amount = text[border:]
            taken = await world.take(body_of(status, order_id=text[:border], payhere_amount=amount, **fields))
            assert taken.reason is NotificationReason.UNKNOWN_ORDER
    for pause_ms in PAUSES_MS:
        await world.later(pause_ms)

    assert world.account.calls == []


async def test_a_failure_of_a_known_subscription_is_looked_up(world: InboxWorld) -> None:
    """Its order may have been a checkout that is long gone; what is known of it goes on."""
    await world.open_checkout(CheckoutKind.RECURRING)
    world.payments.append(payment_of())
    await world.take(installment(1, "AUTHORIZATION_SUCCESS"))
    world.account.calls.clear()
    world.account.plans[SUBSCRIPTION_ID]["order_id"] = "A-2"
    await world.take(
        body_of("-2", order_id="A-2", subscription_id=SUBSCRIPTION_ID, message_type="RECURRING_INSTALLMENT_FAILED")
    )

    assert kinds_of(world) == [OneSubscription]


@pytest.mark.parametrize("amounts", [(), ("1000.00",), ("1000.00", "1001.00", "1002.00", "1003.00")])
async def test_a_paid_plan_is_found_at_its_end_though_strangers_flood_its_order(
    world: InboxWorld, amounts: tuple[str, ...]
) -> None:
    """Its notification is lost, and disguises of failed attempts of other amounts take every slot of the order."""
    await world.open_checkout(CheckoutKind.RECURRING)
    for number, (amount, status) in enumerate(product(amounts, ("-2", "-1"))):
        made_up = {"subscription_id": f"4200990000{number:02}", "payment_id": f"3299000000{number:02}"}
        failed = body_of(status, payhere_amount=amount, **made_up, message_type="RECURRING_INSTALLMENT_FAILED")
        await world.take(failed)
        await world.later(2_000)
    world.payments.append(payment_of(at_ms=world.clock.now_ms()))
    began = datetime.fromtimestamp(world.clock.now_ms() / 1000, ZoneInfo("Asia/Colombo"))
    shown = {"amount": 1000.0, "date": began.strftime("%Y-%m-%d %H:%M:%S"), "status": "ACTIVE"}
    world.account.plans[SUBSCRIPTION_ID] |= shown
    for _ in range(26 * 15):
        for _ in range(4):
            await world.later(60_000)
        await end_checkouts(world.relay)
        await world.finish()
        if not (await world.checkout()).is_open:
            break

    checkout = await world.checkout()
    assert (checkout.state, checkout.subscription_id) == (CheckoutState.COMPLETED, SUBSCRIPTION_ID)


async def test_a_text_of_an_amount_that_nothing_asked_for_is_no_occasion(world: InboxWorld) -> None:
    """A stranger has such texts for nothing; those of the order's own amounts are the customer's."""
    await world.open_checkout()
    for amount in ("1000.00", "1001.00", "1002.00"):
        await world.take(body_of("0", payhere_amount=amount, subscription_id="420099000001"))
    schedule = await world.relay.money.order_searches.get(MERCHANT, "A-1")

    assert schedule is not None
    assert schedule.occasions == ("pending 100000 LKR",)


async def test_many_subscriptions_of_an_order_take_turns(world: InboxWorld) -> None:
    """Each was begun on the gateway's page; one slot looks at a few of them, and the next one goes on."""
    await world.open_checkout(CheckoutKind.RECURRING)
    world.account.is_hidden = True
    plans = [str(420_075_044_400 + number) for number in range(SUBSCRIPTIONS_MAX + 2)]
    for number, plan in enumerate(plans):
        world.account.plans[plan] = {"subscription_id": int(plan), "order_id": "A-1", "currency": "LKR"}
        await world.take(disguise(number, message_type="AUTHORIZATION_SUCCESS", subscription_id=plan))
    world.account.is_hidden = False
    world.account.calls.clear()
    await world.later(PAUSES_MS[0])

    assert kinds_of(world).count(PaymentsOfSubscription) == SUBSCRIPTIONS_MAX
    assert all(each.state is NotificationState.WAITING for each in await world.all())


async def test_disguises_of_a_chargeback_take_one_slot(world: InboxWorld) -> None:
    """Its status is signed, and its payment isn't: each made-up number was searched for twice."""
    await world.open_checkout(CheckoutKind.RECURRING)
    world.payments += [payment_of(), payment_of(payment_id=SECOND_ID)]
    await world.take(installment(1, "AUTHORIZATION_SUCCESS"))
    world.clock.passed_ms += DAY_MS
    world.account.calls.clear()
    for number in range(DISGUISES):
        await world.take(disguise(number, "-3"))

    assert kinds_of(world) == [PaymentsOfOrder, PaymentsOfSubscription]


async def test_what_an_operator_replays_is_searched_for_at_once(world: InboxWorld) -> None:
    """The slots are hours apart by then; the operator has seen the payment in the gateway's portal."""
    await world.open_checkout()
    honest = await world.take(body_of())
    for pause_ms in PAUSES_MS[:7]:
        await world.later(pause_ms)
    world.payments.append(payment_of())
    world.clock.passed_ms += PAUSE_MS_MIN
    await replay(world.relay, honest.id)
    await world.later(0)

    assert (await world.checkout()).state is CheckoutState.COMPLETED


async def test_a_process_that_dies_between_search_and_result_leaves_all_due(world: InboxWorld) -> None:
    """The slot was taken and nothing came of it: another process searches again, once, when the lease ends."""
    await world.open_checkout()
    first = await ingest_notification(world.relay, "gateway", NO_HEADERS, body_of())
    world.payments.append(payment_of())
    world.steps.put("written", Raising(Crash()), first=world.steps.passed.count("written") + 2)
    await world.relay.background.finish(20)
    await world.restart()
    await world.take(disguise(1))
    await world.later(LEASE_MS)

    again = await world.inbox.get(first.id)
    assert again is not None
    assert again.state is NotificationState.APPLIED
    assert (await world.checkout()).state is CheckoutState.COMPLETED


async def test_a_store_that_fails_at_the_end_of_a_slot_costs_a_lease(world: InboxWorld) -> None:
    """What was proved is stored; the slot is free again when its lease ends."""
    await world.open_checkout()
    world.payments.append(payment_of())
    reach = world.steps.passed.count("write")
    await world.take(disguise(1))
    writes = world.steps.passed.count("write") - reach
    world.clock.passed_ms += DAY_MS
    world.steps.put("write", Raising(StoreUnavailable("down")), first=world.steps.passed.count("write") + writes)
    await world.take(disguise(2, "-2"))
    await world.later(DAY_MS)

    assert not any(each.state is NotificationState.RECEIVED for each in await world.all())


async def test_the_schedule_is_forgotten_when_it_has_ended(world: InboxWorld) -> None:
    """An order has a row for a day after its last search, and begins anew after that."""
    await world.open_checkout()
    await world.take(disguise(1))
    assert await forget_searches(world.relay) == 0
    world.clock.passed_ms += SCHEDULE_MS + 1
    assert await forget_searches(world.relay) == 1

    assert await world.relay.money.order_searches.get(MERCHANT, "A-1") is None


EVENTS = st.lists(
    st.tuples(
        st.sampled_from(["disguise", "honest", "failed", "look", "return", "charged back"]),
        st.sampled_from([0, 500, 2_000, 20_000, 600_000]),
    ),
    max_size=25,
)


async def live(events: list[tuple[str, int]]) -> None:
    """Lives through these events, with the worker working in between, and then lets four days pass."""
    with tempfile.TemporaryDirectory() as directory:
        async with inbox_world(Path(directory) / "payrelay.db") as world:
            await world.open_checkout()
            world.payments.append(payment_of())
            for number, (event, pause_ms) in enumerate(events):
                match event:
                    case "look" | "return":
                        occasion = RETURNED if event == "return" else None
                        await inquire(world.relay, await world.checkout(), occasion=occasion)
                    case "honest":
                        await world.take(body_of(custom_1=str(number)))
                    case _:
                        status = {"disguise": "2", "failed": "-2", "charged back": "-3"}[event]
                        await world.take(disguise(number, status))
                await world.later(pause_ms)
            for passed_ms in (*PAUSES_MS, *[6 * HOUR_MS] * 16):
                await world.later(passed_ms)

            calls = [at_ms for at_ms, _ in world.account.calls]
            assert all(after - before >= PAUSE_MS_MIN for before, after in pairwise(calls))
            assert len(calls) <= (len(PAUSES_MS) + 1) * 4 + 12, "four occasions, and four slots a day"
            assert not any(each.state in UNFINISHED for each in await world.all()), "something waits for ever"
            if any(event in {"honest", "disguise"} for event, _ in events):
                assert (await world.checkout()).state is CheckoutState.COMPLETED


@given(events=EVENTS)
@settings(max_examples=examples(25))
async def test_whatever_arrives_an_order_takes_one_search_a_slot(events: list[tuple[str, int]]) -> None:
    """Disguises, failures, chargebacks, customers who look and return: calls are bounded, and all of it ends."""
    await live(events)
