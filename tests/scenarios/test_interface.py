"""The interface as its document prints it: nine operations, each at its method and path, each in the envelope."""

import json
import re
from pathlib import Path

import pytest
from tests.scenarios import gateway_double as payhere
from tests.scenarios.http_client import Raw, Reply
from tests.scenarios.stories import (
    Scene,
    assert_envelope,
    assert_refused,
    capture_body,
    charge_body,
    fresh,
    fresh_number,
    refund_body,
)

EXAMPLES = json.loads(
    (Path(__file__).parent / "examples.json").read_text(),
    parse_float=lambda digits: Raw(text=digits),
    parse_int=lambda digits: Raw(text=digits),
)


def ask(scene: Scene, method: str, path: str) -> Reply:
    """A call without a body, or with the least body where the path needs one."""
    bodies = {"charge": charge_body, "capture": capture_body, "refund": refund_body}
    make = bodies.get(path.rpartition("/")[2]) if method == "POST" else None
    if method == "GET":
        return scene.client.get(path)
    return scene.client.post(path, make() if make else None) if method == "POST" else scene.client.delete(path)


@pytest.mark.parametrize(
    ("method", "path", "upstream", "upstream_method"),
    [
        ("GET", "payments/{id}", payhere.SEARCH, "GET"),
        ("GET", "subscriptions/{id}", payhere.SUBSCRIPTIONS + "/{id}", "GET"),
        ("GET", "subscriptions/{id}/payments", payhere.SUBSCRIPTIONS + "/{id}/payments", "GET"),
        ("POST", "subscriptions/{id}/retry", payhere.RETRY, "POST"),
        ("DELETE", "subscriptions/{id}", payhere.CANCEL, "POST"),
    ],
)
def test_each_path_with_an_id_reaches_its_upstream_call(
    scene: Scene, method: str, path: str, upstream: str, upstream_method: str
) -> None:
    """The five operations on an id become the one documented call each: the interface is relayed to the letter."""
    number = fresh_number()
    if upstream == payhere.SEARCH:
        scene.gateway.script(upstream, number, payhere.says(payhere.found(payhere.payment(number))))
    reply = ask(scene, method, path.format(id=number))
    assert reply.status == 200, str(reply)
    assert_envelope(reply)
    calls = scene.gateway.calls(upstream.format(id=number), number)
    assert [call.method for call in calls] == [upstream_method]


@pytest.mark.parametrize("kind", ["charge", "capture", "refund"])
def test_each_example_body_is_accepted_as_printed(scene: Scene, kind: str) -> None:
    """Every example of the documents is taken: a client that was built from them works unchanged."""
    for body in EXAMPLES[kind]:
        reply = scene.client.post(f"payments/{kind}", body, key=fresh("example"))
        assert reply.status == 200, f"{body}: {reply}"
        assert_envelope(reply)


def test_the_list_of_subscriptions_is_an_array(scene: Scene) -> None:
    """`GET subscriptions` answers an array also when there are none, so that a client need not special-case it."""
    scene.gateway.script(payhere.SUBSCRIPTIONS, "", payhere.says(payhere.found(msg="Found 0 subscriptions")))
    reply = scene.client.get("subscriptions", [("Cache-Control", "no-cache")])
    assert (reply.status, reply.json["data"]) == (200, []), str(reply)
    assert_envelope(reply)


def test_a_subscription_is_one_object(scene: Scene) -> None:
    """`GET subscriptions/:id` answers one subscription object, of the two readings that the interface allows."""
    number = fresh_number()
    reply = scene.client.get(f"subscriptions/{number}")
    assert (reply.status, reply.json["data"]["subscription_id"]) == (200, int(number)), str(reply)


def test_a_subscription_can_be_expanded_by_its_payments(scene: Scene) -> None:
    """`?expand=payments` adds the payments: the other reading is one parameter away."""
    number = fresh_number()
    reply = scene.client.get(f"subscriptions/{number}?expand=payments")
    assert reply.status == 200, str(reply)
    assert reply.json["data"]["payments"][0]["order_id"] == "Order0003"


@pytest.mark.parametrize("path", ["subscriptions/{id}/retry", "subscriptions/{id}"])
@pytest.mark.parametrize("body", [None, b"{}"])
def test_retry_and_cancel_take_no_body(scene: Scene, path: str, body: bytes | None) -> None:
    """No body or `{}`: both are "no parameters", and the answer's data is null."""
    send = scene.client.post if path.endswith("retry") else scene.client.delete
    reply = send(path.format(id=fresh_number()), body)
    assert (reply.status, reply.json["data"]) == (200, None), str(reply)


@pytest.mark.parametrize("path", ["subscriptions/{id}/retry", "subscriptions/{id}"])
def test_retry_and_cancel_refuse_a_body_that_says_something(scene: Scene, path: str) -> None:
    """A member that would be ignored is refused: the caller meant something by it."""
    send = scene.client.post if path.endswith("retry") else scene.client.delete
    number = fresh_number()
    reply = send(path.format(id=number), {"amount": 1})
    assert_refused(reply, 422, "invalid_request")
    assert not scene.gateway.calls(payhere.CANCEL, number) + scene.gateway.calls(payhere.RETRY, number)


def test_get_payments_charge_reads_the_order_called_charge(scene: Scene) -> None:
    """The names of the POST routes are ordinary order ids to GET."""
    scene.gateway.script(payhere.SEARCH, "charge", payhere.says(payhere.found(payhere.payment("charge"))))
    reply = scene.client.get("payments/charge")
    assert (reply.status, reply.json["data"][0]["order_id"]) == (200, "charge"), str(reply)


@pytest.mark.parametrize("path", ["", "nothing", "payments", "payments/a/b", "subscriptions/1/2", "payments/"])
def test_an_unknown_route_is_404_in_the_envelope(scene: Scene, path: str) -> None:
    """A wrong path is told apart from an unknown order only by its words; its shape is the same everywhere."""
    assert_refused(scene.client.get(path), 404, "not_found")


def test_an_unknown_account_is_404_in_the_envelope(scene: Scene) -> None:
    """A name that isn't mounted answers as any unknown route does."""
    assert_refused(scene.client.at("nobody").get("payments/1"), 404, "not_found")


@pytest.mark.parametrize(
    ("method", "path", "allowed"),
    [
        ("PUT", "payments/charge", {"GET", "POST"}),
        ("POST", "subscriptions", {"GET"}),
        ("PATCH", "subscriptions/1", {"GET", "DELETE"}),
        ("GET", "subscriptions/1/retry", {"POST"}),
        ("DELETE", "payments/1", {"GET"}),
    ],
)
def test_a_wrong_method_is_405_and_names_the_right_ones(
    scene: Scene, method: str, path: str, allowed: set[str]
) -> None:
    """405 in the envelope, with `Allow`."""
    reply = scene.client.send(method, f"/gateway/api/{path}")
    assert_refused(reply, 405, "method_not_allowed")
    assert allowed <= set(re.split(r"\s*,\s*", reply.header("allow") or "")) <= allowed | {"HEAD", "OPTIONS"}


@pytest.mark.parametrize("number", ["abc", "12a", "0x1", "12345678901234567890", "-1", "1.0", "%31%20", "%D9%A1"])
def test_a_subscription_id_of_another_form_is_404_and_nothing_is_sent(scene: Scene, number: str) -> None:
    """An id that is not 1 to 19 digits can't exist: it is answered here."""
    before = len(scene.gateway.asked)
    assert_refused(scene.client.get(f"subscriptions/{number}"), 404, "not_found")
    assert_refused(scene.client.delete(f"subscriptions/{number}"), 404, "not_found")
    assert all(number not in asked.target for asked in scene.gateway.asked[before:])


@pytest.mark.parametrize("number", ["1", "9223372036854775807", "9999999999999999999"])
def test_a_subscription_id_of_1_to_19_digits_is_sent(scene: Scene, number: str) -> None:
    """Every number of up to 19 digits is the gateway's to judge."""
    reply = scene.client.get(f"subscriptions/{number}/payments")
    assert reply.status == 200, str(reply)
