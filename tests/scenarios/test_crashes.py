"""Crashes and stops in the midst of a charge: what was sent is never forgotten, and never sent again."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from http.client import RemoteDisconnected

import pytest
from tests.scenarios import gateway_double as payhere
from tests.scenarios.http_client import Client, Raw, Reply
from tests.scenarios.stories import Scene, assert_refused, charge_body, fresh, state_of
from tests.scenarios.waiting import until

RESOLVED_S = 6.0  # the first look at the gateway comes after 2 s
OPEN_STATES = {"unknown", "needs_attention"}


def again(own: Scene) -> Client:
    """The same caller at the program's new address."""
    return replace(own.client, port=own.program.port)


def charge_through(client: Client, body: dict[str, object], key: str) -> Reply | None:
    """The charge's answer; None where the connection broke."""
    try:
        return client.charge(body, key=key)
    except (RemoteDisconnected, ConnectionError):
        return None


@pytest.mark.parametrize("is_keyed", [True, False])
def test_a_kill_in_the_midst_of_a_charge_is_remembered(own: Scene, is_keyed: bool) -> None:  # noqa: FBT001
    """After kill -9 and a restart on the same database: unknown, guarded, and a repeat sends nothing, key or not."""
    order_id, key = fresh("order"), fresh("key")
    body = charge_body(order_id)
    kill_in_the_midst(own, body, key)
    own.program.start()
    client = again(own)
    assert state_of(client, key) in OPEN_STATES
    repeat = client.charge(body, key=key if is_keyed else None)
    assert repeat.status == 202, str(repeat)
    assert_refused(client.charge(charge_body(order_id, amount=Raw(text="1.00")), key=fresh("key")), 409, "in_progress")
    assert own.gateway.count(payhere.CHARGE, order_id) == 1


def kill_in_the_midst(own: Scene, body: dict[str, object], key: str) -> None:
    """Kills the service while the gateway holds the charge."""
    held = own.gateway.hold(payhere.CHARGE, str(body["order_id"]))
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(charge_through, own.client, body, key)
        held.wait_for_arrival()
        own.program.kill()
        assert running.result() is None
        held.released.set()


@pytest.mark.smoke
def test_a_killed_charge_is_settled_by_proof(own: Scene) -> None:
    """The restarted service asks at once, finds the payment and gives the answer that was lost."""
    order_id, key = fresh("order"), fresh("key")
    kill_in_the_midst(own, charge_body(order_id), key)
    record = payhere.payment_now(order_id, "345.67")
    own.gateway.always(payhere.SEARCH, order_id, payhere.says(payhere.found(record)))
    own.program.start()
    client = again(own)
    until(lambda: state_of(client, key) == "succeeded", "the charge is settled", deadline_s=RESOLVED_S)
    reply = client.charge(charge_body(order_id), key=key)
    assert (reply.status, reply.json["data"]["payment_id"]) == (200, record["payment_id"]), str(reply)
    assert own.gateway.count(payhere.CHARGE, order_id) == 1


@pytest.mark.parametrize("earlier", [None, "another-merchant"])
def test_an_order_stays_held_where_the_merchants_number_is_set_later(own: Scene, earlier: str | None) -> None:
    """Who began without the number, or with a wrong one, and mends it must not free what is unsettled for a second."""
    environment, name = own.program.environment, "PAYRELAY_GATEWAYS__GATEWAY__MERCHANT_ID"
    number = environment.pop(name)
    own.program.stop()
    environment |= {} if earlier is None else {name: earlier}
    own.program.start()
    order_id, key = fresh("order"), fresh("key")
    own.gateway.script(payhere.CHARGE, order_id, payhere.cuts)
    assert again(own).charge(charge_body(order_id), key=key).status == 202

    own.program.stop()
    environment[name] = number
    own.program.start()
    assert_refused(again(own).charge(charge_body(order_id), key=fresh("key")), 409, "in_progress")
    assert own.gateway.count(payhere.CHARGE, order_id) == 1
    record = payhere.payment_now(order_id, "345.67")
    own.gateway.always(payhere.SEARCH, order_id, payhere.says(payhere.found(record)))
    until(lambda: state_of(again(own), key) == "succeeded", "the charge is settled", deadline_s=RESOLVED_S * 2)


def test_answers_survive_a_kill(own: Scene) -> None:
    """An answer that was given is given again after kill -9, byte for byte."""
    body, key = charge_body(), fresh("key")
    first = own.client.charge(body, key=key)
    own.program.kill()
    own.program.start()
    replayed = again(own).charge(body, key=key)
    assert (replayed.header("idempotent-replayed"), replayed.body) == ("true", first.body)


def test_a_storm_with_a_kill_in_it_charges_each_order_at_most_once(own: Scene) -> None:
    """Forty orders at once, kill -9 among them, all repeated: no order goes twice, no success was without a charge."""
    bodies = {fresh("key"): charge_body() for _ in range(40)}
    orders = {key: str(body["order_id"]) for key, body in bodies.items()}
    held = [own.gateway.hold(payhere.CHARGE, order_id) for order_id in list(orders.values())[::5]]
    with ThreadPoolExecutor(20) as pool:
        tasks = [pool.submit(charge_through, own.client, body, key) for key, body in bodies.items()]
        held[0].wait_for_arrival()
        held[3].wait_for_arrival()
        own.program.kill()
        for hold in held:
            hold.released.set()
        before = dict(zip(bodies, [task.result() for task in tasks], strict=True))
    own.program.start()
    after = {key: again(own).charge(body, key=key) for key, body in bodies.items()}
    for key, order_id in orders.items():
        first, repeat, count = before[key], after[key], own.gateway.count(payhere.CHARGE, order_id)
        assert count <= 1, f"{order_id} was charged {count} times: {first} {repeat}"
        assert (repeat.status, count) in {(200, 1), (202, 1), (202, 0), (409, 1)}, f"{count} {repeat}"
        assert first is None or first.status != 200 or first.body == repeat.body


def test_a_polite_stop_lets_the_charge_end(own: Scene) -> None:
    """SIGTERM in the midst: the answer is delivered, or the truth stands in the database; the exit code is 0."""
    order_id, key = fresh("order"), fresh("key")
    held = own.gateway.hold(payhere.CHARGE, order_id)
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(charge_through, own.client, charge_body(order_id), key)
        held.wait_for_arrival()
        own.program.ask_to_stop()
        held.released.set()
        assert own.program.wait() == 0, own.program.log()
        answer = running.result()
    own.program.start()
    state = state_of(again(own), key)
    assert (
        (state == "succeeded") if answer is not None and answer.status == 200 else state in OPEN_STATES | {"succeeded"}
    )
    assert own.gateway.count(payhere.CHARGE, order_id) == 1


def test_a_polite_stop_does_not_wait_for_ever(own: Scene) -> None:
    """SIGTERM while the gateway hangs: the call's own time-out ends the waiting, and what is unknown is kept so."""
    order_id, key = fresh("order"), fresh("key")
    held = own.gateway.hold(payhere.CHARGE, order_id)
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(charge_through, own.client.at("hasty"), charge_body(order_id), key)
        held.wait_for_arrival()
        own.program.ask_to_stop()
        assert own.program.wait() == 0, own.program.log()
        answer = running.result()
        held.released.set()
    assert answer is None or answer.status == 202, str(answer)
    own.program.start()
    assert state_of(again(own).at("hasty"), key) in OPEN_STATES
    assert own.gateway.count(payhere.CHARGE, order_id) == 1


def test_an_idle_service_stops_at_once_with_0(own: Scene) -> None:
    """A stop without work is quick and clean: no traceback, exit code 0."""
    assert own.program.stop() == 0
    assert "Traceback" not in own.program.log()


def test_a_caller_who_leaves_cancels_nothing(scene: Scene) -> None:
    """A phone that loses its connection in the midst finds the charge done when it comes back."""
    order_id, key = fresh("order"), fresh("key")
    held = scene.gateway.hold(payhere.CHARGE, order_id)
    with scene.client.leaving("payments/charge", charge_body(order_id), key):
        held.wait_for_arrival()
    held.released.set()
    until(lambda: state_of(scene.client, key) == "succeeded", "the charge ends")
    reply = scene.client.charge(charge_body(order_id), key=key)
    assert (reply.status, reply.header("idempotent-replayed")) == (200, "true"), str(reply)
    assert scene.gateway.count(payhere.CHARGE, order_id) == 1
