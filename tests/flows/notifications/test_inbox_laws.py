"""Any order and any number of notifications come to the same end; and a process may die between any two steps."""

import asyncio
import contextlib
import tempfile
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.draws import examples
from tests.flows.inbox_world import (
    AMOUNT_MINOR,
    AUTHORIZATION_TOKEN,
    MERCHANT,
    PAYMENT_ID,
    SUBSCRIPTION_ID,
    TOKEN,
    InboxWorld,
    body_of,
    inbox_world,
    payment_of,
)
from tests.flows.notifications.test_apply_notification import HOLD
from tests.flows.notifications.test_apply_plans import installment
from tests.flows.world import Crash, Raising, asked, outcome_of

from payrelay.core.calls import Capture
from payrelay.core.checkouts.checkout import CheckoutKind
from payrelay.core.notifications.notification import UNFINISHED
from payrelay.core.outcomes import OutcomeKind
from payrelay.errors import Refusal, StoreUnavailable
from payrelay.flows.notifications.ingest import ingest_notification
from payrelay.flows.payments.capture import capture
from payrelay.gateways.gateway import NO_HEADERS

PAID = [
    body_of(),
    body_of("-2", payment_id="320025000009"),
    body_of("-1", payment_id=None),
    body_of("0"),
    body_of(custom_1="replayed", payment_id="320025000007"),
    body_of("-3"),
    body_of(secret="forged"),
]
APPROVED = [
    body_of(payhere_amount="10.00", customer_token=TOKEN),
    body_of("-2", payhere_amount="10.00", payment_id=None),
    body_of(payhere_amount="10.00", customer_token=TOKEN, custom_1="again"),
]
AUTHORIZED = [
    body_of("3", payment_id=None, authorization_token=AUTHORIZATION_TOKEN),
    body_of("3", payment_id=PAYMENT_ID, authorization_token=AUTHORIZATION_TOKEN),
    body_of("0", payment_id=None),
]
SUBSCRIBED = [
    installment(1, "AUTHORIZATION_SUCCESS"),
    installment(2, "RECURRING_INSTALLMENT_FAILED", "-2"),
    installment(3),
    installment(4, "RECURRING_INSTALLMENT_FAILED", "-2"),
    installment(5, "RECURRING_STOPPED", "-2"),
]
STORIES = {"paid": PAID, "approved": APPROVED, "held": AUTHORIZED, "captured": AUTHORIZED, "subscribed": SUBSCRIBED}


async def prepare(world: InboxWorld, story: str) -> None:
    """Brings about what the notifications of a story are about."""
    world.payments += [payment_of(payment_id=f"32002500000{number}") for number in (1, 3)]
    match story:
        case "paid":
            del world.payments[1:]
            await world.open_checkout()
        case "approved":
            await world.open_checkout(CheckoutKind.PREAPPROVAL, amount_minor=None, first_minor=None)
        case "held":
            await world.charge(OutcomeKind.UNKNOWN, HOLD)
        case "captured":  # by its token, before the notification of it came
            await world.open_checkout(CheckoutKind.AUTHORIZATION)
            world.account.script.append(outcome_of(OutcomeKind.SUCCEEDED, order_id="A-1", currency="LKR"))
            call = Capture(authorization_token=AUTHORIZATION_TOKEN, amount_minor=AMOUNT_MINOR, description="Tea")
            await capture(world.relay, asked(world.relay), call)
        case "subscribed":
            await world.open_checkout(CheckoutKind.RECURRING)


async def settle_down(world: InboxWorld) -> None:
    """Lets days pass, so that whatever waits comes to its end."""
    for passed_ms in (5_000, 60_000, 600_000, *[21_600_000] * 14):
        await world.later(passed_ms)


async def end_of(world: InboxWorld) -> object:
    """Gives all that can be seen at the end, but for ids of ours and moments."""
    checkouts = [
        (each.state, each.payment_id, each.subscription_id, each.customer_id is not None)
        for each in await world.checkouts.of_order(MERCHANT, "A-1")
    ]
    operations = [(each.state, each.payment_id, each.result_ref) for each in await world.world.operations()]
    customers = [(each.state, each.card_no_masked) for each in await world.all_customers()]
    standing = await world.subscriptions.summary(MERCHANT, SUBSCRIPTION_ID)
    known = None
    if standing is not None:
        known = (
            standing.subscription.state,
            standing.subscription.next_on,
            standing.paid,
            standing.last_paid and standing.last_paid.payment_id,
            standing.last_failure and standing.last_failure.payment_id,
        )
    chargeback = await world.chargebacks.of_payment(MERCHANT, PAYMENT_ID)
    events = Counter(kind for kind in await world.event_types() if not is_passing(kind))
    notifications = sorted((each.digest, each.state) for each in await world.all())
    assert not any(state in UNFINISHED for _, state in notifications), "something waits for ever"
    return checkouts, operations, customers, known, chargeback is not None, events, notifications


def is_passing(kind: str) -> bool:
    """True for events of intermediate states, of which there are as many as were passed through."""
    return kind in {"subscription.updated", "checkout.failed", "checkout.cancelled", "customer.updated"}


async def take(world: InboxWorld, body: bytes) -> None:
    """Delivers a body as a gateway does that ignores the answer."""
    with contextlib.suppress(Refusal):
        await ingest_notification(world.relay, "gateway", NO_HEADERS, body)
    await world.finish()


async def live(story: str, bodies: list[bytes], url: str | None = None) -> object:
    """Gives the end of one life in which these bodies come in this order."""
    with tempfile.TemporaryDirectory() as directory:
        async with inbox_world(Path(directory) / "payrelay.db", url) as world:
            await prepare(world, story)
            for body in bodies:
                await take(world, body)
            await settle_down(world)
            return await end_of(world)


@pytest.mark.parametrize("story", STORIES)
def test_any_order_and_number_comes_to_the_same_end(story: str) -> None:
    """A network delays, doubles and reorders; what a shop and its books see in the end must not hang on that."""
    bodies = STORIES[story]
    expected = asyncio.run(live(story, bodies))

    @given(
        order=st.permutations(bodies),
        again=st.lists(st.tuples(st.sampled_from(bodies), st.integers(0, 20)), max_size=4),
    )
    @settings(max_examples=examples(12))
    def holds(order: list[bytes], again: list[tuple[bytes, int]]) -> None:
        arriving = list(order)
        for body, place in again:
            arriving.insert(min(place, len(arriving)), body)
        assert asyncio.run(live(story, arriving)) == expected

    holds()


@pytest.mark.postgresql
@pytest.mark.parametrize("story", STORIES)
def test_both_databases_come_to_the_same_end(story: str, postgresql_url: str) -> None:
    """The statements are written twice here and there; what follows from a notification is one thing."""
    bodies = [*STORIES[story], *reversed(STORIES[story])]

    assert asyncio.run(live(story, bodies, postgresql_url)) == asyncio.run(live(story, bodies))


async def steps_of(story: str) -> int:
    """Counts the writes of a story."""
    with tempfile.TemporaryDirectory() as directory:
        async with inbox_world(Path(directory) / "payrelay.db") as world:
            await prepare(world, story)
            before = world.steps.passed.count("write")
            await take(world, STORIES[story][0])
            return world.steps.passed.count("write") - before


async def die(story: str, step: str, number: int) -> object:
    """Dies at a step while the first notification is worked on, starts again, and gives the end."""
    with tempfile.TemporaryDirectory() as directory:
        async with inbox_world(Path(directory) / "payrelay.db") as world:
            await prepare(world, story)
            world.steps.put(step, Raising(Crash()), first=world.steps.passed.count(step) + number)
            with contextlib.suppress(Crash):
                await ingest_notification(world.relay, "gateway", NO_HEADERS, STORIES[story][0])
            await world.relay.background.finish(20)
            await world.restart()
            if not await world.all():  # it was never said to be taken: the gateway sends it again
                await take(world, STORIES[story][0])
            await settle_down(world)
            return await end_of(world)


@pytest.mark.parametrize("story", STORIES)
@pytest.mark.parametrize("step", ["write", "written"])
def test_the_process_may_die_between_any_two_steps(story: str, step: str) -> None:
    """Whatever was on disk by then, nothing is lost and nothing happens twice: customer, event, money."""
    expected = asyncio.run(live(story, STORIES[story][:1]))
    writes = asyncio.run(steps_of(story))

    assert writes > 1
    for number in range(1, writes + 1):
        assert asyncio.run(die(story, step, number)) == expected, f"{step} {number} of {writes}"


async def fail(story: str, number: int) -> object:
    """Has the store fail at a step while the first notification is worked on, and gives the end."""
    with tempfile.TemporaryDirectory() as directory:
        async with inbox_world(Path(directory) / "payrelay.db") as world:
            await prepare(world, story)
            fault = Raising(StoreUnavailable("down"))
            world.steps.put("write", fault, first=world.steps.passed.count("write") + number)
            try:
                await take(world, STORIES[story][0])
            except StoreUnavailable:
                await take(world, STORIES[story][0])
            await settle_down(world)
            return await end_of(world)


@pytest.mark.parametrize("story", STORIES)
def test_the_store_may_fail_at_any_step(story: str) -> None:
    """A database that was away for a moment must cost a delay and nothing else."""
    expected = asyncio.run(live(story, STORIES[story][:1]))
    for number in range(1, asyncio.run(steps_of(story)) + 1):
        assert asyncio.run(fail(story, number)) == expected, f"write {number}"
