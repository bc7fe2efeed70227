"""A collector of traces in a thread: takes OTLP over HTTP, as protobuf, and keeps the spans."""

import contextlib
import http.server
import threading
from dataclasses import dataclass
from typing import Any, Self

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest


@dataclass(frozen=True, kw_only=True)
class CollectedSpan:
    """One span as it came; ids are hex."""

    name: str
    kind: int
    trace_id: str
    span_id: str
    parent_id: str
    attributes: dict[str, Any]
    events: tuple[str, ...]
    links: tuple[str, ...]
    has_failed: bool
    service: str


class _Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: "TraceCollector"

    def do_POST(self) -> None:
        """Takes a batch of spans, unless it is told to hang."""
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.arrived.set()
        self.server.may_answer.wait(60)
        batch = ExportTraceServiceRequest.FromString(body)
        self.server.spans += [
            _collected(span, {each.key: each.value.string_value for each in group.resource.attributes})
            for group in batch.resource_spans
            for scope in group.scope_spans
            for span in scope.spans
        ]
        self.server.bodies.append(body)
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Says nothing."""


def _collected(span: Any, resource: dict[str, str]) -> CollectedSpan:  # noqa: ANN401 - the generated types have no stubs
    values = ((each.key, each.value) for each in span.attributes)
    return CollectedSpan(
        name=span.name,
        kind=span.kind,
        trace_id=span.trace_id.hex(),
        span_id=span.span_id.hex(),
        parent_id=span.parent_span_id.hex(),
        attributes={key: getattr(value, value.WhichOneof("value")) for key, value in values},
        events=tuple(event.name for event in span.events),
        links=tuple(link.span_id.hex() for link in span.links),
        has_failed=span.status.code == span.status.STATUS_CODE_ERROR,
        service=resource["service.name"],
    )


class TraceCollector(http.server.ThreadingHTTPServer):
    """Listens while the context is open; ``may_answer`` is cleared to let senders wait."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.spans: list[CollectedSpan] = []
        self.bodies: list[bytes] = []
        self.arrived = threading.Event()
        self.may_answer = threading.Event()
        self.may_answer.set()
        self._thread = threading.Thread(target=self.serve_forever, kwargs={"poll_interval": 0.02})

    def handle_error(self, *_: object) -> None:
        """Says nothing of senders that went away."""

    @property
    def url(self) -> str:
        """Where it listens."""
        return f"http://127.0.0.1:{self.server_address[1]}"

    def settings(self) -> dict[str, str]:
        """The environment of a program that sends it spans, a moment after they have ended."""
        return {
            "PAYRELAY_TRACING": "true",
            "OTEL_EXPORTER_OTLP_ENDPOINT": self.url,
            "OTEL_BSP_SCHEDULE_DELAY": "50",
            "OTEL_EXPORTER_OTLP_TIMEOUT": "1",
        }

    def of_trace(self, trace_id: str, name: str) -> list[CollectedSpan]:
        """The spans of a trace that have a name, in the order of their ends."""
        return [span for span in self.spans if span.trace_id == trace_id and span.name == name]

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.may_answer.set()
        with contextlib.suppress(OSError):
            self.shutdown()
        self._thread.join()
        self.server_close()
