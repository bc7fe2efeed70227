"""One caller who wants everything: half requests without end, from an address that others have too."""

import socket
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
from tests.scenarios.gateway_double import GatewayDouble
from tests.scenarios.phones import token_for
from tests.scenarios.program import Program
from tests.scenarios.stories import Scene, assert_refused, charge_body, fresh, settings_for
from tests.scenarios.test_notifications import listed, post, signed
from tests.scenarios.waiting import until

from payrelay.api.http.sampled_lines import LINES_OF_A_KIND
from payrelay.api.public.refused_senders import OF_AN_ADDRESS_MAX

STRANGER = "127.0.0.2"
PLACES = 8
SETTINGS = {"PAYRELAY_ADDRESS_CONNECTIONS_MAX": str(PLACES), "PAYRELAY_PRINCIPAL_CONNECTIONS_MAX": str(PLACES)}
FLOOD = 100
HALF = b"POST /gateway/notifications HT"


@pytest.fixture
def small(tmp_path: Path, gateway: GatewayDouble) -> Iterator[Scene]:
    """A service that gives one address and one principal few places."""
    program = Program(tmp_path, settings_for(gateway) | SETTINGS)
    key = program.new_key("shop")
    program.start()
    yield Scene(program=program, gateway=gateway, client=program.client(key))
    program.stop()


@contextmanager
def flood(port: int, count: int, sent: bytes) -> Iterator[list[socket.socket]]:
    """Opens connections from one other address, and begins a request on each of them."""
    with ExitStack() as stack:
        wires = []
        for _ in range(count):
            wire = stack.enter_context(socket.create_connection(("127.0.0.1", port), 5, (STRANGER, 0)))
            wire.sendall(sent)
            wires.append(wire)
        yield wires


def closed_in(scene: Scene) -> int:
    """How many connections the service says that it closed."""
    return sum(line["count"] for line in scene.program.log_lines() if line["event"] == "connections_closed")


def test_half_requests_of_one_address_keep_nobody_out(small: Scene) -> None:
    """A stranger opens more connections than it may have; a shop pays, and a guest sees the docs."""
    with flood(small.program.port, FLOOD, HALF):
        assert small.client.charge(charge_body()).status == 200
        assert small.program.client(None).send("GET", "/docs").status == 200
        until(lambda: closed_in(small) >= FLOOD - PLACES, "the flood is cut down")
    closed = [line for line in small.program.log_lines() if line["event"] == "connections_closed"]
    assert {(line["reason"], line["owner"]) for line in closed} == {("too_many_of_address", STRANGER)}


def test_a_key_is_served_at_the_address_of_a_flood(small: Scene) -> None:
    """Mobile carriers share addresses: whoever shows a valid key is served beside the flood, and stays."""
    request = small.client.request("GET", "operations")
    with socket.create_connection(("127.0.0.1", small.program.port), 5, (STRANGER, 0)) as shop:
        shop.sendall(request)
        assert shop.recv(65_536).startswith(b"HTTP/1.1 200")
        with flood(small.program.port, FLOOD, HALF):
            shop.sendall(request)
            assert shop.recv(65_536).startswith(b"HTTP/1.1 200")
            with socket.create_connection(("127.0.0.1", small.program.port), 5, (STRANGER, 0)) as another:
                another.sendall(request)
                assert another.recv(65_536).startswith(b"HTTP/1.1 200")


def test_a_forged_forwarded_address_counts_for_nothing(small: Scene) -> None:
    """An address that no setting trusts can't divide its connections among invented clients."""
    rest = b"Content-Type: application/x-www-form-urlencoded\r\nContent-Length: 9\r\n\r\n"

    def forged(number: int) -> bytes:
        head = f"POST /gateway/notifications HTTP/1.1\r\nHost: a\r\nX-Forwarded-For: 198.51.100.{number}\r\n"
        return head.encode() + rest

    with flood(small.program.port, FLOOD, b"") as wires:
        for number, wire in enumerate(wires):
            try:
                wire.sendall(forged(number))
            except OSError:  # closed already
                continue
        until(lambda: "connections_closed" in small.program.log(), "the flood is cut down")
        assert small.client.charge(charge_body()).status == 200
    closed = [line for line in small.program.log_lines() if line["event"] == "connections_closed"]
    assert {line["owner"] for line in closed} == {STRANGER}


def test_phones_leave_streams_to_their_shop_and_to_others(small: Scene) -> None:
    """A limit for each token would give a shop as many streams as it issues tokens: they share a part of its share.

    An order that has none yet gets its first ones beside that part, until there are as many as the shop's share has.
    """
    orders = [small.client.charge(charge_body()) for _ in range(PLACES + 1)]
    subjects = [f"events/stream?subject=operation:{order.header('payrelay-operation')}" for order in orders]
    scopes = ["events:read", "operations:read"]
    phones = [token_for(small.client, order_id=order.json["data"]["order_id"], scopes=scopes) for order in orders]
    with ExitStack() as stack:
        for phone, subject in zip(phones[:-1], subjects, strict=False):
            wire = stack.enter_context(socket.create_connection(("127.0.0.1", phone.port), 20))
            wire.sendall(phone.request("GET", subject))
            assert wire.recv(12) == b"HTTP/1.1 200"
        assert_refused(phones[-1].get(subjects[-1]), 429, "rate_limited")
        assert small.client.get("operations").status == 200
        assert small.another("--scope", "operations:read").get("operations").status == 200


def test_forged_notifications_fill_nothing(small: Scene) -> None:
    """A hundred forged notifications leave as many rows as an operator reads; a genuine one is stored all the same."""
    forged = [signed(fresh("order")).replace(b"345.67", b"1.00") for _ in range(FLOOD)]
    assert {post(small.client, body).status for body in forged} == {403}
    assert post(small.client, signed(fresh("order"))).status == 200
    states = [row["state"] for row in listed(small.program, "--limit", "100")]
    assert states.count("refused") == OF_AN_ADDRESS_MAX
    assert len(states) == OF_AN_ADDRESS_MAX + 1


def test_a_flood_of_refused_requests_fills_no_log(small: Scene) -> None:
    """Ten lines of a kind, and when the service ends the number of the others."""
    for _ in range(FLOOD):
        assert small.program.client("prk_sandbox_wrong").send("GET", "/nothing").status == 404
    assert small.program.stop() == 0
    lines = [line for line in small.program.log_lines() if line.get("status") == 404]
    assert [line["event"] for line in lines] == ["request"] * LINES_OF_A_KIND + ["lines_left_out"]
    assert lines[-1]["count"] == FLOOD - LINES_OF_A_KIND
