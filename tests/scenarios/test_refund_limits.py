"""Refunds beside what is left, over sockets: the gateway would take them all, and only the service refuses."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import NamedTuple

import msgspec
import pytest
from tests.scenarios.http_client import Raw, Reply
from tests.scenarios.stories import charge_body, fresh
from tests.scenarios.test_gateway_notifications import Scene, paying_scene, until

from payrelay_simulator.chargebacks import charge_back, fail_refund
from payrelay_simulator.faults import Match, Rule
from payrelay_simulator.seeding import CustomerSeed, Seed, plant

CARD = "D3A0" * 8
FRESH = [("Cache-Control", "no-cache")]
WHOLE = None
CONFLICT = (409, "conflict")
DONE = (200, None)


@pytest.fixture
async def scene(tmp_path: Path) -> AsyncIterator[Scene]:
    """Gives a service, and a gateway that takes every refund: the ledger shows what the service let out."""
    async with paying_scene(tmp_path) as scene:
        world = scene.gateway.simulator.world
        plant(world, Seed(customers=[CustomerSeed(customer_token=CARD)]))
        world.switches = msgspec.structs.replace(
            world.switches, over_refund="accepted", charged_back_refund="accepted", rate_limit_calls=0
        )
        yield scene


class Row(NamedTuple):
    """What happened to a payment of LKR 100.00, what is asked for then, and the answer.

    ``before`` are amounts that were refunded, ``lost`` one that a bank took back; ``out`` is what the ledger has of
    refunds in the end, in cents.
    """

    name: str
    asked: str | None
    answer: tuple[int, str | None]
    out: list[int]
    before: tuple[str | None, ...] = ()
    lost: int | None = None
    told: str = ""


ROWS = (
    Row("the whole", WHOLE, DONE, [10_000]),
    Row("more than was paid", "100.01", CONFLICT, [], told="LKR 100.00 was paid and LKR 100.00 is left"),
    Row(
        "the whole twice",
        WHOLE,
        CONFLICT,
        [10_000],
        before=(WHOLE,),
        told="this payment is already refunded: LKR 100.00 was paid, LKR 100.00 was given back by op_",
    ),
    Row("a part after the whole", "0.01", CONFLICT, [10_000], before=(WHOLE,), told="and nothing is left"),
    Row("the whole, named, after a part", "100.00", CONFLICT, [4_000], before=("40.00",), told="LKR 60.00 is left"),
    Row("all that is left after a part", WHOLE, DONE, [4_000, 6_000], before=("40.00",)),
    Row("more than is left", "60.01", CONFLICT, [4_000], before=("40.00",), told="LKR 40.00 was given back by op_"),
    Row("the rest in two parts", "35.00", DONE, [4_000, 2_500, 3_500], before=("40.00", "25.00")),
    Row("a third part", "0.01", CONFLICT, [4_000, 6_000], before=("40.00", "60.00"), told="(LKR 60.00) and nothing"),
    Row("what was charged back", WHOLE, CONFLICT, [], lost=10_000, told="this payment was charged back: LKR 100.00"),
    Row("a part of what was charged back", "1.00", CONFLICT, [], lost=10_000, told="this payment was charged back"),
    Row("the rest of what was charged back in part", WHOLE, DONE, [7_000], lost=3_000),
    Row("more than the bank left", "70.01", CONFLICT, [], lost=3_000, told="LKR 30.00 was charged back"),
)


async def refunded(scene: Scene, payment_id: str, amount: str | None, key: str | None = None) -> Reply:
    """Asks for a refund."""
    part = {} if amount is None else {"amount": Raw(text=amount)}
    body = {"payment_id": payment_id, "description": "broken", **part}
    return await asyncio.to_thread(scene.client.post, "payments/refund", body, key=key or fresh("key"))


async def charged(scene: Scene, order_id: str, amount: str = "100.00") -> str:
    """Charges an order; gives the payment's number."""
    body = charge_body(order_id, amount=Raw(text=amount), customer_token=CARD)
    reply = await asyncio.to_thread(scene.client.charge, body, key=fresh("key"))
    assert reply.status == 200, str(reply)
    return str(reply.json["data"]["payment_id"])


async def lost(scene: Scene, order_id: str, payment_id: str, amount_cents: int) -> None:
    """Has a bank take a payment back, and waits until the service knows."""
    address = f"{scene.program.environment['PAYRELAY_PUBLIC_URL']}/gateway/notifications"
    charge_back(scene.gateway.simulator.world, int(payment_id), address, amount_cents=amount_cents)

    async def taken_back() -> float:
        (balance,) = (await scene.get(f"orders/{order_id}"))["balances"]
        return float(balance["charged_back"])

    await until(taken_back, lambda amount: amount == amount_cents / 100)


def out(scene: Scene, order_id: str) -> list[int]:
    """Gives what the gateway gave back of an order, in cents."""
    entries = scene.gateway.simulator.ledger()
    return [each.amount_cents for each in entries if each.order_id == order_id and each.kind == "refund"]


async def operations(scene: Scene, order_id: str) -> list[str]:
    """Gives the kinds of an order's operations."""
    reply = await asyncio.to_thread(scene.client.get, f"operations?order_id={order_id}")
    return sorted(each["kind"] for each in reply.json["data"])


async def test_only_what_is_left_goes_out(scene: Scene) -> None:
    """A refusal calls nobody, stores nothing, and says what went back; a repeat of the refusal is refused again."""
    for row in ROWS:
        order_id = fresh("order")
        payment_id = await charged(scene, order_id)
        for amount in row.before:
            assert (await refunded(scene, payment_id, amount)).status == 200, row.name
        if row.lost is not None:
            await lost(scene, order_id, payment_id, row.lost)
        kinds, calls = await operations(scene, order_id), scene.gateway.simulator.world.calls.arrived
        key = fresh("key")
        reply = await refunded(scene, payment_id, row.asked, key)

        code = reply.json.get("error", {}).get("code")
        assert ((reply.status, code), out(scene, order_id)) == (row.answer, row.out), f"{row.name}: {reply}"
        assert row.told in reply.json["msg"], row.name
        if row.answer is CONFLICT:
            assert (await operations(scene, order_id), scene.gateway.simulator.world.calls.arrived) == (kinds, calls)
            again = await refunded(scene, payment_id, row.asked, key)
            assert (again.status, again.json["msg"]) == (reply.status, reply.json["msg"]), row.name
        else:
            again = await refunded(scene, payment_id, row.asked, key)
            assert (again.body, again.header("idempotent-replayed")) == (reply.body, "true"), row.name
            assert out(scene, order_id) == row.out, row.name


async def test_one_look_that_shows_a_refund_no_more_gives_nothing_back(scene: Scene) -> None:
    """The refund may have failed, or a copy that lags behind answered: whoever refunds on one look may pay twice."""
    order_id = fresh("order")
    payment_id = await charged(scene, order_id)
    first = await refunded(scene, payment_id, WHOLE)
    await asyncio.to_thread(scene.client.get, f"payments/{order_id}", headers=FRESH)
    assert (await refunded(scene, payment_id, WHOLE)).status == 409
    fail_refund(scene.gateway.simulator.world, int(first.json["data"]))
    await asyncio.to_thread(scene.client.get, f"payments/{order_id}", headers=FRESH)

    shown = await until(lambda: scene.get(f"orders/{order_id}"), lambda order: order["doubts"] != [])
    again = await refunded(scene, payment_id, WHOLE)
    assert ([each["kind"] for each in shown["doubts"]], shown["balances"][0]["left"]) == (["received_again"], 0)
    assert (again.status, again.json["error"]["code"]) == (409, "in_progress")


async def test_refunds_of_the_rest_at_once_give_it_back_once(scene: Scene) -> None:
    """Keys of their own, all at once: one goes out, and the others are told that it is under way or done."""
    for _ in range(5):
        order_id = fresh("order")
        payment_id = await charged(scene, order_id)
        asked = [refunded(scene, payment_id, amount) for amount in (WHOLE, "100.00", "60.00", WHOLE, "50.00", "60.00")]
        replies = await asyncio.gather(*asked)

        codes = [reply.json.get("error", {}).get("code") for reply in replies]
        assert sum(out(scene, order_id)) <= 10_000
        assert set(codes) <= {None, "in_progress", "conflict"}
        assert None in codes


async def test_another_shops_refund_has_no_name(scene: Scene) -> None:
    """Whoever owns the payment learns how much is gone, and no id of another principal's operation."""
    order_id = fresh("order")
    payment_id = await charged(scene, order_id)
    key = await asyncio.to_thread(
        scene.program.new_key, "desk", "--scope", "payments:refund", "--scope", "any-principal"
    )
    desk = scene.program.client(key)
    body = {"payment_id": payment_id, "description": "broken", "amount": Raw(text="40.00")}
    assert (await asyncio.to_thread(desk.post, "payments/refund", body, key=fresh("key"))).status == 200
    reply = await refunded(scene, payment_id, "60.01")

    assert "LKR 40.00 was given back and LKR 60.00 is left" in reply.json["msg"]
    assert ("op_" in reply.body.decode(), reply.json["error"].get("operation_id")) == (False, None)


async def test_a_person_insists_by_a_command_after_a_look_at_the_record(scene: Scene) -> None:
    """The bank gave the money to the merchant after all: a person knows that, and a key can't say it."""
    order_id, run = fresh("order"), scene.program.run
    payment_id = await charged(scene, order_id)
    await lost(scene, order_id, payment_id, 10_000)
    refund = ("payments", "refund", payment_id, "--reason", "the bank lost the dispute", "--by", "ann", "--yes")
    refused = await asyncio.to_thread(run, *refund)
    assert (refused.returncode, out(scene, order_id)) == (1, [])
    assert "this payment was charged back: LKR 100.00 was paid" in refused.stderr
    done = await asyncio.to_thread(run, *refund, "--insist")

    assert (done.returncode, out(scene, order_id)) == (0, [10_000]), done.stderr
    assert "The gateway's record shows the payment as CHARGEBACKED, LKR 100.00." in done.stderr
    shown = await asyncio.to_thread(run, "operations", "show", done.stdout.split()[0])
    assert "By ann" in shown.stdout
    assert "this payment was charged back" in " ".join(shown.stdout.split())


async def test_a_command_refunds_what_is_left_and_no_more(scene: Scene) -> None:
    """It names the figures first; the same command once more is the same refund, or is told what went back."""
    order_id, run = fresh("order"), scene.program.run
    payment_id = await charged(scene, order_id)
    refund = ("payments", "refund", payment_id, "--reason", "sent back", "--yes")
    first, same = [await asyncio.to_thread(run, *refund, "--amount", "40") for _ in range(2)]
    assert (first.returncode, "LKR 100.00 is left" in first.stderr) == (0, True), first.stderr
    assert (same.stdout, "nothing was sent now" in same.stderr) == (first.stdout, True)
    more = await asyncio.to_thread(run, *refund, "--amount", "40", "--description", "the second cup")
    whole, again = [await asyncio.to_thread(run, *refund) for _ in range(2)]

    assert ([more.returncode, whole.returncode], out(scene, order_id)) == ([0, 0], [4_000, 4_000, 2_000])
    assert (again.returncode, "already refunded" in again.stderr) == (1, True), again.stderr


async def test_nobody_insists_while_the_gateway_cannot_be_asked(scene: Scene) -> None:
    """Without a look at the record a person knows no more than the figures."""
    order_id = fresh("order")
    payment_id = await charged(scene, order_id)
    assert (await refunded(scene, payment_id, WHOLE)).status == 200
    scene.gateway.simulator.world.faults.add_rules(Rule(fault="refuse", match=Match(endpoint="search")))
    refund = ("payments", "refund", payment_id, "--reason", "nothing came", "--insist", "--yes")
    tried = await asyncio.to_thread(scene.program.run, *refund)

    assert (tried.returncode, out(scene, order_id)) == (1, [10_000])
    assert "nobody can insist on this refund before the gateway was asked" in tried.stderr
