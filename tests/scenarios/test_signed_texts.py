"""Hostile customers at the simulated gateway's pages: a genuine signature, under another order and another amount.

The gateway signs order and amount with nothing between them. Each story moves that border.
"""

import asyncio
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlencode

import pytest
from tests.scenarios.http_client import Raw
from tests.scenarios.program import Program, free_port, simulated_account
from tests.scenarios.stories import fresh
from tests.scenarios.test_gateway_notifications import Scene, until
from tests.scenarios.test_notifications import md5, post

import payrelay_simulator
from payrelay_simulator.faults import Match, Rule
from payrelay_simulator.pages.payer import Payer

TOKEN: Final = "e34f3059-7b7d-4b62-a57c-784beaa169f4"


@dataclass(frozen=True, kw_only=True)
class Attack(Scene):
    """A service, and a customer who keeps the gateway's notifications to himself."""

    async def approved_card(self) -> str:
        """Approves a card; returns the customer's handle."""
        checkout = await self.opened("preapproval")
        self.pay(checkout)
        return str((await self.finished(checkout))["customer_id"])

    async def authorize(
        self, order_id: str, amount: str, customer: str, *, fault: str | None = None, kind: str = "AUTHORIZE"
    ) -> dict[str, Any]:
        """Makes an AUTHORIZE call by the API, or another one, whose reply may be lost; returns the operation."""
        if fault is not None:
            rule = Rule(fault=fault, match=Match(endpoint="charge", order_id=order_id))
            self.gateway.simulator.world.faults.add_rules(rule)
        body = {
            "type": kind,
            "order_id": order_id,
            "items": "Door bell",
            "currency": "LKR",
            "amount": Raw(text=amount),
            "customer_token": customer,
        }
        reply = await asyncio.to_thread(self.client.charge, body, key=fresh("key"))
        assert reply.status == (200 if fault is None else 202), str(reply)
        return await self.get(f"operations/{reply.header('payrelay-operation')}")

    def keep(self) -> None:
        """Has the next notification go to the customer, as a form with another notify_url does."""
        self.misbehave("lost")

    def kept(self, order_id: str) -> dict[str, str]:
        """Gives the fields of the notification that the customer got."""
        return dict(self.gateway.simulator.world.notifications.records(order_id=order_id)[-1].fields)

    def enter(self, page: Any, fields: Mapping[str, str]) -> None:  # noqa: ANN401, of any page
        """Posts a form to a page, and pays there."""
        payer = Payer(self.gateway.simulator.world)
        payer.pay(payer.enter(page, fields))

    async def post(self, kept: Mapping[str, str], order_id: str, amount: str, **more: str) -> None:
        """Posts a kept notification to the service, with the border moved."""
        before = f"{kept['order_id']}{kept['payhere_amount']}"
        assert f"{order_id}{amount}" == before, "the signature would be wrong"
        body = urlencode({**kept, "order_id": order_id, "payhere_amount": amount, **more}).encode()
        assert (await asyncio.to_thread(post, self.client, body)).status == 200

    async def ended(self, operation: Mapping[str, Any], state: str) -> dict[str, Any]:
        """Waits until an operation is in a state."""
        path = f"operations/{operation['id']}"
        return await until(lambda: self.get(path), lambda data: data["state"] == state)

    def authorized(self) -> list[tuple[str, int]]:
        """Gives what the gateway's ledger has as authorized: orders, and amounts in cents."""
        return [
            (entry.order_id, entry.amount_cents)
            for entry in self.gateway.simulator.ledger()
            if entry.kind == "authorization"
        ]


@pytest.fixture
async def attack(tmp_path: Path, request: pytest.FixtureRequest) -> AsyncIterator[Attack]:
    """Starts the program, with a gateway of its own; a test may say what SIGNS_ELSEWHERE is."""
    signs_elsewhere = getattr(request, "param", "false")
    simulator = payrelay_simulator.Simulator()
    async with payrelay_simulator.serve(simulator) as running:
        port = free_port()
        settings = simulated_account(running.base_url, simulator.merchant, SIGNS_ELSEWHERE=signs_elsewhere)
        if signs_elsewhere == "unset":
            del settings["PAYRELAY_GATEWAYS__GATEWAY__SIGNS_ELSEWHERE"]
        program = Program(tmp_path, settings | {"PAYRELAY_PUBLIC_URL": f"http://127.0.0.1:{port}"})
        key = await asyncio.to_thread(program.new_key, "shop")
        await asyncio.to_thread(program.start, port)
        yield Attack(program=program, gateway=running, client=program.client(key))
        await asyncio.to_thread(program.kill)


async def test_a_lost_authorization_is_proved_by_its_own_notification(attack: Attack) -> None:
    """Nothing else has its text, and nobody else signs: what the gateway notifies is what it did."""
    order, customer = fresh("order"), await attack.approved_card()
    operation = await attack.authorize(order, "2510.00", customer, fault="cut_after")

    await attack.ended(operation, "succeeded")
    assert attack.authorized() == [(order, 251_000)]


async def test_an_edited_form_resolves_no_lost_authorization(attack: Attack) -> None:
    """The customer authorizes 10.00 for another order, and tells it as 2510.00 for the lost one."""
    order, customer = fresh("order"), await attack.approved_card()
    operation = await attack.authorize(order, "2510.00", customer, fault="cut_before")
    checkout = await attack.opened(order_id=f"{order}25", amount=10)
    attack.keep()
    attack.enter("authorize", checkout["form"]["fields"])
    await attack.post(attack.kept(f"{order}25"), order, "2510.00")

    ended = await attack.ended(operation, "needs_attention")
    assert "whose signature also fits another form or call" in str(ended["history"][-1])
    assert attack.authorized() == [(f"{order}25", 1_000)]


async def test_an_edited_form_for_the_lost_amount_resolves_it_neither(attack: Attack) -> None:
    """A form for the order itself, edited to 10.00 for another one: what is held is 10.00, whatever is told.

    Its page was closed before the card was authorized; who has the form keeps it.
    """
    order, customer = fresh("order"), await attack.approved_card()
    checkout = await attack.opened("authorization", order_id=order, amount=2510)
    await asyncio.to_thread(attack.client.delete, f"checkouts/{checkout['id']}")
    operation = await attack.authorize(order, "2510.00", customer, fault="cut_before")
    attack.keep()
    attack.enter("authorize", {**checkout["form"]["fields"], "order_id": f"{order}25", "amount": "10.00"})
    await attack.post(attack.kept(f"{order}25"), order, "2510.00")

    await attack.ended(operation, "needs_attention")
    assert attack.authorized() == [(f"{order}25", 1_000)]


async def test_an_approval_resolves_no_lost_authorization(attack: Attack) -> None:
    """With the form of an approval nothing is held at all; only its signature is genuine."""
    order, customer = fresh("order"), await attack.approved_card()
    operation = await attack.authorize(order, "2510.00", customer, fault="cut_before")
    checkout = await attack.opened("preapproval", order_id=f"{order}25")
    attack.keep()
    attack.enter("preapprove", checkout["form"]["fields"])
    await attack.post(attack.kept(f"{order}25"), order, "2510.00", authorization_token=TOKEN)
    attack.keep()
    attack.enter("authorize", {**checkout["form"]["fields"], "amount": "10.00"})
    await attack.post(attack.kept(f"{order}25"), order, "2510.00")

    await attack.ended(operation, "needs_attention")
    assert attack.authorized() == [(f"{order}25", 1_000)]


async def test_another_authorization_by_the_api_resolves_no_lost_one(attack: Attack) -> None:
    """The first one's notification is genuine; the second one never reached the gateway."""
    order, customer = fresh("order"), await attack.approved_card()
    attack.keep()
    await attack.authorize(f"{order}25", "10.00", customer)
    operation = await attack.authorize(order, "2510.00", customer, fault="cut_before")
    await attack.post(attack.kept(f"{order}25"), order, "2510.00", authorization_token=TOKEN)

    await attack.ended(operation, "needs_attention")
    assert attack.authorized() == [(f"{order}25", 1_000)]


async def test_two_lost_authorizations_with_one_text_both_need_an_operator(attack: Attack) -> None:
    """One of the two was executed, and the notification doesn't prove which."""
    order, customer = fresh("order"), await attack.approved_card()
    never = await attack.authorize(order, "2510.00", customer, fault="cut_before")
    once = await attack.authorize(f"{order}25", "10.00", customer, fault="cut_after")
    await attack.ended(once, "needs_attention")
    await attack.post(attack.kept(f"{order}25"), order, "2510.00")

    await attack.ended(never, "needs_attention")
    assert attack.authorized() == [(f"{order}25", 1_000)]


@pytest.mark.parametrize("attack", ["true", "unset"], indirect=True)
async def test_a_form_that_was_signed_elsewhere_resolves_no_lost_authorization(attack: Attack) -> None:
    """A shop that signs forms itself signs this text too, and Payrelay never hears of it."""
    order, customer = fresh("order"), await attack.approved_card()
    operation = await attack.authorize(order, "2510.00", customer, fault="cut_before")
    merchant = attack.gateway.simulator.merchant
    text = f"{merchant.merchant_id}{order}2510.00LKR{md5(merchant.merchant_secret)}"
    person = {"first_name": "S", "last_name": "Perera", "email": "s@example.com", "phone": "0771234567"}
    home = {"address": "1 Galle Road", "city": "Colombo", "country": "Sri Lanka"}
    shops_own = {
        "merchant_id": merchant.merchant_id,
        "return_url": "http://shop.example/",
        "cancel_url": "http://shop.example/",
        "notify_url": "http://127.0.0.1:1/",
        "order_id": f"{order}25",
        "items": "Door bell",
        "currency": "LKR",
        "amount": "10.00",
        "hash": md5(text),
    }
    attack.keep()
    attack.enter("authorize", shops_own | person | home)
    await attack.post(attack.kept(f"{order}25"), order, "2510.00")

    ended = await attack.ended(operation, "needs_attention")
    assert "signed elsewhere" in str(ended["history"][-1])
    assert attack.authorized() == [(f"{order}25", 1_000)]


async def test_a_payment_takes_over_no_approval(attack: Attack) -> None:
    """Order 319486 paid with 599.00 is told as order 3194865 with 99.00, and with the thief's card."""
    order = fresh("order")
    approval = await attack.opened("preapproval", order_id=f"{order}5")
    checkout = await attack.opened(order_id=order, amount=599)
    attack.keep()
    attack.enter("checkout", checkout["form"]["fields"])
    await attack.post(attack.kept(order), f"{order}5", "99.00", customer_token="A" * 32)

    rows = await attack.notifications(at_least=1)
    assert [(row["state"], row["reason"]) for row in rows] == [("needs_attention", "other_amount")]
    assert (await attack.get(f"checkouts/{approval['id']}"))["state"] == "open"


async def test_a_payment_with_the_text_of_an_approval_takes_it_over_neither(attack: Attack) -> None:
    """Paid with 510.00, it is told as the very amount that an approval has."""
    order = fresh("order")
    approval = await attack.opened("preapproval", order_id=f"{order}5")
    checkout = await attack.opened(order_id=order, amount=510)
    attack.keep()
    attack.enter("checkout", checkout["form"]["fields"])
    await attack.post(attack.kept(order), f"{order}5", "10.00", customer_token="A" * 32)

    rows = await attack.notifications(at_least=1)
    assert [(row["state"], row["reason"]) for row in rows] == [("needs_attention", "other_text")]
    assert (await attack.get(f"checkouts/{approval['id']}"))["state"] == "open"


@pytest.mark.parametrize("kind", ["payment", "recurring"])
async def test_an_edited_form_pays_for_no_other_checkout(attack: Attack, kind: str) -> None:
    """The gateway's record has order and amount apart: 10.00 were paid for another order."""
    order = fresh("order")
    plan = {"recurrence": "1 Month", "duration": "3 Month"} if kind == "recurring" else {}
    checkout = await attack.opened(kind, order_id=order, amount=2510, **plan)
    attack.keep()
    attack.enter("checkout", {**checkout["form"]["fields"], "order_id": f"{order}25", "amount": "10.00"})
    await attack.post(attack.kept(f"{order}25"), order, "2510.00")
    await asyncio.to_thread(attack.client.get, f"checkouts/{checkout['id']}")

    assert (await attack.get(f"checkouts/{checkout['id']}"))["state"] == "open"
    assert [entry.amount_cents for entry in attack.gateway.simulator.ledger()] == [1_000]


@pytest.mark.parametrize("kind", ["payment", "authorization"])
async def test_a_form_that_is_posted_again_proves_no_lost_charge(attack: Attack, kind: str) -> None:
    """Its page was paid, or was closed, and the form pays all the same. The charge never reached the gateway."""
    order, customer = fresh("order"), await attack.approved_card()
    checkout = await attack.opened(kind, order_id=order, amount=2510)
    if kind == "payment":
        attack.pay(checkout)
        await attack.finished(checkout)
    else:
        await asyncio.to_thread(attack.client.delete, f"checkouts/{checkout['id']}")
    operation = await attack.authorize(order, "2510.00", customer, fault="cut_before", kind="PAYMENT")
    attack.enter("checkout", checkout["form"]["fields"])

    def is_looked_at(data: Mapping[str, Any]) -> bool:
        return data["state"] != "unknown" or "with a form for the gateway's page" in str(data["history"])

    seen = await until(lambda: attack.get(f"operations/{operation['id']}"), is_looked_at)
    assert seen["state"] == "unknown", seen
    paid = [entry for entry in attack.gateway.simulator.ledger() if entry.order_id == order]
    assert {entry.arrival for entry in paid} == {None}, "the API paid nothing"
