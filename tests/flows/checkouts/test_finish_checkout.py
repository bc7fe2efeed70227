import asyncio
import itertools
from collections.abc import Sequence

import msgspec
import pytest
from tests.flows.hosted import LIFE_S, current, hosting, new, opened, seen, told
from tests.flows.world import CHARGE, Gate, Raising, World, asked

from payrelay.core.checkouts.checkout import LEFT_OPEN_MS, Checkout, CheckoutOutcome, CheckoutState
from payrelay.core.checkouts.hosted_payment import CheckoutKind
from payrelay.core.outcomes import Evidence
from payrelay.core.payments.payment import NoObservation
from payrelay.errors import Code, StoreUnavailable
from payrelay.flows.checkouts.finish_checkout import (
    FORGOTTEN_AFTER_MS,
    LEASE_MS,
    end_checkouts,
    end_overdue,
    finish_by_notification,
    finish_checkout,
    forget_checkouts,
    inquire,
    note_abandoned,
)
from payrelay.flows.payments.charge import charge

MERCHANT = "0123456789abcdef"
PAID = CheckoutOutcome(
    account="gateway",
    merchant=MERCHANT,
    order_id="A-1",
    outcome=CheckoutState.COMPLETED,
    payment_id="320025000001",
    amount_minor=100_000,
    currency="LKR",
)
FAILED = msgspec.structs.replace(PAID, outcome=CheckoutState.FAILED)
CANCELLED = msgspec.structs.replace(PAID, outcome=CheckoutState.CANCELLED)
APPROVED = msgspec.structs.replace(PAID, customer_id="cus_1")


async def test_a_notification_completes_the_checkout_of_its_order(world: World) -> None:
    """The change and its event are stored in one transaction."""
    relay = hosting(world)
    checkout = await opened(relay)
    done = await finish_by_notification(relay, PAID)

    assert done == await current(relay, checkout.id)
    assert done is not None
    assert (done.state, done.payment_id) == (CheckoutState.COMPLETED, "320025000001")
    assert await told(world) == ["checkout.completed"]


async def test_a_notification_of_an_order_without_checkout_changes_none(world: World) -> None:
    """They may be of a charge."""
    relay = hosting(world)
    await opened(relay)

    assert await finish_by_notification(relay, msgspec.structs.replace(PAID, order_id="A-2")) is None
    assert await finish_by_notification(relay, msgspec.structs.replace(PAID, merchant="f" * 16)) is None


@pytest.mark.parametrize("change", [{"amount_minor": 99_999}, {"currency": "USD"}])
async def test_other_money_completes_nothing(world: World, change: dict[str, object]) -> None:
    """A customer who changes the form pays something else."""
    relay = hosting(world)
    checkout = await opened(relay)

    assert await finish_by_notification(relay, msgspec.structs.replace(PAID, **change)) == checkout
    assert await told(world) == []


@pytest.mark.parametrize("content", list(itertools.permutations((PAID, FAILED, CANCELLED, APPROVED))))
async def test_notifications_in_any_order_give_one_outcome(world: World, content: Sequence[CheckoutOutcome]) -> None:
    """Notifications come late, twice and in any order."""
    relay = hosting(world)
    checkout = await opened(relay)
    for each in content:
        await finish_by_notification(relay, each)
    done = await current(relay, checkout.id)

    assert (done.state, done.payment_id, done.customer_id) == (CheckoutState.COMPLETED, "320025000001", "cus_1")
    assert (await told(world)).count("checkout.completed") == 1


async def test_of_two_checkouts_of_an_order_it_is_the_one_that_fits(world: World) -> None:
    """The first was cancelled, the second asks for another amount, and the first is paid after all."""
    relay = hosting(world)
    first = await opened(relay)
    await note_abandoned(relay, first)
    second = await opened(relay, new(amount_minor=500))
    await finish_by_notification(relay, PAID)

    assert (await current(relay, first.id)).state is CheckoutState.COMPLETED
    assert (await current(relay, second.id)).state is CheckoutState.OPEN


async def test_what_is_proved_of_a_checkout_is_no_other_ones(world: World) -> None:
    """During the inquiry another checkout was opened for the order, which holds it now and would fit too."""
    relay = hosting(world)
    first = await opened(relay)
    first = await note_abandoned(relay, first)
    second = await opened(relay)
    done = await finish_checkout(relay, first, PAID)

    assert (done.id, done.state) == (first.id, CheckoutState.COMPLETED)
    assert (await current(relay, second.id)).state is CheckoutState.OPEN


async def test_a_repeated_notification_goes_to_the_checkout_of_its_payment(world: World) -> None:
    """Not to another checkout of equal amount that holds the order by now."""
    relay = hosting(world)
    first = await opened(relay)
    await note_abandoned(relay, first)
    second = await opened(relay)
    await finish_by_notification(relay, msgspec.structs.replace(PAID, payment_id="320025000002"))
    third = await finish_by_notification(relay, msgspec.structs.replace(PAID, payment_id="320025000002"))

    assert third is not None
    assert third.id == second.id
    assert (await current(relay, first.id)).state is CheckoutState.CANCELLED


async def test_a_second_payment_of_one_page_is_told(world: World) -> None:
    """The customer paid twice, which nothing here can undo. A repeat of the notification tells nothing more."""
    relay = hosting(world)
    checkout = await opened(relay)
    await finish_by_notification(relay, PAID)
    for _ in range(2):
        await finish_by_notification(relay, msgspec.structs.replace(PAID, payment_id="320025000002"))

    assert await told(world) == ["checkout.completed", "order.paid_again"]
    assert (await current(relay, checkout.id)).payment_id == "320025000001"


async def test_an_order_that_is_paid_in_two_checkouts_is_paid_again(world: World) -> None:
    """The customer cancelled, began anew, and then paid on both pages."""
    relay = hosting(world)
    first = await opened(relay)
    await note_abandoned(relay, first)
    await opened(relay, new(amount_minor=500))
    await finish_by_notification(relay, PAID)
    assert "order.paid_again" not in await told(world)
    await finish_by_notification(relay, msgspec.structs.replace(PAID, payment_id="320025000002", amount_minor=500))

    assert (await told(world)).count("order.paid_again") == 1


async def test_installments_are_many_payments_of_one_order(world: World) -> None:
    """No alarm each month."""
    relay = hosting(world)
    await opened(relay, new(kind=CheckoutKind.RECURRING))
    await finish_by_notification(relay, PAID)
    await finish_by_notification(relay, msgspec.structs.replace(PAID, payment_id="320025000002"))

    assert "order.paid_again" not in await told(world)


async def test_many_notifications_at_once_make_one_event(world: World) -> None:
    """However many processes take them up."""
    relay = hosting(world)
    await opened(relay)
    await asyncio.gather(*(finish_by_notification(relay, PAID) for _ in range(5)))

    assert await told(world) == ["checkout.completed"]


async def later(world: World, checkout: Checkout, ms: int = 3_000) -> Checkout:
    """The same checkout after a while."""
    world.clock.passed_ms += ms
    return checkout


async def test_a_payment_that_the_gateway_shows_completes(world: World) -> None:
    """Its notification may have been lost."""
    relay = hosting(world)
    checkout = await later(world, await opened(relay))
    world.account.observations.append(seen())
    done = await inquire(relay, checkout)

    assert (done.state, done.payment_id) == (CheckoutState.COMPLETED, "320025000001")
    assert await told(world) == ["checkout.completed"]


@pytest.mark.parametrize(
    "members",
    [
        {"amount_minor": 99_999},
        {"currency": "USD"},
        {"status": "REFUNDED"},
        {"order_id": "A-2"},
        {"at_ms": None},
        {"at_ms": 1_700_000_000_000 - 300_001},
    ],
)
async def test_any_other_payment_does_not(world: World, members: dict[str, object]) -> None:
    """Of another amount, given back, of another order, or from before anybody was asked."""
    relay = hosting(world)
    checkout = await later(world, await opened(relay))
    world.account.observations.append(seen(**members))

    assert (await inquire(relay, checkout)).state is CheckoutState.OPEN
    assert await told(world) == []


async def test_an_inquiry_without_an_observation_changes_nothing(world: World) -> None:
    """An error is no observation."""
    relay = hosting(world)
    checkout = await later(world, await opened(relay))
    world.account.observations.append(NoObservation(code=Code.GATEWAY_BUSY, evidence=Evidence()))

    assert await inquire(relay, checkout) == checkout


async def test_an_inquiry_that_fails_is_only_logged(world: World) -> None:
    """Who asks gets what we know."""
    relay = hosting(world)
    checkout = await later(world, await opened(relay))
    world.steps.put("observe", Raising(StoreUnavailable("busy")))

    assert await inquire(relay, checkout) == checkout
    assert "checkout_inquiry_failed" in world.log_events


async def test_a_request_soon_after_another_makes_no_second_inquiry(world: World) -> None:
    """A page that refreshes itself must not use up the gateway's budget."""
    relay = hosting(world)
    checkout = await opened(relay)
    await inquire(relay, checkout)
    assert world.steps.passed == []
    await later(world, checkout)
    await inquire(relay, checkout)
    await inquire(relay, await current(relay, checkout.id))
    await inquire(relay, checkout)

    assert world.steps.passed == ["observe"]


async def test_a_name_that_leads_elsewhere_by_now_is_not_asked(world: World) -> None:
    """The orders of another merchant prove nothing."""
    relay = hosting(world)
    checkout = await later(world, await opened(relay))
    world.account.merchant = "f" * 16

    assert await inquire(relay, checkout) == checkout
    assert world.steps.passed == []


async def test_a_charge_of_the_same_order_that_is_open_keeps_the_payment(world: World) -> None:
    """What is seen may be its. The customer turned back from the page, and the shop charges a card in its place."""
    relay = hosting(world)
    checkout = await later(world, await note_abandoned(relay, await opened(relay)))
    world.steps.put("effect", gate := Gate())
    from_charge = asyncio.create_task(charge_tea(world))
    await gate.reached.wait()
    world.account.observations.append(seen())

    assert (await inquire(relay, checkout)).state is CheckoutState.CANCELLED
    gate.opened.set()
    await from_charge


async def charge_tea(world: World) -> None:
    """Charges for the same order."""
    await charge(world.relay, asked(world.relay, "k-9"), CHARGE)


async def test_another_checkout_of_the_order_that_is_open_keeps_the_payment(world: World) -> None:
    """A customer cancelled, and pays on the next page: the payment completes one of the two checkouts, not both."""
    relay = hosting(world)
    first = await note_abandoned(relay, await opened(relay))
    await opened(relay)
    world.clock.passed_ms += 10_000
    world.account.observations.append(seen())

    assert (await inquire(relay, first)).state is CheckoutState.CANCELLED


async def test_a_checkout_without_a_notification_expires(world: World) -> None:
    """And makes an event. The gateway, whose search shows payments only, is not asked about an authorization."""
    relay = hosting(world)
    checkout = await opened(relay, new(kind=CheckoutKind.AUTHORIZATION))
    world.clock.passed_ms += LIFE_S * 1000 - 1
    assert await end_checkouts(relay) == 0
    world.clock.passed_ms += 1
    assert await end_checkouts(relay) == 1
    await relay.background.finish(1)

    assert (await current(relay, checkout.id)).state is CheckoutState.EXPIRED
    assert await told(world) == ["checkout.expired"]
    assert world.steps.passed == []


async def test_a_checkout_whose_page_was_never_shown_is_inquired_about_before_it_ends(world: World) -> None:
    """An app may have posted the form by itself: Payrelay doesn't see that, and the customer may have paid."""
    relay = hosting(world)
    checkout = await opened(relay)
    world.clock.passed_ms += LIFE_S * 1000
    world.account.observations.append(seen())
    await end_checkouts(relay)
    await relay.background.finish(1)

    assert (await current(relay, checkout.id)).state is CheckoutState.COMPLETED


async def test_requests_for_an_overdue_checkout_make_one_inquiry(world: World) -> None:
    """A page that is reloaded all the time, while the gateway can't be asked, must not use up its budget."""
    relay = hosting(world)
    checkout = await opened(relay)
    world.clock.passed_ms += LIFE_S * 1000
    world.account.observations.append(NoObservation(code=Code.GATEWAY_UNREACHABLE, evidence=Evidence()))
    for _ in range(5):
        assert (await end_overdue(relay, checkout)).state is CheckoutState.OPEN

    assert not world.account.observations


async def test_a_stopping_process_ends_no_checkout_without_an_inquiry(world: World) -> None:
    """Its last request must not free an order that is paid; the next process inquires."""
    relay = hosting(world)
    checkout = await opened(relay)
    world.clock.passed_ms += LIFE_S * 1000
    relay.background.leave()
    ended = await end_overdue(relay, checkout)

    assert ended.state is CheckoutState.OPEN
    assert (await current(relay, checkout.id)).state is CheckoutState.OPEN


async def test_an_opened_checkout_is_inquired_about_before_it_ends(world: World) -> None:
    """The customer may have paid, and our notification been lost."""
    relay = hosting(world)
    checkout = await opened(relay)
    await relay.checkouts.mark_opened(checkout.id, world.clock.now_ms(), left_open_ms=LEFT_OPEN_MS)
    world.clock.passed_ms += LIFE_S * 1000
    assert await end_checkouts(relay) == 0
    world.clock.passed_ms += LEFT_OPEN_MS
    world.account.observations.append(seen())
    await end_checkouts(relay)
    await relay.background.finish(1)

    assert (await current(relay, checkout.id)).state is CheckoutState.COMPLETED


async def test_an_end_that_fails_comes_again(world: World) -> None:
    """Nothing is left open for ever."""
    relay = hosting(world)
    checkout = await opened(relay)
    await relay.checkouts.mark_opened(checkout.id, world.clock.now_ms(), left_open_ms=0)
    world.clock.passed_ms += LIFE_S * 1000
    world.steps.put("observe", Raising(StoreUnavailable("busy")))
    for _ in range(2):
        await end_checkouts(relay)
        await relay.background.finish(1)
        world.clock.passed_ms += LEASE_MS

    assert "checkout_not_ended" in world.log_events
    assert (await current(relay, checkout.id)).state is CheckoutState.EXPIRED


async def test_no_checkout_ends_without_an_inquiry_while_the_gateway_is_down(world: World) -> None:
    """The customer may have paid; after a day without an answer it ends all the same."""
    relay = hosting(world)
    checkout = await opened(relay)
    await relay.checkouts.mark_opened(checkout.id, world.clock.now_ms(), left_open_ms=0)
    world.clock.passed_ms += LIFE_S * 1000
    states = []
    for passed_ms in (LEASE_MS, 24 * 3_600_000, 0):
        world.account.observations.append(NoObservation(code=Code.GATEWAY_UNREACHABLE, evidence=Evidence()))
        await end_checkouts(relay)
        await relay.background.finish(1)
        states.append((await current(relay, checkout.id)).state)
        world.clock.passed_ms += passed_ms

    assert states == [CheckoutState.OPEN, CheckoutState.OPEN, CheckoutState.EXPIRED]


async def test_a_customers_data_is_forgotten_after_a_while(world: World) -> None:
    """It is needed no more."""
    relay = hosting(world)
    checkout = await opened(relay)
    await finish_by_notification(relay, PAID)
    world.clock.passed_ms += FORGOTTEN_AFTER_MS
    assert await forget_checkouts(relay) == 0
    world.clock.passed_ms += 1
    assert await forget_checkouts(relay) == 1

    assert await relay.checkouts.details_of(checkout.id) is None
