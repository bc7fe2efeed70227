"""The first minute of somebody new: the demo starts, and every call that it prints works as printed."""

import http.client
import json
import re
import shlex
import signal
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from tests.scenarios.http_client import Client, Reply
from tests.scenarios.program import PAYRELAY, surroundings
from tests.scenarios.stories import assert_envelope
from tests.scenarios.waiting import until

OPERATIONS = 9
LAST_WORDS = "ends the"


@dataclass(frozen=True)
class Demo:
    """What the demo printed."""

    text: str

    @property
    def key(self) -> str:
        """The key for the calls."""
        return str(re.findall(r"prk_\w+", self.text)[0])

    @property
    def calls(self) -> list[str]:
        """The commands to copy."""
        return re.findall(r"^curl (?:.*\\\n)*.*$", self.text, re.MULTILINE)

    def ledger(self) -> Any:  # noqa: ANN401 - any JSON value
        """What really happened to the money, by the simulator."""
        (address,) = re.findall(r"http://\S+/_sim/", self.text)
        split = urlsplit(address)
        connection = http.client.HTTPConnection(split.netloc, timeout=10)
        try:
            connection.request("GET", f"{split.path}ledger")
            return json.loads(connection.getresponse().read())
        finally:
            connection.close()


def play(command: str) -> Reply:
    """Does what the shell and curl would do with the command."""
    words = shlex.split(command.replace("\\\n", " "))
    address = urlsplit(next(word for word in words if word.startswith("http")))
    values = {
        option: [words[at + 1] for at, word in enumerate(words) if word == option] for option in ("-X", "-H", "-d")
    }
    headers = [(name, value.strip()) for name, _, value in (header.partition(":") for header in values["-H"])]
    content = values["-d"][0].encode() if values["-d"] else None
    method = values["-X"][0] if values["-X"] else "GET"
    return Client(port=int(address.port or 80), key=None).send(method, address.path, content, headers)


@pytest.fixture
def demo(tmp_path: Path) -> Iterator[Demo]:
    """A running demo in a folder of its own."""
    printed = tmp_path / "printed"
    with printed.open("wb") as output, (tmp_path / "errors").open("wb") as errors:
        process = subprocess.Popen(
            [PAYRELAY, "demo", "--port", "0"], cwd=tmp_path, env=surroundings({}), stdout=output, stderr=errors
        )
    until(lambda: LAST_WORDS in printed.read_text() or process.poll() is not None, "the demo stands")
    try:
        yield Demo(printed.read_text())
    finally:
        process.send_signal(signal.SIGINT)
        code = process.wait(15)
    assert code == 0, (tmp_path / "errors").read_text()
    assert "Traceback" not in (tmp_path / "errors").read_text()


@pytest.mark.smoke
def test_each_printed_call_works_and_can_be_repeated(demo: Demo) -> None:
    """All nine operations, last one first, and each once more: 200 every time, and the money moved once."""
    assert len(demo.calls) == OPERATIONS
    for command in reversed(demo.calls):
        reply = play(command)
        assert reply.status == 200, f"{command}: {reply}"
        assert_envelope(reply)
    before = demo.ledger()
    for command in demo.calls:
        assert play(command).status == 200, command
    assert demo.ledger() == before
