import re
import signal
import subprocess
import sys

import aiohttp
import pytest

MODULE = [sys.executable, "-m", "payrelay_simulator", "--port", "0"]


@pytest.mark.story
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
async def test_program_says_where_it_is_and_ends_cleanly(number: signal.Signals) -> None:
    """One line to copy from, a working demonstration, and a clean exit on either signal."""
    with subprocess.Popen([*MODULE, "--demo", "--app-id", "mine"], stdout=subprocess.PIPE, text=True) as program:  # noqa: ASYNC220 - nothing else runs meanwhile
        assert program.stdout is not None
        line = program.stdout.readline()
        address = re.search(r"http://\S+", line)
        assert address is not None
        async with aiohttp.ClientSession() as session, session.get(f"{address[0]}/_sim/ledger") as response:
            assert (await response.json())["total"] > 0
        program.send_signal(number)

        assert program.wait(timeout=10) == 0
        assert "app_id=mine" in line
        assert program.stdout.read() == ""


@pytest.mark.story
def test_address_that_cannot_be_had_is_one_line() -> None:
    """A wrong start ends with a sentence, not with a traceback."""
    done = subprocess.run([*MODULE, "--host", "203.0.113.1"], capture_output=True, text=True, timeout=10, check=False)

    assert done.returncode == 1
    assert len(done.stderr.splitlines()) == 1
