"""Events on the real program: registered, sent and signed, read as a feed, and followed as they happen."""

import json
import socket
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from standardwebhooks import Webhook
from tests.scenarios import gateway_double as payhere
from tests.scenarios.event_receiver import EventReceiver
from tests.scenarios.gateway_double import GatewayDouble
from tests.scenarios.http_client import Client, Reply
from tests.scenarios.program import Program
from tests.scenarios.stories import Scene, assert_refused, charge_body, fresh, settings_for
from tests.scenarios.waiting import until

from payrelay.flows.events.read_events import FOLLOWERS_OF_CLIENT_TOKEN_MAX

LEAVES_WITHIN_S = 2.0
ENDS_WITHIN_S = 6.0
LAST_CHUNK = b"0\r\n"


@pytest.fixture(scope="module")
def receiver() -> Iterator[EventReceiver]:
    """Takes what it is sent."""
    with EventReceiver() as listening:
        yield listening


@pytest.fixture(scope="module")
def telling(tmp_path_factory: pytest.TempPathFactory, gateway: GatewayDouble) -> Iterator[Scene]:
    """A service that may send to this machine."""
    allowed = {"PAYRELAY_EVENTS__ALLOWED_HOSTS": "127.0.0.1"}
    program = Program(tmp_path_factory.mktemp("telling"), settings_for(gateway) | allowed)
    key = program.new_key("shop")
    program.start()
    yield Scene(program=program, gateway=gateway, client=program.client(key))
    program.stop()


def change(client: Client, endpoint_id: str, body: object) -> Reply:
    """Changes an endpoint."""
    fields = [("Content-Type", "application/json")]
    path = f"/{client.account}/api/endpoints/{endpoint_id}"
    return client.send("PATCH", path, json.dumps(body).encode(), fields)


def feed(client: Client, query: str = "") -> dict[str, Any]:
    """Reads a page."""
    reply = client.get(f"events{query}")
    assert reply.status == 200, str(reply)
    page: dict[str, Any] = reply.json["data"]
    return page


def paid(client: Client) -> str:
    """Charges a customer; gives the subject of what is told of it."""
    reply = client.charge(charge_body())
    assert reply.status == 200, str(reply)
    return f"operation:{reply.header('payrelay-operation')}"


@pytest.mark.smoke
def test_a_payment_is_told_to_an_endpoint_soon(telling: Scene, receiver: EventReceiver) -> None:
    """Within two seconds of its commit, signed with the secret that was shown once."""
    made = telling.client.post("endpoints", {"url": receiver.url, "types": ["operation.*"], "label": "orders"})
    endpoint = made.json["data"]
    subject = paid(telling.client)
    began_s = time.monotonic()
    until(lambda: bool(receiver.about(subject)), "the event has come")
    assert time.monotonic() - began_s < LEAVES_WITHIN_S

    [received] = receiver.about(subject)
    message = Webhook(endpoint["secret"]).verify(received.body, received.headers)
    assert message["type"] == "operation.succeeded"
    assert (message["data"]["amount"], message["data"]["currency"]) == ("345.67", "LKR")
    shown = telling.client.get(f"endpoints/{endpoint['id']}").json["data"]
    assert "secret" not in shown
    assert endpoint["secret"] not in telling.program.log()
    until(
        lambda: telling.client.get(f"endpoints/{endpoint['id']}/deliveries").json["data"][0]["state"] == "delivered",
        "the delivery is noted",
    )
    assert telling.client.delete(f"endpoints/{endpoint['id']}").status == 200
    assert_refused(telling.client.get(f"endpoints/{endpoint['id']}"), 404, "not_found")


def test_the_life_of_an_endpoint(telling: Scene, receiver: EventReceiver) -> None:
    """Each route of it, as an owner uses them, and as another principal would like to."""
    client, other = telling.client, telling.another()
    endpoint = client.post("endpoints", {"url": receiver.url, "types": ["checkout.*"]}).json["data"]
    at = f"endpoints/{endpoint['id']}"
    assert [one["id"] for one in client.get("endpoints").json["data"]] == [endpoint["id"]]
    assert change(client, endpoint["id"], {"state": "paused"}).json["data"]["state"] == "paused"
    assert change(client, endpoint["id"], {"state": "active", "label": None}).json["data"]["reason"] is None
    rotated = client.post(f"{at}/rotate").json["data"]
    assert rotated["secret"] != endpoint["secret"]
    tested = client.post(f"{at}/test").json["data"]["event_id"]
    until(lambda: any(one.headers["webhook-id"] == tested for one in receiver.received), "the test has come")
    [received] = [one for one in receiver.received if one.headers["webhook-id"] == tested]
    for secret in (endpoint["secret"], rotated["secret"]):
        Webhook(secret).verify(received.body, received.headers)
    assert client.post(f"{at}/replay", {"ids": [tested]}).json["data"]["events"] == 1
    until(lambda: len([1 for one in receiver.received if one.headers["webhook-id"] == tested]) == 2, "it came again")

    assert other.get("endpoints").json["data"] == []
    for reply in (
        other.get(at),
        change(other, endpoint["id"], {"state": "stopped"}),
        other.delete(at),
        other.post(f"{at}/rotate"),
        other.post(f"{at}/test"),
        other.post(f"{at}/replay", {"since": "2026-01-01T00:00:00Z"}),
        other.get(f"{at}/deliveries"),
    ):
        assert_refused(reply, 404, "not_found")
    assert change(client, endpoint["id"], {"state": "stopped"}).json["data"]["state"] == "stopped"
    assert_refused(client.post(f"{at}/test"), 409, "conflict")
    assert client.delete(at).json["data"] is None


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({}, "url"),
        ({"url": "http://shop.example/events"}, "url"),
        ({"url": "https://10.0.0.1/events"}, "url"),
        ({"url": "https://shop.example/", "types": ["operations.*"]}, "types[0]"),
        ({"url": "https://shop.example/", "types": []}, "types"),
        ({"url": "https://shop.example/", "secret": "mine"}, "secret"),
        ({"url": 7}, "url"),
    ],
)
def test_what_is_wrong_with_an_endpoint_is_named(telling: Scene, body: object, field: str) -> None:
    """Where somebody can mend it."""
    reply = telling.client.post("endpoints", body)
    assert_refused(reply, 422, "invalid_request")
    assert [one["path"] for one in reply.error["fields"]] == [field]


def test_a_feed_is_read_on_from_where_it_ended(telling: Scene) -> None:
    """For those without a server: every event once, in its order, and nobody else's."""
    client, other = telling.another(), telling.another()
    subjects = [paid(client) for _ in range(3)]
    until(lambda: len(feed(client)["events"]) == 3, "they are published")
    page = feed(client, "?limit=2")
    assert [one["subject"] for one in page["events"]] == subjects[:2]
    rest = feed(client, f"?after={page['next']}")
    assert [one["subject"] for one in rest["events"]] == subjects[2:]
    assert feed(client, f"?after={rest['next']}") == {"events": [], "next": rest["next"]}
    assert [one["subject"] for one in feed(client, f"?subject={subjects[1]}")["events"]] == [subjects[1]]
    assert len(feed(client, "?type=operation.succeeded")["events"]) == 3
    assert feed(client, "?type=checkout.*")["events"] == []
    assert feed(other)["events"] == []
    assert_refused(client.get("events?type=operations.*"), 422, "invalid_request")
    assert_refused(client.get("events?after=-1"), 422, "invalid_request")
    assert_refused(telling.another("--scope", "payments:read").get("events"), 403, "forbidden")


def test_whoever_would_rather_wait_hears_of_the_next_event(telling: Scene) -> None:
    """One request in place of many, answered as soon as there is something to tell."""
    client = telling.another()
    end = feed(client)["next"]
    with ThreadPoolExecutor() as pool:
        waiting = pool.submit(client.get, f"events?after={end}", [("Prefer", "wait=30")])
        began_s = time.monotonic()
        subject = paid(client)
        reply = waiting.result()
    assert time.monotonic() - began_s < LEAVES_WITHIN_S
    assert [one["subject"] for one in reply.json["data"]["events"]] == [subject]
    assert reply.header("preference-applied") == "wait=30"
    late = client.get(f"events?after={reply.json['data']['next']}", [("Prefer", "wait=1")])
    assert late.json["data"]["events"] == []


class Follower:
    """One who follows by server-sent events, on a bare connection."""

    def __init__(self, client: Client, query: str, *headers: tuple[str, str]) -> None:
        self._wire = socket.create_connection(("127.0.0.1", client.port), timeout=20)
        self._wire.sendall(client.request("GET", f"events/stream?{query}", headers=headers))
        self.file = self._wire.makefile("rb")

    def read_until(self, mark: bytes) -> bytes:
        """Reads up to a line that begins so."""
        read = b""
        for line in self.file:
            read += line
            if line.startswith(mark):
                return read
        return read

    def close(self) -> None:
        """Hangs up."""
        self.file.close()
        self._wire.close()


def lost(scene: Scene, client: Client) -> tuple[str, str]:
    """Charges, and loses the answer; gives the order and the operation."""
    order_id = fresh("order")
    scene.gateway.script(payhere.CHARGE, order_id, payhere.cuts)
    reply = client.charge(charge_body(order_id))
    assert reply.status == 202
    return order_id, reply.json["error"]["operation_id"]


def test_an_app_follows_its_payment_to_its_end(telling: Scene) -> None:
    """First what is known, then what comes; whoever comes again goes on where it was."""
    client = telling.another()
    order_id, operation_id = lost(telling, client)
    follower = Follower(client, f"subject=operation:{operation_id}")
    head = follower.read_until(b": here")
    assert head.startswith(b"HTTP/1.1 200")
    assert b"content-type: text/event-stream" in head.lower()
    assert b"event: operation.unknown" in follower.read_until(b"data:")
    record = payhere.payment_now(order_id, "345.67")
    telling.gateway.always(payhere.SEARCH, order_id, payhere.says(payhere.found(record)))
    told = follower.read_until(b"data:")
    while b"operation.succeeded" not in told:
        told = follower.read_until(b"data:")
        assert told
    position = told.partition(b"id: ")[2].partition(b"\n")[0].decode()
    follower.close()

    again = Follower(client, f"subject=operation:{operation_id}", ("Last-Event-ID", str(int(position) - 1)))
    assert b"event: operation.succeeded" in again.read_until(b"data:")
    again.close()


def test_nobody_follows_what_is_not_his(telling: Scene) -> None:
    """Nor what is nothing."""
    client = telling.another()
    _, operation_id = lost(telling, client)
    stranger = telling.another()
    assert_refused(stranger.get(f"events/stream?subject=operation:{operation_id}"), 404, "not_found")
    assert_refused(client.get("events/stream"), 422, "invalid_request")
    assert_refused(client.get("events/stream?subject=customer:cus_1"), 422, "invalid_request")
    assert_refused(client.holding(None).get(f"events/stream?subject=operation:{operation_id}"), 401, "unauthenticated")


def test_a_stream_and_a_wait_end_with_their_token(telling: Scene) -> None:
    """Who took a phone's token watches no longer than it takes to revoke it, and one phone takes not all the room."""
    server = telling.another()
    order_id, operation_id = lost(telling, server)
    token = server.post("client-tokens", {"order_id": order_id, "scopes": ["events:read", "operations:read"]})
    phone = server.holding(token.json["data"]["token"])
    following = [Follower(phone, f"subject=operation:{operation_id}") for _ in range(FOLLOWERS_OF_CLIENT_TOKEN_MAX)]
    for follower in following:
        follower.read_until(b"data:")
    another = server.post("client-tokens", {"order_id": order_id, "scopes": ["events:read", "operations:read"]})
    for one_more in (phone, server.holding(another.json["data"]["token"])):
        refused = one_more.get(f"events/stream?subject=operation:{operation_id}")
        assert_refused(refused, 429, "rate_limited")
    with ThreadPoolExecutor() as pool:
        waiting = pool.submit(phone.get, f"operations/{operation_id}", [("Prefer", "wait=3")])
        assert server.delete(f"client-tokens/{token.json['data']['id']}").status == 200
        began_s = time.monotonic()
        for follower in following:
            assert follower.read_until(LAST_CHUNK).endswith(LAST_CHUNK)
            follower.close()
        assert time.monotonic() - began_s < ENDS_WITHIN_S
        assert_refused(waiting.result(), 401, "unauthenticated")


def test_a_clean_stop_ends_streams_and_a_kill_loses_no_event(tmp_path: Path, gateway: GatewayDouble) -> None:
    """What was committed before the power went is told when it is back."""
    allowed = {"PAYRELAY_EVENTS__ALLOWED_HOSTS": "127.0.0.0/8"}
    program = Program(tmp_path, settings_for(gateway) | allowed)
    key = program.new_key("shop")
    with EventReceiver() as receiver:
        client = program.start().client(key)
        scene = Scene(program=program, gateway=gateway, client=client)
        client.post("endpoints", {"url": receiver.url})
        subjects = [paid(client) for _ in range(20)]
        program.kill()
        client = program.start().client(key)
        # What the dead process had taken is due again when its time is over; what it had not is due now.
        until(
            lambda: set(subjects) <= {one.message["subject"] for one in receiver.received},
            "all events have come",
            deadline_s=60,
        )
        _, operation_id = lost(scene, client)
        follower = Follower(client, f"subject=operation:{operation_id}")
        follower.read_until(b"data:")
        assert program.stop() == 0
        assert follower.file.read() is not None
        follower.close()
