"""Clients that would rather wait than ask again (`Prefer: wait=n`): what they get, when, and what ends the wait."""

import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from tests.scenarios import gateway_double as payhere
from tests.scenarios.http_client import Client, Reply, encode
from tests.scenarios.stories import Scene, assert_refused, charge_body, fresh, fresh_number, state_of
from tests.scenarios.waiting import until

SOON_S = 10.0  # far less than the waits that are cut short here


def prefer(seconds: int) -> tuple[str, str]:
    """The header."""
    return ("Prefer", f"wait={seconds}")


def charge(client: Client, body: object, key: str, seconds: int) -> Reply:
    """A charge by a client that would rather wait."""
    return client.post("payments/charge", body, key=key, headers=[prefer(seconds)])


def lose(scene: Scene, order_id: str) -> None:
    """The next charge of the order is taken, and its answer is lost on the way."""
    scene.gateway.script(payhere.CHARGE, order_id, payhere.cuts)


def show_payment(scene: Scene, order_id: str) -> None:
    """From now on the gateway shows the payment of the order."""
    record = payhere.payment_now(order_id, "345.67")
    scene.gateway.always(payhere.SEARCH, order_id, payhere.says(payhere.found(record)))


def test_a_lost_answer_is_found_while_the_client_waits(scene: Scene) -> None:
    """The customer at the screen sees one spinner and then the truth: no 202, no asking again."""
    order_id, key = fresh("order"), fresh("key")
    lose(scene, order_id)
    show_payment(scene, order_id)
    reply = charge(scene.client, charge_body(order_id), key, 60)
    assert (reply.status, reply.json["msg"]) == (200, "Resolved by proof"), str(reply)
    assert (reply.header("preference-applied"), reply.header("idempotent-replayed")) == ("wait=60", None)
    again = scene.client.post("payments/charge", charge_body(order_id), key=key)
    assert (again.body, again.header("idempotent-replayed")) == (reply.body, "true")
    assert scene.gateway.count(payhere.CHARGE, order_id) == 1


def test_a_wait_that_is_over_is_202(scene: Scene) -> None:
    """After the seconds that were named, not before: what is known then, with where to ask."""
    order_id = fresh("order")
    lose(scene, order_id)
    began_s = time.monotonic()
    reply = charge(scene.client, charge_body(order_id), fresh("key"), 1)
    took_s = time.monotonic() - began_s
    assert_refused(reply, 202, "outcome_unknown")
    assert 1 <= took_s < SOON_S
    assert reply.header("location")
    assert reply.header("retry-after")
    assert reply.header("preference-applied") == "wait=1"


def test_what_is_known_is_not_held(scene: Scene) -> None:
    """A client may always send the header: it costs nothing where there is nothing to wait for."""
    began_s = time.monotonic()
    assert charge(scene.client, charge_body(), fresh("key"), 60).status == 200
    assert_refused(charge(scene.client, charge_body(amount=0), fresh("key"), 60), 422, "invalid_request")
    assert scene.client.delete(f"subscriptions/{fresh_number()}", headers=[prefer(60)]).status == 200
    assert time.monotonic() - began_s < SOON_S


def test_what_needs_a_person_is_not_held(scene: Scene) -> None:
    """A person may take days."""
    order_id = fresh("order")
    scene.gateway.script(payhere.CHARGE, order_id, payhere.succeeds_with(currency="USD"))
    began_s = time.monotonic()
    assert_refused(charge(scene.client, charge_body(order_id), fresh("key"), 60), 202, "needs_attention")
    assert time.monotonic() - began_s < SOON_S


def test_a_repeat_waits_for_the_first_and_gets_its_answer(scene: Scene) -> None:
    """A phone that lost its network in mid-charge asks again at once, and hears what the first would have heard."""
    body, key = charge_body(), fresh("key")
    held = scene.gateway.hold(payhere.CHARGE, str(body["order_id"]))
    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(scene.client.charge, body, key=key)
        held.wait_for_arrival()
        repeat = pool.submit(charge, scene.client, body, key, 60)
        assert_refused(charge(scene.client, body, key, 1), 409, "in_progress")
        assert not repeat.done()
        held.released.set()
        assert first.result().status == 200
        assert repeat.result().body == first.result().body
        assert repeat.result().header("idempotent-replayed") == "true"
    assert scene.gateway.count(payhere.CHARGE, str(body["order_id"])) == 1


def test_many_repeats_that_wait_are_one_charge(scene: Scene) -> None:
    """Sixteen at once, all willing to wait: one call goes out, and each gets the very same answer."""
    body, key = charge_body(), fresh("key")
    with ThreadPoolExecutor(16) as pool:
        tasks = [pool.submit(charge, scene.client, body, key, 30) for _ in range(16)]
        replies = [task.result() for task in tasks]
    assert {reply.status for reply in replies} == {200}
    assert len({reply.body for reply in replies}) == 1
    assert scene.gateway.count(payhere.CHARGE, str(body["order_id"])) == 1


def test_an_operation_can_be_waited_for(scene: Scene) -> None:
    """Reading it with the preference answers once it is settled."""
    order_id, key = fresh("order"), fresh("key")
    lose(scene, order_id)
    location = charge(scene.client, charge_body(order_id), key, 0).header("location") or ""
    show_payment(scene, order_id)
    reply = scene.client.send("GET", location, headers=[prefer(60)])
    assert (reply.status, reply.json["data"]["state"]) == (200, "succeeded"), str(reply)
    assert reply.header("preference-applied") == "wait=60"


@pytest.mark.parametrize("value", ["wait", "wait=", "wait=-5", "wait=soon", 'wait="60"', "respond-async", "=,;,="])
def test_a_preference_that_says_nothing_is_passed_over(scene: Scene, value: str) -> None:
    """It is no demand, and never a reason to refuse."""
    order_id = fresh("order")
    lose(scene, order_id)
    began_s, fields = time.monotonic(), [("Prefer", value)]
    reply = scene.client.at("second").post("payments/charge", charge_body(order_id), key=fresh("key"), headers=fields)
    assert_refused(reply, 202, "outcome_unknown")
    assert reply.header("preference-applied") is None
    assert time.monotonic() - began_s < SOON_S


def test_a_client_that_hangs_up_ends_its_wait_only(scene: Scene) -> None:
    """Nothing is held for nobody; and the charge is settled all the same."""
    order_id, key, mine = fresh("order"), fresh("key"), fresh("request")
    lose(scene, order_id)
    client, fields = scene.client.at("third"), [("Idempotency-Key", key), ("X-Request-Id", mine), prefer(60)]
    with client.connected() as wire:
        wire.sendall(client.request("POST", "payments/charge", encode(charge_body(order_id)).encode(), fields))
        scene.gateway.wait_for(payhere.CHARGE, order_id)
        until(lambda: state_of(client, key) == "unknown", "the answer is lost")
    until(
        lambda: any(mine in line.values() and "status" in line for line in scene.program.log_lines()),
        "the request is over",
        deadline_s=SOON_S,
    )
    show_payment(scene, order_id)
    assert charge(client, charge_body(order_id), key, 60).status == 200
    assert scene.gateway.count(payhere.CHARGE, order_id) == 1


def test_a_stop_gives_what_is_known(own: Scene) -> None:
    """A new release must not wait for those who wait: they hear 202 at once, and the program ends cleanly."""
    order_id = fresh("order")
    lose(own, order_id)
    with ThreadPoolExecutor(1) as pool:
        held = pool.submit(charge, own.client, charge_body(order_id), fresh("key"), 60)
        own.gateway.wait_for(payhere.SEARCH, order_id)
        began_s = time.monotonic()
        own.program.ask_to_stop()
        assert_refused(held.result(), 202, "outcome_unknown")
        assert own.program.wait() == 0
    assert time.monotonic() - began_s < SOON_S
