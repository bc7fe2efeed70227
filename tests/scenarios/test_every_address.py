"""Every address on which the running program listens, as the kernel tells them, under the same attacks."""

import http.client
import socket
import threading
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from tests.scenarios.gateway_double import GatewayDouble
from tests.scenarios.program import Program, free_port
from tests.scenarios.stories import settings_for
from tests.scenarios.test_many_connections import FLOOD, PLACES, SETTINGS, flood
from tests.scenarios.test_slow_callers import PATIENCE_S, drip
from tests.scenarios.waiting import until

from payrelay.api.http.sampled_lines import LINES_OF_A_KIND

HALF = b"GET /metrics HT"
REQUESTS = 100


@pytest.fixture
def every(tmp_path: Path, gateway: GatewayDouble) -> Iterator[Program]:
    """A service with every address that it can have."""
    own = {
        "PAYRELAY_CONSOLE__ENABLED": "true",
        "PAYRELAY_CONSOLE__ADDRESS": f"127.0.0.1:{free_port()}",
        "PAYRELAY_METRICS_ADDRESS": f"127.0.0.1:{free_port()}",
    }
    program = Program(tmp_path, SETTINGS | settings_for(gateway) | own).start()
    yield program
    program.kill()


def test_half_requests_shut_no_address(every: Program) -> None:
    """A flood from one address is cut down wherever it comes in, and somebody else is answered at once."""
    ports = every.ports()
    assert len(ports) == 3
    for port in ports:
        before = closed_in(every)
        with flood(port, FLOOD, HALF):
            assert isinstance(status_at(port), int)
            until(lambda: closed_in(every) - before >= FLOOD - PLACES, f"the flood at {port} is cut down")  # noqa: B023


def test_no_address_writes_a_line_for_every_request(every: Program) -> None:
    """Ten lines a minute of what one caller does without a credential, whatever is asked for and wherever."""
    for port in every.ports():
        before = len(asked_of(every))
        for _ in range(REQUESTS):
            status_at(port, "/shop/api/payments")
        assert len(asked_of(every)) - before <= LINES_OF_A_KIND


@pytest.mark.integration
def test_headers_without_end_are_ended_at_every_address(every: Program) -> None:
    """There is one limit of time, and no address is without it."""
    ports = every.ports()
    borne: list[float] = []

    def drips(port: int) -> None:
        with socket.create_connection(("127.0.0.1", port), 5) as wire:
            borne.append(drip(wire, HALF))

    for port in ports:
        threading.Thread(target=drips, args=[port], daemon=True).start()
    until(lambda: len(borne) == len(ports), "the drippers are sent away", deadline_s=PATIENCE_S + 15)
    assert max(borne) < PATIENCE_S


def asked_of(program: Program) -> list[object]:
    """The lines of requests, without that of the question at its start whether it is ready, which may come late."""
    return [line for line in program.log_lines() if line.get("route") not in {None, "/health/ready"}]


def closed_in(program: Program) -> int:
    """How many connections the program says that it closed."""
    return sum(line["count"] for line in program.log_lines() if line["event"] == "connections_closed")


def status_at(port: int, path: str = "/metrics") -> int:
    """Asks without a credential."""
    with ExitStack() as stack:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
        stack.callback(connection.close)
        connection.request("GET", path)
        return connection.getresponse().status
