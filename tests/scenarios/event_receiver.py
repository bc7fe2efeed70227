"""A receiver of events in a thread, which answers as it is told."""

import contextlib
import http.server
import json
import threading
from dataclasses import dataclass
from typing import Any, Self


@dataclass(frozen=True)
class ReceivedWebhook:
    """One event as it came."""

    headers: dict[str, str]
    body: bytes

    @property
    def message(self) -> dict[str, Any]:
        """What the body says."""
        said: dict[str, Any] = json.loads(self.body)
        return said


class _Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: "EventReceiver"

    def do_POST(self) -> None:
        """Takes an event."""
        body = self.rfile.read(int(self.headers["Content-Length"]))
        headers = {name.lower(): value for name, value in self.headers.items()}
        self.server.received.append(ReceivedWebhook(headers, body))
        self.send_response(self.server.statuses.pop(0) if self.server.statuses else 200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Says nothing."""


class EventReceiver(http.server.ThreadingHTTPServer):
    """Listens while the context is open."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.received: list[ReceivedWebhook] = []
        self.statuses: list[int] = []
        self._thread = threading.Thread(target=self.serve_forever, kwargs={"poll_interval": 0.02})

    def handle_error(self, *_: object) -> None:
        """Says nothing of senders that went away."""

    @property
    def url(self) -> str:
        """Where it listens."""
        return f"http://127.0.0.1:{self.server_address[1]}/events"

    def about(self, subject: str) -> list[ReceivedWebhook]:
        """What came about a subject."""
        return [one for one in self.received if one.message["subject"] == subject]

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        with contextlib.suppress(OSError):
            self.shutdown()
        self._thread.join()
        self.server_close()
