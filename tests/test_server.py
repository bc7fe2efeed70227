import json
import re
import signal
import urllib.error
import urllib.request
from pathlib import Path

import pytest
from tests.cli.commands import GATEWAY, ended, program, read_until


def status_of(address: str) -> int:
    """Gives the HTTP status that a GET gets."""
    try:
        with urllib.request.urlopen(address, timeout=10) as response:  # noqa: S310  an address of our own making
            return int(response.status)
    except urllib.error.HTTPError as error:
        with error:
            return error.code


@pytest.mark.story
def test_serve_beside_commands_and_to_its_end(tmp_path: Path) -> None:
    """One server, checked and given keys while it runs, refuses a second one and ends cleanly when it is told to.

    The check asks for an access token of its own: the server's would say that a secret is right which was exchanged.
    """
    with program(tmp_path, "simulate", "--port", "0") as simulator:
        found = re.search(r"at (\S+)", read_until(simulator.stdout, "app_id="))
        assert found is not None
        variables = {**GATEWAY, "PAYRELAY_GATEWAYS__GATEWAY__BASE_URL": found[1]}
        with program(tmp_path, "serve", "--port", "0", **variables) as server:
            address = json.loads(read_until(server.stdout, "serving"))["address"]
            assert status_of(f"{address}/health/ready") == 200
            assert status_of(f"{address}/gateway/api/subscriptions") == 401

            assert ended(tmp_path, "check", **variables).code == 0
            exchanged = variables | {"PAYRELAY_GATEWAYS__GATEWAY__APP_SECRET": "exchanged"}
            wrong = ended(tmp_path, "check", **exchanged)
            assert (wrong.code, "✗ gateway: access token: The gateway does not accept" in wrong.out) == (1, True)
            assert ended(tmp_path, "keys", "create", "--name", "shop", **variables).code == 0
            second = ended(tmp_path, "serve", "--port", "0", **variables)
            assert (second.code, second.err.count("\n")) == (2, 1)
            assert "another Payrelay process" in second.err

            port_taken = ended(
                tmp_path,
                "serve",
                "--port",
                address.rpartition(":")[2],
                **variables,
                PAYRELAY_DATABASE_URL="sqlite:///b",
            )
            assert (port_taken.code, port_taken.err.count("\n")) == (2, 1)
            assert "can't listen on 127.0.0.1:" in port_taken.err

            server.send_signal(signal.SIGTERM)
            out, err = server.communicate(timeout=30)
            assert (server.returncode, err) == (0, "")
            assert '"has_finished":true' in out
