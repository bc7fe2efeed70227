"""Closing a page: from which states, what the answer says of forms that are out, and races with what else ends it."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import msgspec
import pytest
from tests.flows.checkouts.test_visit_checkout import came_back, visited
from tests.flows.hosted import LIFE_S, current, data_of, hosting, new, opened, seen, told
from tests.flows.world import Gate, World, asked
from tests.samples import ASKED

from payrelay.clock import Clock
from payrelay.core.access.credential import Bound
from payrelay.core.checkouts.checkout import LEFT_OPEN_MS, Checkout, CheckoutOutcome, CheckoutState, Details
from payrelay.core.checkouts.hosted_payment import CheckoutKind
from payrelay.core.checkouts.shown import Shown
from payrelay.core.outcomes import Evidence
from payrelay.core.payments.payment import NoObservation
from payrelay.errors import Code, Refusal
from payrelay.flows.checkouts.close_checkout import close_checkout
from payrelay.flows.checkouts.finish_checkout import (
    close,
    end_checkouts,
    expire,
    finish_by_notification,
    finish_checkout,
)
from payrelay.flows.checkouts.open_checkout import open_checkout
from payrelay.flows.checkouts.show_checkout import show_checkout
from payrelay.flows.checkouts.visit_checkout import visit_checkout
from payrelay.flows.checkouts.way_to_gateway import link_to_gateway, secret_hash_of
from payrelay.flows.relay import Relay
from payrelay.store.opening import open_database

OPEN, NOTIFIED, COMPLETED, FAILED, CANCELLED, EXPIRED = CheckoutState
CHANGED = new(amount_minor=120_000)
"""The same order with another cart."""


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.postgresql)])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Gives the address of each of the databases, empty."""
    if request.param == "postgresql":
        return str(request.getfixturevalue("postgresql_url"))
    return f"sqlite:///{tmp_path / 'payrelay.db'}"


@pytest.fixture
async def stored_world(url: str, tmp_path: Path) -> AsyncIterator[World]:
    """Gives a world over each of the databases."""
    database = await open_database(url, clock=Clock(), owner=True)
    world = World(database, tmp_path)
    yield world
    await world.relay.background.finish(0)
    await database.close()


def outcome(checkout: Checkout, state: CheckoutState) -> CheckoutOutcome:
    """A report on a checkout."""
    return CheckoutOutcome(
        account="gateway",
        merchant=checkout.merchant,
        order_id=checkout.order_id,
        outcome=state,
        payment_id="320025000001" if state is COMPLETED else None,
        amount_minor=checkout.amount_minor,
        currency=checkout.currency,
    )


async def brought_to(relay: Relay, checkout: Checkout, state: CheckoutState) -> None:
    """Brings an open checkout into a state; a cancelled one by the customer's browser."""
    if state is CANCELLED:
        await came_back(relay, checkout.id, is_cancelled=True)
    elif state is EXPIRED:
        await expire(relay, checkout)
    elif state is not OPEN:
        await finish_checkout(relay, checkout, outcome(checkout, state))


async def turns(number: int) -> None:
    """Lets the others go on for some turns of the loop, so that each race meets at another step."""
    for _ in range(number):
        await asyncio.sleep(0)


async def told_of(relay: Relay, checkout_id: str) -> dict[str, object]:
    """What a client is told that closes a checkout; for a refusal its code, and the checkout that it names."""
    try:
        return data_of(await close_checkout(relay, asked(relay), checkout_id))
    except Refusal as refusal:
        return {"code": refusal.code, "checkout_id": refusal.checkout_id}


async def unshown(relay: Relay, order_id: str = "A-1") -> Checkout:
    """A checkout that was stored, and whose form never left: the process died before its answer."""
    checkout = await opened(relay, new(order_id=f"{order_id}-before"))
    members = {
        "id": f"{checkout.id[:-1]}z",
        "order_id": order_id,
        "guard": order_id,
        "secret_hash": secret_hash_of("s"),
    }
    stored = msgspec.structs.replace(checkout, **members)
    details = Details(secret="s", asked=msgspec.structs.replace(ASKED, order_id=order_id))
    assert await relay.checkouts.add(stored, details)
    return stored


@pytest.mark.parametrize(
    ("before", "after", "reason", "events"),
    [
        (OPEN, CANCELLED, "closed", ["checkout.cancelled"]),
        (EXPIRED, EXPIRED, None, ["checkout.expired"]),
        (CANCELLED, CANCELLED, None, ["checkout.cancelled"]),
        (FAILED, FAILED, None, ["checkout.failed"]),
    ],
)
async def test_a_page_that_nobody_paid_is_closed(
    world: World, before: CheckoutState, after: CheckoutState, reason: str | None, events: list[str]
) -> None:
    """One that has ended stays what it is; and each time the order is free, and a repeat changes nothing."""
    relay = hosting(world)
    checkout = await opened(relay)
    await brought_to(relay, checkout, before)
    data = await told_of(relay, checkout.id)

    assert (data["id"], data["state"], data["reason"]) == (checkout.id, after, reason)
    assert data["may_still_be_paid"] is True
    assert await told_of(relay, checkout.id) == data
    assert await told(world) == events
    assert (await opened(relay, CHANGED, key="k-2")).state is OPEN


@pytest.mark.parametrize("before", [NOTIFIED, COMPLETED])
async def test_a_page_that_was_paid_or_held_is_not_closed(world: World, before: CheckoutState) -> None:
    """Whoever was told that it is closed would ask the customer for the money once more."""
    relay = hosting(world)
    kind = CheckoutKind.AUTHORIZATION if before is NOTIFIED else CheckoutKind.PAYMENT
    checkout = await opened(relay, new(kind=kind))
    await brought_to(relay, checkout, before)

    assert await told_of(relay, checkout.id) == {"code": Code.CONFLICT, "checkout_id": checkout.id}
    assert (await current(relay, checkout.id)).state is before


async def test_a_page_that_was_paid_a_moment_ago_is_not_closed(world: World) -> None:
    """No notification came yet, and a client has looked just before: the end of a page is worth a look of its own."""
    relay = hosting(world)
    checkout = await opened(relay)
    world.clock.passed_ms += 10_000
    await show_checkout(relay, asked(relay), checkout.id)
    world.clock.passed_ms += 2_000
    world.account.observations.append(seen())

    assert await told_of(relay, checkout.id) == {"code": Code.CONFLICT, "checkout_id": checkout.id}
    assert (await current(relay, checkout.id)).payment_id == "320025000001"


async def test_a_page_is_closed_while_the_gateway_can_not_be_asked(world: World) -> None:
    """A shop goes on selling; the answer doesn't say that the customer can't pay any more."""
    relay = hosting(world)
    checkout = await opened(relay)
    world.account.observations.append(NoObservation(code=Code.GATEWAY_UNREACHABLE, evidence=Evidence()))
    data = await told_of(relay, checkout.id)

    assert (data["state"], data["reason"], data["may_still_be_paid"]) == (CANCELLED, "closed", True)
    assert await told(world) == ["checkout.cancelled"]


async def test_a_look_that_ends_too_late_completes_what_was_closed(world: World) -> None:
    """The gateway answers after the client has its own answer."""
    relay = hosting(world)
    checkout = await opened(relay)
    world.account.observations.append(seen())
    world.steps.put("observe", gate := Gate())
    closing = asyncio.create_task(told_of(relay, checkout.id))
    await gate.reached.wait()
    data = await closing
    gate.opened.set()
    await relay.background.finish(5)

    assert (data["state"], data["may_still_be_paid"]) == (CANCELLED, True)
    assert (await current(relay, checkout.id)).state is COMPLETED


@pytest.mark.parametrize("kind", [CheckoutKind.PREAPPROVAL, CheckoutKind.AUTHORIZATION])
async def test_the_gateway_is_not_asked_for_what_it_does_not_show(world: World, kind: CheckoutKind) -> None:
    """The call would show nothing, and is missing elsewhere."""
    relay = hosting(world)
    checkout = await opened(relay, new(kind=kind))

    assert (await told_of(relay, checkout.id))["reason"] == "closed"
    assert world.steps.passed == []


async def test_a_page_of_which_nothing_is_out_can_not_be_paid(world: World) -> None:
    """A process died between the commit and the answer: neither the form nor the address of the page left."""
    relay = hosting(world)
    checkout = await unshown(relay)
    data = await told_of(relay, checkout.id)

    assert (data["state"], data["reason"], data["may_still_be_paid"]) == (CANCELLED, "closed", False)
    assert world.steps.passed == []


async def test_no_form_leaves_once_the_answer_said_that_none_is_out(world: World) -> None:
    """A request read the checkout while it was open, and comes to its form after another request has closed it."""
    relay = hosting(world)
    checkout = await unshown(relay)
    details = await relay.checkouts.details_of(checkout.id)
    assert details is not None
    assert (await told_of(relay, checkout.id))["may_still_be_paid"] is False

    assert await link_to_gateway(relay, checkout, details) is None


@pytest.mark.parametrize("turn", range(20))
async def test_a_customer_who_gets_the_form_beside_the_closing_may_still_pay(stored_world: World, turn: int) -> None:
    """Whichever of the two comes first, the answer is true."""
    relay = hosting(stored_world)
    checkout = await unshown(relay)

    async def visit() -> bool:
        await turns(turn)
        found = await visit_checkout(relay, "gateway", checkout.id, "s")
        return found is not None and found.link_to_gateway is not None

    has_form, data = await asyncio.gather(visit(), told_of(relay, checkout.id))

    assert data["may_still_be_paid"] or not has_form


@pytest.mark.parametrize("turn", range(12))
async def test_a_payment_is_lost_in_no_race(stored_world: World, turn: int) -> None:
    """The notification, the end of the page's time and the closing come at one moment: the payment wins in the end."""
    relay = hosting(stored_world)
    checkout = await opened(relay)
    stored_world.clock.passed_ms += LIFE_S * 1000 + LEFT_OPEN_MS

    async def notified() -> None:
        await turns(turn)
        await finish_by_notification(relay, outcome(checkout, COMPLETED))

    data, *_ = await asyncio.gather(told_of(relay, checkout.id), notified(), end_checkouts(relay))
    await relay.background.finish(5)
    stored = await current(relay, checkout.id)

    assert (stored.state, stored.payment_id) == (COMPLETED, "320025000001")
    assert data.get("state") == CANCELLED or data["code"] is Code.CONFLICT
    assert (await told(stored_world)).count("checkout.completed") == 1
    assert (data.get("state") == CANCELLED) == (stored.closed_at_ms is not None)


async def test_a_page_that_expires_beside_the_closing_is_closed(world: World) -> None:
    """The client is told what it asked for, although the worker was quicker by a moment."""
    relay = hosting(world)
    checkout = await opened(relay)
    await expire(relay, checkout)
    closed = await close(relay, checkout, looks_first=False)

    assert (closed.state, closed.reason, closed.guard) == (CANCELLED, "closed", None)


async def test_a_form_that_was_given_out_completes_its_page_however_late(world: World) -> None:
    """The cart was changed, and the customer pays the old page in another tab: nothing is lost."""
    relay = hosting(world)
    first = await opened(relay)
    await told_of(relay, first.id)
    second = await opened(relay, CHANGED, key="k-2")
    await finish_by_notification(relay, outcome(first, COMPLETED))

    data = data_of(await show_checkout(relay, asked(relay), first.id))
    assert (data["state"], data["reason"], data["may_still_be_paid"]) == (COMPLETED, None, False)
    assert (await visited(relay, second.id)).shown is Shown.ORDER_COMPLETED
    assert await told_of(relay, first.id) == {"code": Code.CONFLICT, "checkout_id": first.id}


async def test_a_closed_page_leads_nobody_on(world: World) -> None:
    """It says that it leads nowhere any more, and doesn't say that the customer turned back."""
    relay = hosting(world)
    checkout = await opened(relay, new(return_to="myshop://paid"))
    assert (await visited(relay, checkout.id)).shown is Shown.FORM
    await told_of(relay, checkout.id)
    page = await visited(relay, checkout.id)

    assert (page.shown, page.link_to_gateway, page.is_awaited) == (Shown.CLOSED, None, True)
    assert page.return_link == f"myshop://paid?checkout={checkout.id}&state=open"
    assert (await came_back(relay, checkout.id, is_cancelled=True)).leads_on


async def test_a_customer_of_another_order_closes_nothing(world: World) -> None:
    """Another principal and another customer get the answer for an unknown id."""
    relay = hosting(world)
    checkout = await opened(relay)
    for request in (
        asked(relay, principal="other"),
        asked(relay, bound=Bound(order_id="A-2")),
        asked(relay, bound=Bound(customer_id="cus_1")),
    ):
        with pytest.raises(Refusal, match="there is no such checkout") as refused:
            await close_checkout(relay, request, checkout.id)
        assert refused.value.code is Code.NOT_FOUND
    assert (await current(relay, checkout.id)).state is OPEN


async def test_an_app_closes_the_page_of_its_own_order(world: World) -> None:
    """It may open one, and changes the cart."""
    relay = hosting(world)
    checkout = await opened(relay)
    answer = await close_checkout(relay, asked(relay, bound=Bound(order_id="A-1")), checkout.id)

    assert data_of(answer)["reason"] == "closed"


@pytest.mark.parametrize("is_opened", [False, True])
async def test_a_changed_cart_waits_or_closes_the_page(world: World, *, is_opened: bool) -> None:
    """The answer says when the page ends, which it is, and how it is closed at once."""
    relay = hosting(world)
    checkout = await opened(relay, key="k-1")
    if is_opened:
        await visited(relay, checkout.id)
    world.clock.passed_ms += 60_500
    with pytest.raises(Refusal) as refused:
        await open_checkout(relay, asked(relay, "k-2"), CHANGED)

    assert (refused.value.code, refused.value.checkout_id) == (Code.IN_PROGRESS, checkout.id)
    assert refused.value.retry_after_s == LIFE_S - 60 + (LEFT_OPEN_MS // 1000 if is_opened else 0)
    assert refused.value.msg == (
        f"the order has the checkout {checkout.id} already, which is open: wait until it has ended, or close its page"
        f" with DELETE checkouts/{checkout.id}"
    )


async def test_a_page_that_is_over_and_can_not_be_looked_at_is_waited_for_in_seconds(world: World) -> None:
    """Its last inquiry goes on, and the worker makes others."""
    relay = hosting(world)
    checkout = await opened(relay, key="k-1")
    world.clock.passed_ms += LIFE_S * 1000
    world.account.observations.append(NoObservation(code=Code.GATEWAY_UNREACHABLE, evidence=Evidence()))
    with pytest.raises(Refusal) as refused:
        await open_checkout(relay, asked(relay, "k-2"), CHANGED)

    assert (refused.value.code, refused.value.retry_after_s) == (Code.IN_PROGRESS, 5)
    assert (await current(relay, checkout.id)).state is OPEN


async def test_another_customers_page_is_not_named(world: World) -> None:
    """An app learns that a page of its order is open and when to come again, and neither which nor how to close it."""
    relay = hosting(world)
    await opened(relay, new(customer_reference="user-1"), key="k-1")
    bound = Bound(order_id="A-1", reference="user-2", keys_of="person/user-2")
    with pytest.raises(Refusal) as refused:
        await open_checkout(relay, asked(relay, "k-2", bound=bound), new())

    assert (refused.value.code, refused.value.checkout_id) == (Code.IN_PROGRESS, None)
    assert "chk_" not in refused.value.msg
