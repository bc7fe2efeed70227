"""Who may read the metrics, of the running program."""

import http.client
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.scenarios.gateway_double import GatewayDouble
from tests.scenarios.program import Program, free_port
from tests.scenarios.stories import settings_for


def status_at(port: int, path: str = "/metrics") -> int:
    """Asks without a credential, from this machine, as a proxy without a header would."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    try:
        connection.request("GET", path)
        return connection.getresponse().status
    finally:
        connection.close()


@pytest.fixture
def program(tmp_path: Path, gateway: GatewayDouble) -> Iterator[Program]:
    """A program with the default networks, not started."""
    made = Program(tmp_path, settings_for(gateway) | {"PAYRELAY_METRICS_NETWORKS": ""})
    yield made
    made.kill()


def test_nobody_reads_the_metrics_unless_it_is_said_who(program: Program) -> None:
    """A proxy on this machine that sets no header looks like this machine: by default it opens nothing."""
    program.start()
    assert status_at(program.port) == 404


def test_the_metrics_have_an_address_of_their_own(program: Program) -> None:
    """There and only there; and nothing else is there, so that it may be open to another network."""
    own = free_port()
    program.environment |= {
        "PAYRELAY_METRICS_ADDRESS": f"127.0.0.1:{own}",
        "PAYRELAY_METRICS_NETWORKS": "127.0.0.0/8",
    }
    program.start()
    assert (status_at(own), status_at(program.port)) == (200, 404)
    assert status_at(own, "/docs") == 404
    assert program.stop() == 0
