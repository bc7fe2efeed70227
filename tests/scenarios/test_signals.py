"""Signals to the real program: a hangup harms nothing, and a stop is announced before it happens."""

import http.client
import json
import signal
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from tests.scenarios import gateway_double as payhere
from tests.scenarios.gateway_double import GatewayDouble
from tests.scenarios.program import Program
from tests.scenarios.stories import Scene, charge_body, fresh, settings_for
from tests.scenarios.waiting import until

LAST_CHUNK = b"\r\n0\r\n\r\n"


@pytest.fixture
def patient(tmp_path: Path, gateway: GatewayDouble) -> Iterator[Scene]:
    """A service that goes on for a minute after the signal to stop."""
    program = Program(tmp_path, settings_for(gateway) | {"PAYRELAY_SHUTDOWN_DELAY": "60"})
    key = program.new_key("shop")
    program.start()
    yield Scene(program=program, gateway=gateway, client=program.client(key))
    program.kill()


def readiness(program: Program) -> tuple[int, str]:
    """What a load balancer is told."""
    connection = http.client.HTTPConnection("127.0.0.1", program.port, timeout=10)
    try:
        connection.request("GET", "/health/ready")
        response = connection.getresponse()
        return response.status, json.loads(response.read()).get("reason", "")
    finally:
        connection.close()


def has_logged(program: Program, event: str) -> bool:
    """Whether the log has an event."""
    return any(line["event"] == event for line in program.log_lines())


def test_a_hangup_ends_nothing(own: Scene) -> None:
    """A terminal that is closed, or a tool that wants files opened anew, must not end a payment under way."""
    order_id = fresh("order")
    held = own.gateway.hold(payhere.CHARGE, order_id)
    with ThreadPoolExecutor(1) as pool:
        charging = pool.submit(own.client.charge, charge_body(order_id))
        held.wait_for_arrival()
        own.program.send(signal.SIGHUP)
        until(lambda: has_logged(own.program, "signal_ignored"), "the hangup is logged")
        held.released.set()
        assert charging.result().status == 200
    assert readiness(own.program)[0] == 200
    assert own.program.stop() == 0


def test_a_stop_is_announced_and_requests_are_served_meanwhile(patient: Scene) -> None:
    """A load balancer goes on sending requests until it has seen that the service isn't ready: none may fail."""
    patient.program.ask_to_stop()
    until(lambda: readiness(patient.program)[0] == 503, "the service isn't ready any more")
    assert readiness(patient.program) == (503, "the service is about to stop")
    assert patient.client.charge(charge_body()).status == 200
    assert has_logged(patient.program, "stop_announced")


def test_a_second_signal_waits_no_longer(patient: Scene) -> None:
    """Whoever asks twice means it; what is under way is still finished."""
    patient.program.ask_to_stop()
    until(lambda: has_logged(patient.program, "stop_announced"), "the stop is announced")
    assert patient.program.stop() == 0


def test_a_stream_says_at_its_end_when_to_come_back(own: Scene) -> None:
    """A client that meets a bare end can't tell a restart from a fault."""
    operation_id = own.client.charge(charge_body()).header("payrelay-operation")
    with own.client.connected() as wire:
        wire.sendall(own.client.request("GET", f"events/stream?subject=operation:{operation_id}"))
        received = b""
        while b": here" not in received:
            piece = wire.recv(65_536)
            assert piece, received
            received += piece
        own.program.ask_to_stop()
        end = b""
        while not end.endswith(LAST_CHUNK):
            piece = wire.recv(65_536)
            assert piece, end
            end += piece
    assert b"retry: 2000\n: this stream ends" in end
    assert own.program.wait() == 0


def test_every_line_on_a_pipe_is_of_one_schema(own: Scene) -> None:
    """Both streams of a service, from its start to its end: a collector of logs reads each line without a rule."""
    own.client.charge(charge_body())
    own.client.get("nowhere")
    own.program.send(signal.SIGHUP)
    own.program.stop()
    lines = [json.loads(line) for line in own.program.log().splitlines()]
    assert {"serving", "request", "signal_ignored", "stopping"} <= {line["event"] for line in lines}
    assert all({"at", "level", "event"} <= line.keys() for line in lines)
