"""A proxy between a client and the service, which loses replies at the place that it is told."""

import contextlib
import http.client
import http.server
import json
import socket
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Self

SERVICE_TIMEOUT_S: Final = 60.0
"""Longer than the service holds an answer."""
CHUNK: Final = 4096
KEY: Final = "Idempotency-Key"
HOP_BY_HOP: Final = {"connection", "keep-alive", "transfer-encoding", "host"}
_EFFECTS: Final = ("/payments/charge", "/payments/capture", "/payments/refund", "/retry", "/checkouts")


@dataclass(frozen=True)
class Seen:
    """A request as it came, with its Idempotency-Key."""

    method: str
    path: str
    key: str | None
    is_stored: bool
    """True where the key was in the store when the request came, or there is no key."""

    @property
    def moves_money(self) -> bool:
        """True for the calls that take a key."""
        path = self.path.partition("?")[0]
        if self.method == "DELETE":
            return "/subscriptions/" in path
        return self.method == "POST" and path.endswith(_EFFECTS)


@dataclass
class Script:
    """What the proxy does in one step of a story.

    Attributes:
        faults: by the number of the request, from 1.
        kill: ends the client as a power cut does.
        has_stored: tells whether the client's store holds a key.
        seen: the requests of the step so far.
    """

    faults: Mapping[int, Mapping[str, Any]]
    kill: Callable[[], None]
    has_stored: Callable[[str], bool]
    seen: list[Seen] = field(default_factory=list)


@dataclass(frozen=True)
class Reply:
    """An answer of the service, read to its end."""

    status: int
    headers: tuple[tuple[str, str], ...]
    body: bytes


class _Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: "Proxy"

    def do_GET(self) -> None:
        """Passes it on, or loses it."""
        self._serve()

    def do_POST(self) -> None:
        """Does as ``do_GET``."""
        self._serve()

    def do_PATCH(self) -> None:
        """Does as ``do_GET``."""
        self._serve()

    def do_DELETE(self) -> None:
        """Does as ``do_GET``."""
        self._serve()

    def log_message(self, *_: object) -> None:
        """Says nothing."""

    def _serve(self) -> None:
        self.close_connection = True
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        script, number = self.server.note(self.command, self.path, self.headers.get(KEY))
        fault = script.faults.get(number, {"do": "pass"})
        action = fault["do"]
        if action == "kill_before":
            script.kill()
        if action in {"drop_before", "kill_before"}:
            return
        if action == "answer":
            self._write(_own_answer(fault))
            return
        if action == "pass" and "/events/stream" in self.path:
            self._stream()
            return
        reply = self.server.forward(self.command, self.path, self.headers.items(), body)
        self._act(action, fault, script, reply)

    def _act(self, action: str, fault: Mapping[str, Any], script: Script, reply: Reply) -> None:
        """Does with an answer of the service what is told."""
        match action:
            case "kill_after":
                script.kill()
            case "drop_after":
                pass
            case "cut":
                self._write(reply, part=len(reply.body) // 2)
            case "answer_after":
                self._write(_own_answer(fault))
            case "delay":
                time.sleep(fault["seconds"])
                self._write(reply)
            case "pass":
                self._write(reply)
            case _:
                raise ValueError(f"a story tells the proxy to {action}, which it can't")

    def _write(self, reply: Reply, *, part: int | None = None) -> None:
        """Writes an answer, or its beginning under the length of the whole."""
        self.send_response(reply.status)
        for name, value in reply.headers:
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(reply.body)))
        self.send_header("Connection", "close")
        with contextlib.suppress(OSError):  # the client may have gone
            self.end_headers()
            self.wfile.write(reply.body[:part])

    def _stream(self) -> None:
        """Passes a stream on until either side ends it."""
        with contextlib.closing(self.server.connect()) as service:
            service.request(self.command, self.path, headers=_passed_on(self.headers.items()))
            answer = service.getresponse()
            self.send_response(answer.status)
            for name, value in _passed_on(answer.getheaders()).items():
                self.send_header(name, value)
            self.send_header("Connection", "close")
            with contextlib.suppress(OSError):
                self.end_headers()
                while chunk := answer.read1(CHUNK):
                    self.wfile.write(chunk)


class Proxy(http.server.ThreadingHTTPServer):
    """Listens while the context is open, on a port of its own."""

    daemon_threads = True

    def __init__(self, service_port: int) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self._service_port = service_port
        self._lock = threading.Lock()
        self._script = Script(faults={}, kill=lambda: None, has_stored=lambda _: True)
        self._thread = threading.Thread(target=self.serve_forever, kwargs={"poll_interval": 0.02})

    @property
    def address(self) -> str:
        """Where it listens."""
        return f"http://127.0.0.1:{self.server_address[1]}"

    def follow(self, script: Script) -> None:
        """Begins a step."""
        with self._lock:
            self._script = script

    def note(self, method: str, path: str, key: str | None) -> tuple[Script, int]:
        """Notes a request; gives the script and the number of the request in it."""
        with self._lock:
            script = self._script
            is_stored = key is None or script.has_stored(key)
            script.seen.append(Seen(method, path, key, is_stored))
            return script, len(script.seen)

    def connect(self) -> http.client.HTTPConnection:
        """Gives a connection to the service."""
        return http.client.HTTPConnection("127.0.0.1", self._service_port, timeout=SERVICE_TIMEOUT_S)

    def forward(self, method: str, path: str, headers: Iterable[tuple[str, str]], body: bytes) -> Reply:
        """Sends a request to the service, and reads its answer to the end."""
        with contextlib.closing(self.connect()) as service:
            service.request(method, path, body=body or None, headers=_passed_on(headers))
            answer = service.getresponse()
            return Reply(answer.status, tuple(_passed_on(answer.getheaders()).items()), answer.read())

    def handle_error(self, request: socket.socket | tuple[bytes, socket.socket], client_address: object) -> None:
        """Says nothing of clients that were killed, which is what this is for."""

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.shutdown()
        self._thread.join()
        self.server_close()


def _own_answer(fault: Mapping[str, Any]) -> Reply:
    body = fault["text"] if "text" in fault else json.dumps(fault["body"])
    kind = "text/html" if "text" in fault else "application/json"
    headers = {"Content-Type": kind} | fault.get("headers", {})
    return Reply(fault["status"], tuple(headers.items()), body.encode())


def _passed_on(headers: Iterable[tuple[str, str]]) -> dict[str, str]:
    return {name: value for name, value in headers if name.lower() not in {*HOP_BY_HOP, "content-length"}}
