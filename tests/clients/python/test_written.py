"""The client without an event loop is written from the one with it."""

import subprocess
import sys

import pytest
from tests.sources import ROOT

pytestmark = pytest.mark.unit


@pytest.mark.process
def test_both_clients_are_the_same() -> None:
    """Whoever mends one of them only has mended half."""
    script = ROOT / "clients" / "python" / "write_sync.py"
    checked = subprocess.run([sys.executable, script, "--check"], capture_output=True, text=True, check=False)

    assert checked.stderr == ""
    assert checked.returncode == 0
