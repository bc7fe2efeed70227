"""Repeats and races: the same wish comes once to the gateway, and its answer as often as it is asked for."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
from tests.scenarios import gateway_double as payhere
from tests.scenarios.gateway_double import GatewayDouble
from tests.scenarios.http_client import Raw, Reply
from tests.scenarios.program import Program
from tests.scenarios.stories import (
    Scene,
    assert_envelope,
    assert_refused,
    capture_body,
    charge_body,
    fresh,
    fresh_number,
    operation_of,
    refund_body,
    settings_for,
)
from tests.scenarios.waiting import until


def assert_replayed(first: Reply, again: Reply) -> None:
    """The answer came again, byte for byte, and says so."""
    assert first.header("idempotent-replayed") is None
    assert again.header("idempotent-replayed") == "true", str(again)
    assert (again.status, again.body) == (first.status, first.body)


@pytest.mark.parametrize("is_keyed", [True, False])
def test_the_same_request_is_charged_once_and_answered_twice(scene: Scene, is_keyed: bool) -> None:  # noqa: FBT001
    """With a key and without one: byte for byte the same answer, one call upstream."""
    body = charge_body()
    key = fresh("key") if is_keyed else None
    assert_replayed(scene.client.charge(body, key=key), scene.client.charge(body, key=key))
    assert scene.gateway.count(payhere.CHARGE, str(body["order_id"])) == 1


@pytest.mark.parametrize(
    ("path", "upstream"),
    [
        ("payments/capture", payhere.CAPTURE),
        ("payments/refund", payhere.REFUND),
        ("subscriptions/{id}/retry", payhere.RETRY),
    ],
)
def test_every_effect_is_repeated_safely(scene: Scene, path: str, upstream: str) -> None:
    """Not the charge alone: each POST replays its answer."""
    subject = fresh_number()
    body = {payhere.CAPTURE: capture_body(subject), payhere.REFUND: refund_body(subject)}.get(upstream)
    key = fresh("key")
    first = scene.client.post(path.format(id=subject), body, key=key)
    assert first.status == 200, str(first)
    assert_replayed(first, scene.client.post(path.format(id=subject), body, key=key))
    assert scene.gateway.count(upstream, subject) == 1


def test_a_cancellation_is_repeated_safely(scene: Scene) -> None:
    """DELETE takes the key too."""
    number, key = fresh_number(), fresh("key")
    first = scene.client.delete(f"subscriptions/{number}", key=key)
    assert_replayed(first, scene.client.delete(f"subscriptions/{number}", key=key))
    assert scene.gateway.count(payhere.CANCEL, number) == 1


def test_the_quoted_and_the_bare_key_are_equal(scene: Scene) -> None:
    """The form of the IETF draft and the form that everybody sends are one key."""
    body, key = charge_body(), fresh("key")
    assert_replayed(scene.client.charge(body, key=key), scene.client.charge(body, key=f'"{key}"'))
    assert scene.gateway.count(payhere.CHARGE, str(body["order_id"])) == 1


@pytest.mark.parametrize("key", ["", "x" * 256, "a b", "caf\xe9", '"open', '""', "tab\tkey"])
def test_a_bad_key_is_malformed(scene: Scene, key: str) -> None:
    """1 to 255 visible ASCII characters; a key that might be cut or changed on the way is worse than none."""
    body = charge_body()
    assert_refused(scene.client.charge(body, key=key), 400, "malformed_request")
    assert not scene.gateway.calls(payhere.CHARGE, str(body["order_id"]))


def test_a_doubled_key_is_malformed(scene: Scene) -> None:
    """Nobody can tell which of two keys holds."""
    reply = scene.client.post(
        "payments/charge", charge_body(), key=fresh("key"), headers=[("Idempotency-Key", fresh("key"))]
    )
    assert_refused(reply, 400, "malformed_request")


def test_the_longest_key_is_taken(scene: Scene) -> None:
    """255 characters are a key."""
    key = fresh("key").ljust(255, "~")
    body = charge_body()
    assert_replayed(scene.client.charge(body, key=key), scene.client.charge(body, key=key))


@pytest.mark.parametrize(
    "change", [{"amount": Raw(text="345.68")}, {"items": "Other"}, {"custom_1": "x"}, {"order_id": "another"}], ids=str
)
def test_a_key_with_another_request_is_a_mismatch(scene: Scene, change: dict[str, object]) -> None:
    """A key that comes with another wish is a fault of the caller's, not a replay and not a charge."""
    body, key = charge_body(), fresh("key")
    assert scene.client.charge(body, key=key).status == 200
    reply = scene.client.charge(body | change, key=key)
    assert_refused(reply, 422, "idempotency_mismatch")
    assert scene.gateway.count(payhere.CHARGE, str(body["order_id"])) == 1


def test_a_key_at_another_account_or_path_is_a_mismatch(scene: Scene) -> None:
    """The fingerprint covers account and path: a key is unique per principal, not per route."""
    body, key = charge_body(), fresh("key")
    assert scene.client.charge(body, key=key).status == 200
    assert_refused(scene.client.at("second").charge(body, key=key), 422, "idempotency_mismatch")
    assert_refused(scene.client.post(f"subscriptions/{fresh_number()}/retry", key=key), 422, "idempotency_mismatch")


@pytest.mark.parametrize(("one", "other"), [("1.0", "1.00"), ("1", "1.0"), ("345.6", "345.60")])
@pytest.mark.parametrize("is_keyed", [True, False])
def test_equal_amounts_are_one_request(scene: Scene, one: str, other: str, is_keyed: bool) -> None:  # noqa: FBT001
    """The fingerprint is of parsed values: 1.0 and 1.00 are one wish, in any order of members."""
    order_id, key = fresh("order"), fresh("key") if is_keyed else None
    first = scene.client.charge(charge_body(order_id, amount=Raw(text=one)), key=key)
    turned = dict(reversed(charge_body(order_id, amount=Raw(text=other)).items()))
    assert_replayed(first, scene.client.charge(turned, key=key))
    assert scene.gateway.count(payhere.CHARGE, order_id) == 1


def test_two_principals_with_one_key_are_two_wishes(scene: Scene) -> None:
    """Keys are per principal: nobody reads another's answer by guessing his key."""
    key, bodies = fresh("key"), [charge_body(), charge_body()]
    replies = [scene.client.charge(bodies[0], key=key), scene.another().charge(bodies[1], key=key)]
    assert [reply.status for reply in replies] == [200, 200]
    assert all(reply.header("idempotent-replayed") is None for reply in replies)


def test_an_equal_charge_by_another_principal_is_no_repeat(scene: Scene) -> None:
    """Without a key the fingerprint is the key, also per principal: nobody is given another's answer."""
    body = charge_body()
    assert scene.client.charge(body).status == 200
    reply = scene.another().charge(body)
    assert_refused(reply, 409, "conflict")
    assert (reply.header("idempotent-replayed"), reply.header("payrelay-operation")) == (None, None)
    assert scene.gateway.count(payhere.CHARGE, str(body["order_id"])) == 1


def test_a_deliberate_second_charge_needs_a_key(scene: Scene) -> None:
    """Equal but meant: with a key of its own it goes through."""
    body = charge_body()
    for key in (fresh("key"), fresh("key")):
        assert scene.client.charge(body, key=key).header("idempotent-replayed") is None
    assert scene.gateway.count(payhere.CHARGE, str(body["order_id"])) == 2


@pytest.mark.parametrize("is_keyed", [True, False])
def test_the_same_request_at_the_same_time_is_one_charge(scene: Scene, is_keyed: bool) -> None:  # noqa: FBT001
    """Sixteen at once: one goes upstream, the others hear "in progress" or the very answer."""
    body, key = charge_body(), fresh("key") if is_keyed else None
    with ThreadPoolExecutor(16) as pool:
        replies = [task.result() for task in [pool.submit(scene.client.charge, body, key=key) for _ in range(16)]]
    assert scene.gateway.count(payhere.CHARGE, str(body["order_id"])) == 1
    first = [reply for reply in replies if reply.status == 200 and reply.header("idempotent-replayed") is None]
    assert len(first) == 1
    for reply in replies:
        assert_envelope(reply)
        assert reply.body == first[0].body if reply.status == 200 else reply.code == "in_progress", str(reply)


def test_while_one_runs_the_repeat_is_in_progress(scene: Scene) -> None:
    """A repeat of what is still running is 409 with advice; afterwards it is the answer."""
    body, key = charge_body(), fresh("key")
    held = scene.gateway.hold(payhere.CHARGE, str(body["order_id"]))
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(scene.client.charge, body, key=key)
        held.wait_for_arrival()
        reply = scene.client.charge(body, key=key)
        held.released.set()
        first = running.result()
    assert_refused(reply, 409, "in_progress")
    assert reply.error["retry"] in {"same_key", "after"}
    assert_replayed(first, scene.client.charge(body, key=key))


def test_a_decline_begins_anew_without_a_key(scene: Scene) -> None:
    """The customer tops up and presses the same button again: that is a new try."""
    body = charge_body()
    scene.gateway.script(payhere.CHARGE, str(body["order_id"]), payhere.refuses("Card declined"))
    assert_refused(scene.client.charge(body), 402, "declined")
    assert scene.client.charge(body).status == 200
    assert scene.gateway.count(payhere.CHARGE, str(body["order_id"])) == 2


def test_a_decline_is_replayed_with_a_key(scene: Scene) -> None:
    """A key means "this try": its answer was the decline."""
    body, key = charge_body(), fresh("key")
    scene.gateway.script(payhere.CHARGE, str(body["order_id"]), payhere.refuses("Card declined"))
    first = scene.client.charge(body, key=key)
    assert_refused(first, 402, "declined")
    assert_replayed(first, scene.client.charge(body, key=key))
    assert scene.gateway.count(payhere.CHARGE, str(body["order_id"])) == 1


def test_a_refusal_begins_anew_without_a_key(scene: Scene) -> None:
    """What the gateway found wrong may be right the next time."""
    body = charge_body()
    scene.gateway.script(payhere.CHARGE, str(body["order_id"]), payhere.refuses("Invalid token"))
    assert_refused(scene.client.charge(body), 422, "invalid_request")
    assert scene.client.charge(body).status == 200


@pytest.mark.parametrize("is_keyed", [True, False])
def test_what_was_not_executed_releases_the_key(scene: Scene, is_keyed: bool) -> None:  # noqa: FBT001
    """The gateway didn't let us in: nothing happened, so the same key is sent again and succeeds."""
    body, key = charge_body(), fresh("key") if is_keyed else None
    scene.gateway.script(payhere.CHARGE, str(body["order_id"]), payhere.refuses("Authentication error", -2))
    assert_refused(scene.client.charge(body, key=key), 502, "gateway_refused_us")
    assert scene.client.charge(body, key=key).status == 200
    assert scene.gateway.count(payhere.CHARGE, str(body["order_id"])) == 2


def test_a_rejected_body_does_not_take_the_key(scene: Scene) -> None:
    """A body that was refused at the door is mended and sent with the same key."""
    body, key = charge_body(), fresh("key")
    assert_refused(scene.client.charge(body | {"amount": 0}, key=key), 422, "invalid_request")
    assert scene.client.charge(body, key=key).status == 200


@pytest.fixture(scope="module")
def windowless(tmp_path_factory: pytest.TempPathFactory, gateway: GatewayDouble) -> Iterator[Scene]:
    """A service whose repeat window is turned off."""
    folder = tmp_path_factory.mktemp("windowless")
    program = Program(folder, settings_for(gateway) | {"PAYRELAY_REPEAT_WINDOW": "0"})
    key = program.new_key("shop")
    program.start()
    yield Scene(program=program, gateway=gateway, client=program.client(key))
    program.stop()


def test_without_a_window_equal_requests_are_two_wishes(windowless: Scene) -> None:
    """`PAYRELAY_REPEAT_WINDOW=0`: only a key makes a repeat."""
    body, key = charge_body(), fresh("key")
    assert windowless.client.charge(body).header("idempotent-replayed") is None
    assert windowless.client.charge(body).header("idempotent-replayed") is None
    assert windowless.gateway.count(payhere.CHARGE, str(body["order_id"])) == 2
    assert_replayed(windowless.client.charge(body, key=key), windowless.client.charge(body, key=key))


def test_an_unknown_order_is_guarded_against_everyone(scene: Scene) -> None:
    """While it isn't known whether an order was charged, nobody charges it again, whatever his key or amount."""
    order_id, key = fresh("order"), fresh("key")
    scene.gateway.script(payhere.CHARGE, order_id, payhere.cuts)
    first = scene.client.charge(charge_body(order_id), key=key)
    assert_refused(first, 202, "outcome_unknown")
    own = scene.client.charge(charge_body(order_id, amount=Raw(text="1.00")), key=fresh("key"))
    foreign = scene.another().charge(charge_body(order_id))
    assert_refused(own, 409, "in_progress")
    assert_refused(foreign, 409, "in_progress")
    assert own.error["operation_id"] == first.error["operation_id"]
    assert "operation_id" not in foreign.error
    assert scene.gateway.count(payhere.CHARGE, order_id) == 1


def test_the_same_key_of_an_unknown_outcome_is_told_so_again(scene: Scene) -> None:
    """Not settled: 202 with the state as it now is, and nothing is sent."""
    body, key = charge_body(), fresh("key")
    scene.gateway.script(payhere.CHARGE, str(body["order_id"]), payhere.cuts)
    first, again = scene.client.charge(body, key=key), scene.client.charge(body, key=key)
    for reply in (first, again):
        assert_refused(reply, 202, "outcome_unknown")
        assert operation_of(scene.client, reply)["state"] == "unknown"
    assert scene.gateway.count(payhere.CHARGE, str(body["order_id"])) == 1


def test_the_guard_is_of_one_account_only(scene: Scene) -> None:
    """Two merchant accounts may have an order of the same name."""
    body = charge_body()
    scene.gateway.script(payhere.CHARGE, str(body["order_id"]), payhere.cuts)
    assert scene.client.charge(body).status == 202
    assert scene.client.at("second").charge(body).status == 200


def test_a_pending_charge_is_guarded(scene: Scene) -> None:
    """Pending isn't settled either."""
    order_id = fresh("order")
    scene.gateway.script(payhere.CHARGE, order_id, payhere.succeeds_with(status_code=0))
    assert_refused(scene.client.charge(charge_body(order_id)), 202, "pending")
    assert_refused(scene.another().charge(charge_body(order_id)), 409, "in_progress")


@pytest.mark.parametrize(
    ("path", "upstream"),
    [
        ("payments/capture", payhere.CAPTURE),
        ("payments/refund", payhere.REFUND),
        ("subscriptions/{id}/retry", payhere.RETRY),
        ("subscriptions/{id}", payhere.CANCEL),
    ],
)
def test_every_subject_is_guarded_while_unknown(scene: Scene, path: str, upstream: str) -> None:
    """A hold, a payment and a subscription too: a second wish on the same subject waits for the truth."""
    subject = fresh_number()
    body = {payhere.CAPTURE: capture_body(subject), payhere.REFUND: refund_body(subject)}.get(upstream)
    held = scene.gateway.hold(upstream, subject)
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(send, scene, upstream, path.format(id=subject), body)
        held.wait_for_arrival()
        second = send(scene, upstream, path.format(id=subject), body and body | {"description": "second"})
        held.released.set()
        assert running.result().status == 200
    assert_refused(second, 409, "in_progress")
    assert scene.gateway.count(upstream, subject) == 1


def send(scene: Scene, upstream: str, path: str, body: dict[str, object] | None) -> Reply:
    """The call with a key of its own."""
    key = fresh("key")
    return scene.client.delete(path, key=key) if upstream == payhere.CANCEL else scene.client.post(path, body, key=key)


@pytest.mark.parametrize(
    ("path", "upstream"), [("payments/charge", payhere.CHARGE), ("payments/capture", payhere.CAPTURE)]
)
def test_many_wishes_on_one_subject_go_one_at_a_time(scene: Scene, path: str, upstream: str) -> None:
    """Sixteen different keys on one order or hold at once: while the first stands at the gateway no other is sent."""
    subject = fresh("subject")
    held = scene.gateway.hold(upstream, subject)
    make = charge_body if upstream == payhere.CHARGE else capture_body
    with ThreadPoolExecutor(16) as pool:
        tasks = [
            pool.submit(scene.client.post, path, make(subject, amount=Raw(text=f"{place}.00")), key=fresh("key"))
            for place in range(1, 17)
        ]
        until(lambda: sum(task.done() for task in tasks) == 15, "all but one are answered")
        assert scene.gateway.count(upstream, subject) == 1
        held.released.set()
        codes = sorted(str(task.result().code) for task in tasks)
    assert codes == ["None"] + ["in_progress"] * 15


def test_a_capture_and_a_release_of_one_hold_exclude_each_other(scene: Scene) -> None:
    """The hold is the subject, whichever of the two is done with it."""
    token = fresh("hold")
    held = scene.gateway.hold(payhere.CAPTURE, token)
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(scene.client.post, "payments/capture", capture_body(token))
        held.wait_for_arrival()
        release = scene.client.post("payments/refund", {"authorization_token": token, "description": "release"})
        held.released.set()
        assert running.result().status == 200
    assert_refused(release, 409, "in_progress")


def test_a_hold_is_captured_once(scene: Scene) -> None:
    """A hold that we captured is not captured again: 409 from here, without asking."""
    token = fresh("hold")
    assert scene.client.post("payments/capture", capture_body(token)).status == 200
    again = scene.client.post("payments/capture", capture_body(token, amount=Raw(text="1.00")))
    assert_refused(again, 409, "conflict")
    assert scene.gateway.count(payhere.CAPTURE, token) == 1


def test_a_settled_order_is_open_again(scene: Scene) -> None:
    """The guard is held only while the outcome is open: another amount on the same order is a new charge."""
    order_id = fresh("order")
    assert scene.client.charge(charge_body(order_id)).status == 200
    assert scene.client.charge(charge_body(order_id, amount=Raw(text="1.00"))).status == 200
