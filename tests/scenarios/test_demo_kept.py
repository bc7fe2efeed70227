"""A demo that is kept: its world, ports and key stay from start to start, also where it was killed."""

import signal
import subprocess
from pathlib import Path

import pytest
from tests.scenarios.demo import Demo, running_demo
from tests.scenarios.http_client import Client
from tests.scenarios.program import PAYRELAY, surroundings

TOKEN = "D3A0" * 8


def charge(demo: Demo, order_id: str) -> int:
    """Charges a customer of the demo, by the key that it printed; gives the status of the answer."""
    body = {
        "type": "PAYMENT",
        "order_id": order_id,
        "items": "Tea",
        "currency": "LKR",
        "amount": 5,
        "customer_token": TOKEN,
    }
    return Client(port=demo.port, key=demo.key).post("payments/charge", body).status


def taken_for(demo: Demo, order_id: str) -> int:
    """Tells how often the gateway has taken money for an order."""
    return sum(each["order_id"] == order_id for each in demo.ledger()["entries"])


def start(folder: Path, *options: str) -> subprocess.CompletedProcess[str]:
    """Starts a demo that is to end at once."""
    command: list[str | Path] = [PAYRELAY, "demo", "--port", "0", *options]
    return subprocess.run(
        command, cwd=folder, env=surroundings({}), capture_output=True, text=True, timeout=60, check=False
    )


def test_a_kept_demo_goes_on_where_it_was_killed(tmp_path: Path) -> None:
    """The gateway's ledger and the books agree: what was charged before is known, and is not charged again."""
    with running_demo(tmp_path, "--keep", ended_by=signal.SIGKILL) as first:
        assert charge(first, "Kept-1") == 200
        first.control("clock", {"advance_s": 86_400})
        before = first.ledger()["entries"]
    with running_demo(tmp_path, "--keep") as second:
        assert second.text == first.text
        assert second.ledger()["entries"][: len(before)] == before
        assert charge(second, "Kept-1") == 200
        assert taken_for(second, "Kept-1") == 1
        assert charge(second, "Kept-2") == 200
    assert (tmp_path / ".payrelay/demo-kept.json").stat().st_mode & 0o077 == 0

    (tmp_path / ".payrelay/demo-world").write_bytes(b"damaged")
    refused = start(tmp_path, "--keep")
    assert refused.returncode == 2
    assert "what happened at the kept gateway isn't known" in refused.stderr
    assert "start without --keep to begin anew" in refused.stderr


@pytest.mark.integration
def test_a_demo_without_it_begins_anew_and_ends_what_was_kept(tmp_path: Path) -> None:
    """Nobody goes on with half of an earlier demo."""
    with running_demo(tmp_path, "--keep") as first:
        assert charge(first, "Kept-1") == 200
    with running_demo(tmp_path) as second:
        assert second.key != first.key
        assert taken_for(second, "Kept-1") == 0
    with running_demo(tmp_path, "--keep") as third:
        assert third.key not in {first.key, second.key}
        assert "stays for the next start" in third.text
