"""Notifications as the simulated gateway sends them, with all its misbehaviours, followed to what they lead to."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeVar
from urllib.parse import urlsplit

import aiohttp
import pytest
from tests.scenarios.http_client import Client
from tests.scenarios.program import Program, free_port, simulated_account
from tests.scenarios.stories import charge_body, fresh
from tests.scenarios.test_notifications import CUSTOMER, listed

import payrelay_simulator
from payrelay_simulator import Match, NotificationArguments, NotificationRule, Payer, Rule, Running

T = TypeVar("T")

PATIENCE_S = 20.0
POOR_VISA = "4024007194349121"
Page = Literal["checkout", "preapprove", "authorize"]
PAGES: dict[str, Page] = {
    "payment": "checkout",
    "recurring": "checkout",
    "preapproval": "preapprove",
    "authorization": "authorize",
}


@dataclass(frozen=True, kw_only=True)
class Scene:
    """The service, and the gateway behind it in the test's own loop."""

    program: Program
    gateway: Running
    client: Client

    async def get(self, path: str) -> dict[str, Any]:
        """Reads something of one's own."""
        reply = await asyncio.to_thread(self.client.get, path)
        data = reply.json["data"]
        assert isinstance(data, dict), str(reply)
        return data

    async def opened(self, kind: str = "payment", **members: object) -> dict[str, Any]:
        """Opens a checkout."""
        body = {
            "type": kind,
            "order_id": fresh("order"),
            "items": "Door bell",
            "currency": "LKR",
            "customer": CUSTOMER,
            **({} if kind == "preapproval" else {"amount": 1000}),
            **members,
        }
        reply = await asyncio.to_thread(self.client.post, "checkouts", body)
        assert reply.status == 200, str(reply)
        data = reply.json["data"]
        assert isinstance(data, dict)
        return data

    def pay(self, checkout: dict[str, Any], *numbers: str) -> None:
        """Goes to the gateway's page with the form, and tries cards there until one pays."""
        payer = Payer(self.gateway.simulator.world)
        visit = payer.enter(PAGES[checkout["kind"]], checkout["form"]["fields"])
        for number in (*numbers, "4916217501611292"):
            visit = payer.pay(visit, number)

    def misbehave(self, fault: str, **arguments: Any) -> None:  # noqa: ANN401, of any argument
        """Has the next notification go wrong."""
        rule = NotificationRule(fault=fault, args=NotificationArguments(**arguments))
        self.gateway.simulator.world.notifications.faults.add_rules(rule)

    async def finished(self, checkout: dict[str, Any], state: str = "completed") -> dict[str, Any]:
        """Waits until a checkout has come to a state."""
        return await until(lambda: self.get(f"checkouts/{checkout['id']}"), lambda data: data["state"] == state)

    async def notifications(self, *, at_least: int = 1) -> list[dict[str, Any]]:
        """Waits until so many came, and all of them have come to an end."""

        async def read() -> list[dict[str, Any]]:
            return await asyncio.to_thread(listed, self.program)

        def have_ended(rows: list[dict[str, Any]]) -> bool:
            return len(rows) >= at_least and not any(row["state"] in {"received", "waiting"} for row in rows)

        return await until(read, have_ended)


async def until(read: Callable[[], Awaitable[T]], is_so: Callable[[T], bool]) -> T:
    """Reads again and again until it is so."""
    end_s = asyncio.get_running_loop().time() + PATIENCE_S
    found = await read()
    while not is_so(found):
        assert asyncio.get_running_loop().time() < end_s, found
        await asyncio.sleep(0.05)
        found = await read()
    return found


@asynccontextmanager
async def paying_scene(folder: Path) -> AsyncIterator[Scene]:
    """Starts the program as an operator does, with a gateway of its own that can reach it."""
    simulator = payrelay_simulator.Simulator()
    async with payrelay_simulator.serve(simulator) as running:
        port = free_port()
        settings = simulated_account(running.base_url, simulator.merchant)
        program = Program(folder, settings | {"PAYRELAY_PUBLIC_URL": f"http://127.0.0.1:{port}"})
        key = await asyncio.to_thread(program.new_key, "shop")
        await asyncio.to_thread(program.start, port)
        yield Scene(program=program, gateway=running, client=program.client(key))
        await asyncio.to_thread(program.kill)


@pytest.fixture
async def scene(tmp_path: Path) -> AsyncIterator[Scene]:
    """Gives each test a service and a gateway of its own."""
    async with paying_scene(tmp_path) as scene:
        yield scene


async def test_an_approved_card_is_charged_by_its_handle(scene: Scene) -> None:
    """The whole way from the gateway's page to a charge that its own ledger has."""
    checkout = await scene.opened("preapproval")
    scene.pay(checkout, POOR_VISA)
    done = await scene.finished(checkout)
    body = charge_body(customer_token=done["customer_id"])
    reply = await asyncio.to_thread(scene.client.charge, body, key=fresh("key"))

    assert reply.status == 200, str(reply)
    assert [entry.kind for entry in scene.gateway.simulator.ledger() if entry.order_id == body["order_id"]] == [
        "charge"
    ]
    assert {row["state"] for row in await scene.notifications(at_least=2)} == {"applied"}


async def test_a_changed_cart_gets_a_new_page_and_the_old_form_still_counts(scene: Scene) -> None:
    """The customer changes the cart, and then pays the form in the other tab: nothing is lost, and the shop is told."""
    first = await scene.opened()
    changed = {"order_id": first["order_id"], "amount": 1200}
    body = {"type": "payment", "items": "Two door bells", "currency": "LKR", "customer": CUSTOMER, **changed}
    early = await asyncio.to_thread(scene.client.post, "checkouts", body)
    assert (early.status, early.json["error"]["code"], early.json["error"]["retry"]) == (409, "in_progress", "after")
    assert early.json["error"]["checkout_id"] == first["id"]
    assert 0 < int(early.header("retry-after") or 0) <= 1_800

    closed = [await asyncio.to_thread(scene.client.delete, f"checkouts/{first['id']}") for _ in range(2)]
    assert closed[0].json["data"] == closed[1].json["data"]
    told = {name: closed[0].json["data"][name] for name in ("state", "reason", "may_still_be_paid")}
    assert told == {"state": "cancelled", "reason": "closed", "may_still_be_paid": True}
    second = await scene.opened(**changed)
    page = await asyncio.to_thread(scene.client.send, "GET", urlsplit(first["url"]).path)
    assert (page.status, b"<form" in page.body) == (410, False)

    scene.pay(first)
    assert (await scene.finished(first))["amount"] == 1000
    refused = await asyncio.to_thread(scene.client.delete, f"checkouts/{first['id']}")
    assert (refused.status, refused.json["error"]["code"]) == (409, "conflict")
    assert (await scene.get(f"checkouts/{second['id']}"))["state"] == "open"
    paid = [entry.amount_cents for entry in scene.gateway.simulator.ledger() if entry.order_id == first["order_id"]]
    assert paid == [100_000]

    async def told_of_first() -> list[tuple[str, str | None]]:
        events = (await scene.get("events"))["events"]
        return [(e["type"], e["data"]["reason"]) for e in events if e["data"].get("checkout_id") == first["id"]]

    assert await until(told_of_first, lambda told: len(told) > 1) == [
        ("checkout.cancelled", "closed"),
        ("checkout.completed", None),
    ]


async def test_a_hold_is_captured_by_its_checkout(scene: Scene) -> None:
    """The app never sees the gateway's token, and doesn't need it. Only the capture's reply proves what was held."""
    checkout = await scene.opened("authorization")
    scene.pay(checkout)
    notified = await scene.finished(checkout, "notified")
    assert "Capture it before you hand anything over" in notified["explanation"]
    body = {"authorization_token": checkout["id"], "amount": 800, "description": "without the bell"}
    reply = await asyncio.to_thread(scene.client.post, "payments/capture", body, key=fresh("key"))

    assert reply.status == 200, str(reply)
    entries = [entry for entry in scene.gateway.simulator.ledger() if entry.order_id == checkout["order_id"]]
    assert [entry.amount_cents for entry in entries if entry.kind == "capture"] == [80_000]
    assert (await scene.get(f"checkouts/{checkout['id']}"))["state"] == "completed"


async def test_a_plan_is_followed_by_the_gateways_clock(scene: Scene) -> None:
    """Installments are told by the gateway one after the other; the app reads them here."""
    checkout = await scene.opened("recurring", recurrence="1 Month", duration="3 Month")
    scene.pay(checkout)
    done = await scene.finished(checkout)
    path = f"subscription-states/{done['subscription_id']}"
    assert (await until(lambda: scene.get(path), lambda data: data["installments_paid"] == 1))["state"] == "active"
    for _ in range(6):
        scene.gateway.simulator.world.clock.advance(60)
        await asyncio.sleep(0.2)

    ended = ("completed", 3)
    state = await until(lambda: scene.get(path), lambda data: (data["state"], data["installments_paid"]) == ended)
    assert state["next_on"] is None


async def test_a_failed_installment_of_a_page_is_told_and_can_be_retried(scene: Scene) -> None:
    """A shop tries what it does then without the token of the card, which the gateway's page tells nobody."""
    checkout = await scene.opened("recurring", recurrence="1 Month", duration="Forever")
    scene.pay(checkout)
    plan = (await scene.finished(checkout))["subscription_id"]
    world = scene.gateway.simulator.world
    world.faults.add_rules(Rule(fault="decline", match=Match(order_id=checkout["order_id"])))

    async def told() -> list[str]:
        reply = await asyncio.to_thread(scene.client.get, f"events?subject=subscription:{plan}")
        return [each["type"].removeprefix("subscription.") for each in reply.json["data"]["events"]]

    world.clock.advance(60)
    await until(told, lambda types: "installment_failed" in types)
    path = f"subscription-states/{plan}"
    assert (await scene.get(path))["is_failing"] is True
    retried = await asyncio.to_thread(scene.client.post, f"subscriptions/{plan}/retry", None, key=fresh("retry"))

    assert retried.status == 200, str(retried)
    await until(told, lambda types: types.count("installment_paid") == 2)
    entries = [entry.kind for entry in scene.gateway.simulator.ledger()]
    assert (entries, (await scene.get(path))["is_failing"]) == (["installment", "retry"], False)


@pytest.mark.parametrize(
    ("fault", "arguments", "states"),
    [
        ("duplicate", {"copies": 3, "wait_s": 0.1}, {"applied"}),
        ("late", {"wait_s": 1.0}, {"applied"}),
        ("forged", {"fields": {"payhere_amount": "1.00"}, "is_extra": True}, {"applied", "refused"}),
        ("forged", {"fields": {"status_code": "-1"}, "is_extra": True}, {"applied", "refused"}),
    ],
)
async def test_a_payment_counts_however_it_is_told(
    scene: Scene, fault: str, arguments: dict[str, Any], states: set[str]
) -> None:
    """Doubled, late, or beside a forged one: paid once, and each of them visible."""
    scene.misbehave(fault, **arguments)
    checkout = await scene.opened()
    scene.pay(checkout)
    await scene.finished(checkout)

    rows = await scene.notifications(at_least=len(states))
    assert {row["state"] for row in rows} == states
    assert [entry.kind for entry in scene.gateway.simulator.ledger()] == ["charge"]


async def test_a_failure_that_comes_after_the_payment_changes_nothing(scene: Scene) -> None:
    """The first card failed, the second paid; the network turned the two around."""
    scene.misbehave("reordered", behind=1, wait_s=5)
    checkout = await scene.opened()
    scene.pay(checkout, POOR_VISA)
    await scene.finished(checkout)

    assert len(await scene.notifications(at_least=2)) == 2
    assert (await scene.get(f"checkouts/{checkout['id']}"))["state"] == "completed"


async def test_a_lost_notification_is_not_needed_for_a_payment(scene: Scene) -> None:
    """The app asks, and the gateway's own search shows it."""
    scene.misbehave("lost")
    checkout = await scene.opened()
    scene.pay(checkout)

    await scene.finished(checkout)
    assert await scene.notifications(at_least=0) == []


async def test_a_lost_notification_is_not_needed_for_a_plan(scene: Scene) -> None:
    """Nothing is ever told of its first payment; the app asks, and is shown the checkout and the subscription."""
    scene.misbehave("lost")
    checkout = await scene.opened("recurring", recurrence="1 Month", duration="3 Month", startup_fee=500)
    scene.pay(checkout)
    done = await scene.finished(checkout)

    entries = [each for each in scene.gateway.simulator.ledger() if each.order_id == checkout["order_id"]]
    assert [str(entry.payment_id) for entry in entries] == [done["payment_id"]]
    state = await scene.get(f"subscription-states/{done['subscription_id']}")
    assert (state["state"], state["installments_paid"]) == ("active", 1)
    assert await scene.notifications(at_least=0) == []


async def test_a_chargeback_reaches_the_charge(scene: Scene) -> None:
    """The gateway tells it weeks later; support sees it where it looks."""
    checkout = await scene.opened("preapproval")
    scene.pay(checkout)
    done = await scene.finished(checkout)
    body = charge_body(customer_token=done["customer_id"])
    reply = await asyncio.to_thread(scene.client.charge, body, key=fresh("key"))
    order = {"payment_id": reply.json["data"]["payment_id"]}
    async with aiohttp.ClientSession(scene.gateway.base_url) as session:
        answered = await session.post("/_sim/chargebacks", json=order)
        assert answered.status == 200, await answered.text()
    path = f"operations/{reply.header('payrelay-operation')}"

    shown = await until(lambda: scene.get(path), lambda data: len(data["chargebacks"]) == 1)
    assert (shown["state"], shown["chargebacks"][0]["amount"]) == ("succeeded", 345.67)
