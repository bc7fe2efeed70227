"""The demo as a program of its own: what it prints, and the gateway in it."""

import http.client
import json
import re
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from tests.scenarios.program import PAYRELAY, surroundings
from tests.scenarios.waiting import until

LAST_WORDS = "ends the"
TIMEOUT_S = 10


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

    @property
    def address(self) -> str:
        """The service's address."""
        return str(re.findall(r"service\S*\s+(http://\S+)", self.text)[0])

    @property
    def port(self) -> int:
        """The service's port."""
        return urlsplit(self.address).port or 80

    def document(self) -> Any:  # noqa: ANN401 - any JSON value
        """The service's description of its API."""
        return _answered(self.address, "GET", "/openapi.json", None)

    def ledger(self) -> Any:  # noqa: ANN401 - any JSON value
        """What really happened to the money, by the simulator."""
        return self.control("ledger")

    @property
    def gateway(self) -> str:
        """The simulator's address."""
        return str(re.findall(r"(http://\S+)/_sim/", self.text)[0])

    def control(self, order: str, content: object = None) -> Any:  # noqa: ANN401 - any JSON value
        """Gives the simulator an order, and returns its answer."""
        return _answered(self.gateway, "GET" if content is None else "POST", f"/_sim/{order}", content)


def _answered(address: str, method: str, path: str, content: object) -> Any:  # noqa: ANN401 - any JSON value
    connection = http.client.HTTPConnection(urlsplit(address).netloc, timeout=TIMEOUT_S)
    try:
        connection.request(method, path, None if content is None else json.dumps(content))
        return json.loads(connection.getresponse().read())
    finally:
        connection.close()


@contextmanager
def running_demo(folder: Path, *options: str, ended_by: signal.Signals = signal.SIGINT) -> Iterator[Demo]:
    """A running demo in a folder of its own; ``ended_by`` SIGKILL ends it as a power cut does."""
    printed = folder / "printed"
    with printed.open("wb") as output, (folder / "errors").open("wb") as errors:
        process = subprocess.Popen(
            [PAYRELAY, "demo", "--port", "0", *options], cwd=folder, env=surroundings({}), stdout=output, stderr=errors
        )
    until(lambda: LAST_WORDS in printed.read_text() or process.poll() is not None, "the demo stands")
    try:
        yield Demo(printed.read_text())
    finally:
        process.send_signal(ended_by)
        code = process.wait(15)
    assert code == (0 if ended_by is signal.SIGINT else -ended_by), (folder / "errors").read_text()
    assert "Traceback" not in (folder / "errors").read_text()
