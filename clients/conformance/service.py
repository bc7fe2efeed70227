"""The service and the simulator as programs of their own, for all stories of a run."""

import contextlib
import http.client
import http.server
import json
import os
import re
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlencode, urlsplit

PAYRELAY: Final = Path(sys.executable).parent / "payrelay"
START_S_MAX: Final = 60.0
POLL_S: Final = 0.05
CALL_S_MAX: Final = 30.0
GATEWAY_TIMEOUT_S: Final = 2
OLD_S: Final = "1700000000"
"""A time of webhooks that is long over, in seconds since 1970."""
PREFIX: Final = "PAYRELAY_GATEWAYS__GATEWAY__"
ACCOUNT: Final = "/gateway/api"


@dataclass(frozen=True)
class Service:
    """A running service, and the simulator behind it."""

    port: int
    key: str
    simulator: str

    def call(self, method: str, path: str, body: object = None) -> Any:  # noqa: ANN401 - what JSON has
        """Calls the service directly, and gives ``data``."""
        headers = {"Authorization": f"Bearer {self.key}", "Content-Type": "application/json"}
        return _json(method, f"http://127.0.0.1:{self.port}{ACCOUNT}{path}", body, headers)["data"]

    def simulate(self, method: str, path: str, body: object = None) -> Any:  # noqa: ANN401 - what JSON has
        """Calls the simulator's control API."""
        return _json(method, f"{self.simulator}/_sim/{path}", body, {"Content-Type": "application/json"})

    def pay(self, form: dict[str, Any], card: str) -> None:
        """Plays a customer who fills in the gateway's page."""
        origin = {"Referer": "http://127.0.0.1/", "Content-Type": "application/x-www-form-urlencoded"}
        visit = _exchange("POST", form["action"], urlencode(form["fields"]).encode(), origin)[1]["location"]
        address = visit if visit.startswith("http") else self.simulator + visit
        card_fields = {"cardHolderName": "S Perera", "cardNo": card, "cardExpiry": "12/29", "cardSecureId": "123"}
        _exchange("POST", f"{address}/pay", urlencode(card_fields).encode(), origin)

    def delivery(self) -> dict[str, Any]:
        """Registers an endpoint, has an event sent to it, and gives what came.

        That is ``secret``, ``headers``, ``old_headers`` and ``body``. Each call has a new one, since a signature is
        good for minutes only.
        """
        came: list[dict[str, Any]] = []

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                """Takes it."""
                body = self.rfile.read(int(self.headers["Content-Length"]))
                came.append({"headers": dict(self.headers.items()), "body": body.decode()})
                self.send_response(204)
                self.end_headers()

            def log_message(self, *_: object) -> None:
                """Says nothing."""

        with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as receiver:
            threading.Thread(target=receiver.serve_forever, daemon=True).start()
            url = f"http://127.0.0.1:{receiver.server_address[1]}/hooks"
            endpoint = self.call("POST", "/endpoints", {"url": url, "types": ["endpoint.*"]})
            self.call("POST", f"/endpoints/{endpoint['id']}/test")
            _until(lambda: bool(came), "the service sends a webhook")
            self.call("DELETE", f"/endpoints/{endpoint['id']}")
            receiver.shutdown()
        headers = came[0]["headers"]
        old = {name: OLD_S if name.lower() == "webhook-timestamp" else value for name, value in headers.items()}
        return came[0] | {"secret": endpoint["secret"], "old_headers": old}


@contextmanager
def running_service(folder: Path) -> Iterator[Service]:
    """Starts both in a folder, and ends them."""
    with contextlib.ExitStack() as stack:
        simulator = stack.enter_context(_simulator(folder))
        _json("POST", f"{simulator['base_url']}/_sim/switches", {"rate_limit_calls": 0}, {})
        port = _free_port()
        environment = _environment(folder, simulator, port)
        key = _command(folder, environment, "keys", "create", "--name", "shop").strip()
        serve = [str(PAYRELAY), "serve", "--host", "127.0.0.1", "--port", str(port)]
        stack.enter_context(_program(serve, folder, environment, folder / "service.log"))
        _until_answered(f"http://127.0.0.1:{port}/health/ready", folder / "service.log")
        yield Service(port=port, key=key, simulator=simulator["base_url"])


def _environment(folder: Path, simulator: dict[str, str], port: int) -> dict[str, str]:
    own = {name: os.environ[name] for name in ("PATH", "HOME", "LANG", "TMPDIR") if name in os.environ}
    gateway = {
        "BASE_URL": simulator["base_url"],
        "APP_ID": simulator["app_id"],
        "APP_SECRET": simulator["app_secret"],
        "MERCHANT_ID": simulator["merchant_id"],
        "MERCHANT_SECRET": simulator["merchant_secret"],
        "SIGNS_ELSEWHERE": "false",
        "RATE_LIMIT": "off",
        "TIMEOUT_S": str(GATEWAY_TIMEOUT_S),
    }
    return (
        own
        | {f"{PREFIX}{name}": value for name, value in gateway.items()}
        | {
            "PAYRELAY_DATABASE_URL": f"sqlite:///{folder}/payrelay.db",
            "PAYRELAY_PUBLIC_URL": f"http://127.0.0.1:{port}",
            "PAYRELAY_EVENTS__ALLOWED_HOSTS": "127.0.0.1",
        }
    )


@contextmanager
def _simulator(folder: Path) -> Iterator[dict[str, str]]:
    log = folder / "simulator.log"
    port = _free_port()
    command = [sys.executable, "-m", "payrelay_simulator", "--demo", "--port", str(port)]
    environment = {name: os.environ[name] for name in ("PATH", "HOME", "LANG", "TMPDIR") if name in os.environ}
    with _program(command, folder, environment, log):
        base_url = f"http://127.0.0.1:{port}"
        _until_answered(f"{base_url}/_sim/clock", log)
        yield {"base_url": base_url} | _credentials(log.read_text())


def _credentials(line: str) -> dict[str, str]:
    """Reads the credentials from the line that the simulator prints."""
    found = dict(re.findall(r"(app_id|app_secret|merchant_id|merchant_secret)[=: \"]+([^\s\",]+)", line))
    if len(found) != len(("app_id", "app_secret", "merchant_id", "merchant_secret")):
        raise RuntimeError(f"the simulator printed something else: {line}")
    return found


def _command(folder: Path, environment: dict[str, str], *arguments: str) -> str:
    return subprocess.run(  # noqa: S603 - our own program
        [PAYRELAY, *arguments], cwd=folder, env=environment, capture_output=True, text=True, check=True
    ).stdout


@contextmanager
def _program(
    command: Sequence[str | Path], folder: Path, environment: dict[str, str], log: Path
) -> Iterator[subprocess.Popen[bytes]]:
    with log.open("wb") as output:
        process = subprocess.Popen(  # noqa: S603 - our own programs
            command, cwd=folder, env=environment, stdin=subprocess.DEVNULL, stdout=output, stderr=output
        )
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def _until_answered(address: str, log: Path) -> None:
    def is_answered() -> bool:
        try:
            return _exchange("GET", address, None, {})[0] == http.HTTPStatus.OK
        except OSError:
            return False

    _until(is_answered, f"{address} answers; {log} says why not")


def _until(condition: Any, what: str) -> None:  # noqa: ANN401 - a function without arguments
    end = time.monotonic() + START_S_MAX
    while not condition():
        if time.monotonic() > end:
            raise TimeoutError(f"not in {START_S_MAX} s: {what}")
        time.sleep(POLL_S)


def _json(method: str, address: str, body: object, headers: dict[str, str]) -> Any:  # noqa: ANN401 - what JSON has
    sent = None if body is None else json.dumps(body).encode()
    status, _, text = _exchange(method, address, sent, headers)
    if status != http.HTTPStatus.OK:
        raise RuntimeError(f"{method} {address}: {status} {text.decode()}")
    return json.loads(text)


def _exchange(
    method: str, address: str, body: bytes | None, headers: dict[str, str]
) -> tuple[int, dict[str, str], bytes]:
    parts = urlsplit(address)
    connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=CALL_S_MAX)
    with contextlib.closing(connection):
        target = f"{parts.path}?{parts.query}" if parts.query else parts.path
        connection.request(method, target, body=body, headers=headers)
        answer = connection.getresponse()
        return answer.status, {name.lower(): value for name, value in answer.getheaders()}, answer.read()


def _free_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port: int = taken.getsockname()[1]
        return port
