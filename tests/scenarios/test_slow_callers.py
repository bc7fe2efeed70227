"""Callers that drip, pipeline, stay or talk nonsense: they get their due and take nothing from the others."""

import socket
import threading
import time

import pytest
from tests.scenarios import gateway_double as payhere
from tests.scenarios.http_client import encode
from tests.scenarios.stories import Scene, charge_body, fresh
from tests.scenarios.waiting import until

DRIP_S = 0.2
PATIENCE_S = 45.0  # by then a caller who never ends his request has been sent away
DRIPPERS = 40


def drip(wire: socket.socket, opening: bytes) -> float:
    """Sends one byte after another for ever; how long the service bore it."""
    began = time.monotonic()
    wire.settimeout(DRIP_S)
    try:
        wire.sendall(opening)
        while time.monotonic() - began < PATIENCE_S:
            if is_closed(wire):
                break
            wire.sendall(b"x")
    except OSError:
        pass
    return time.monotonic() - began


def is_closed(wire: socket.socket) -> bool:
    """Whether the service has hung up, watched for as long as a drip takes."""
    try:
        while wire.recv(4096):
            pass
    except TimeoutError:
        return False
    return True


@pytest.mark.integration
def test_dripping_requests_are_ended_in_bounded_time(scene: Scene) -> None:
    """Whoever sends a byte of his headers or body now and then is sent away, while everybody else is served as ever."""
    whole = scene.client.request("POST", "payments/charge", b"{" + b" " * 60_000)
    headers, body = whole[:60], whole.partition(b"\r\n\r\n")[0] + b"\r\n\r\n{"
    borne: list[float] = []

    def drips(opening: bytes) -> None:
        with scene.client.connected() as wire:
            borne.append(drip(wire, opening))

    for opening in [headers, body] * (DRIPPERS // 2):
        threading.Thread(target=drips, args=[opening], daemon=True).start()
    for _ in range(5):
        assert scene.client.charge(charge_body()).status == 200
    until(lambda: len(borne) == DRIPPERS, "the drippers are sent away", deadline_s=PATIENCE_S + 15)
    assert max(borne) < PATIENCE_S


def read_answers(wire: socket.socket, count: int) -> list[bytes]:
    """So many answers in a row, by their Content-Length."""
    answers: list[bytes] = []
    pending = b""
    while len(answers) < count:
        head, found, rest = pending.partition(b"\r\n\r\n")
        length = content_length(head) if found else 0
        if not found or len(rest) < length:
            piece = wire.recv(65536)
            assert piece, f"closed after {answers} {pending!r}"
            pending += piece
            continue
        answers.append(head + b"\r\n\r\n" + rest[:length])
        pending = rest[length:]
    return answers


def content_length(head: bytes) -> int:
    """The length that the head tells."""
    fields = dict(line.lower().split(b": ", 1) for line in head.split(b"\r\n")[1:])
    return int(fields[b"content-length"])


def test_a_connection_serves_many_requests(scene: Scene) -> None:
    """Keep-alive: one after the other on one connection, each with its own answer."""
    with scene.client.connected() as wire:
        for _ in range(3):
            order_id = fresh("order")
            wire.sendall(scene.client.request("POST", "payments/charge", encode(charge_body(order_id)).encode()))
            (answer,) = read_answers(wire, 1)
            assert answer.startswith(b"HTTP/1.1 200")
            assert order_id.encode() in answer


def test_pipelined_requests_are_answered_in_order(scene: Scene) -> None:
    """Three at once on one connection: three answers, in the order of the questions."""
    orders = [fresh("order") for _ in range(3)]
    with scene.client.connected() as wire:
        wire.sendall(
            b"".join(
                scene.client.request("POST", "payments/charge", encode(charge_body(order_id)).encode())
                for order_id in orders
            )
        )
        answers = read_answers(wire, 3)
    assert [order_id.encode() in answer for order_id, answer in zip(orders, answers, strict=True)] == [True] * 3
    assert [scene.gateway.count(payhere.CHARGE, order_id) for order_id in orders] == [1, 1, 1]


@pytest.mark.parametrize(
    "content",
    [
        b"\r\n\r\n\r\n",
        b"hello\r\n\r\n",
        b"GET / HTTP/9.9\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        b"GET /gateway/api/operations HTTP/1.1\r\n\r\n",
        b"GET /" + b"x" * 100_000 + b" HTTP/1.1\r\nHost: a\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: a\r\n" + b"X-Filler: " + b"x" * 200_000 + b"\r\n\r\n",
        b"POST /gateway/api/payments/charge HTTP/1.1\r\nHost: a\r\nContent-Length: abc\r\n\r\n",
        b"POST /gateway/api/payments/charge HTTP/1.1\r\nHost: a\r\nContent-Length: -1\r\n\r\n",
    ],
    ids=range(9),
)
def test_nonsense_on_the_wire_harms_nobody(scene: Scene, content: bytes) -> None:
    """No nonsense ends the service or is taken for a request that succeeds."""
    with scene.client.connected() as wire:
        wire.settimeout(2)
        try:
            wire.sendall(content)
            answer = wire.recv(4096)
        except (TimeoutError, ConnectionError):
            answer = b""
    assert not answer.startswith(b"HTTP/1.1 200")
    assert scene.client.get("operations").status == 200


@pytest.mark.parametrize(
    "fields",
    [
        [("Content-Length", "5"), ("Transfer-Encoding", "chunked")],
        [("Content-Length", "5"), ("Content-Length", "6")],
    ],
)
def test_an_ambiguous_length_charges_nobody(scene: Scene, fields: list[tuple[str, str]]) -> None:
    """Where two programs may disagree on where a request ends, a second one could be smuggled: it is refused."""
    order_id = fresh("order")
    hidden = scene.client.request("POST", "payments/charge", encode(charge_body(order_id)).encode())
    head = f"POST /gateway/api/payments/charge HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer {scene.client.key}\r\n"
    head += "Content-Type: application/json\r\n" + "".join(f"{name}: {value}\r\n" for name, value in fields)
    with scene.client.connected() as wire:
        wire.settimeout(2)
        try:
            wire.sendall(head.encode() + b"\r\n0\r\n\r\n" + hidden)
            answer = wire.recv(65536)
        except (TimeoutError, ConnectionError):
            answer = b""
    assert b" 200 " not in answer.split(b"\r\n")[0], answer
    assert scene.gateway.count(payhere.CHARGE, order_id) == 0


def test_many_idle_connections_keep_nobody_out(scene: Scene) -> None:
    """Two hundred connections that say nothing, and a caller is served all the same."""
    wires = [socket.create_connection(("127.0.0.1", scene.program.port), timeout=5) for _ in range(200)]
    try:
        assert scene.client.charge(charge_body()).status == 200
    finally:
        for wire in wires:
            wire.close()
