"""Spans by OpenTelemetry, sent as OTLP over HTTP. Imported only where tracing is on: its libraries are an extra.

The standard variables of OpenTelemetry (``OTEL_…``) are read by its own libraries. Spans wait in a bounded queue for a
thread, which sends them. Where the queue is full, spans are dropped; the libraries say so in the log.
"""

import asyncio
import threading
from collections.abc import Awaitable, Iterator, Mapping
from contextlib import contextmanager, suppress
from importlib.metadata import version
from types import SimpleNamespace
from typing import Final, TypeVar, cast

import aiohttp
import structlog
from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.trace import Link, SpanKind, StatusCode
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator
from structlog.typing import EventDict, FilteringBoundLogger, WrappedLogger

from payrelay.tracing.spans import Attribute, Span

T = TypeVar("T")

CLOSE_WITHIN_S: Final = 2.0
"""How long a stop waits for the collector to take the last spans."""
SERVICE_NAME: Final = "payrelay"
"""The name of the service in traces, unless OTEL_SERVICE_NAME gives another one."""
TRACEPARENT: Final = "traceparent"
TRACESTATE: Final = "tracestate"

_OUTSIDE: Final = Context()
_propagator: Final = TraceContextTextMapPropagator()


class RecordedSpan:
    """A span of OpenTelemetry's."""

    __slots__ = ("_span",)

    def __init__(self, span: trace.Span) -> None:
        self._span = span

    @property
    def traceparent(self) -> str:
        """The span's trace context, as the standard writes it."""
        return traceparent_of(self._span.get_span_context())

    def note(self, name: str | None = None, *, has_failed: bool = False, **attributes: Attribute) -> None:
        """Adds attributes, and perhaps gives the span its name, or marks it as failed."""
        if name is not None:
            self._span.update_name(name)
        self._span.set_attributes(_named(attributes))
        if has_failed:
            self._span.set_status(StatusCode.ERROR)


class RecordedCall:
    """A span of an HTTP call."""

    __slots__ = ("_span", "traceparent")

    def __init__(self, span: trace.Span) -> None:
        self._span = span
        self.traceparent = traceparent_of(span.get_span_context())

    def end(self, *, http_status: int | None = None, error: str | None = None) -> None:
        """Ends the span. Raises nothing: for a payment, that would be an unknown outcome."""
        with suppress(Exception):
            if http_status is not None:
                self._span.set_attribute("http.response.status_code", http_status)
            if error is not None:
                self._span.set_attribute("error.type", error)
                self._span.set_status(StatusCode.ERROR)
            self._span.end()


class OpenTelemetrySpans:
    """Implements ``Spans``; made once at start, with what exports its spans."""

    def __init__(self, provider: TracerProvider) -> None:
        self._provider = provider
        self._tracer = provider.get_tracer(SERVICE_NAME)

    @contextmanager
    def of_request(self, traceparent: str | None, tracestate: str | None) -> Iterator[Span]:
        """Begins the span of a request; a caller's trace context that isn't valid begins a new trace."""
        given = {TRACEPARENT: traceparent, TRACESTATE: tracestate}
        parent = _context_of({name: value for name, value in given.items() if value is not None})
        with self._tracer.start_as_current_span("request", parent, SpanKind.SERVER, record_exception=False) as span:
            yield RecordedSpan(span)

    @contextmanager
    def inside(self, name: str, **attributes: Attribute) -> Iterator[Span]:
        """Begins a span below the current one."""
        with self._tracer.start_as_current_span(name, attributes=_named(attributes), record_exception=False) as span:
            yield RecordedSpan(span)

    @contextmanager
    def after(self, traceparent: str | None, name: str, **attributes: Attribute) -> Iterator[Span]:
        """Begins a span in the trace of an earlier one, or in a new trace; it links to the current span."""
        parent = _OUTSIDE if traceparent is None else _context_of({TRACEPARENT: traceparent})
        current = trace.get_current_span().get_span_context()
        with self._tracer.start_as_current_span(
            name,
            parent,
            attributes=_named(attributes),
            links=[Link(current)] if current.is_valid else (),
            record_exception=False,
        ) as span:
            yield RecordedSpan(span)

    def traceparent(self) -> str | None:
        """Gives the trace context of the current span; None where there is none."""
        current = trace.get_current_span().get_span_context()
        return traceparent_of(current) if current.is_valid else None

    def on_lines(self, log: FilteringBoundLogger) -> FilteringBoundLogger:
        """Makes a log that adds ``trace_id`` and ``span_id`` of the current span to its lines."""
        bound = structlog.wrap_logger(
            log, processors=[_add_span], wrapper_class=structlog.make_filtering_bound_logger("notset")
        ).bind()
        return cast("FilteringBoundLogger", bound)

    def note(self, point: str | None = None, **attributes: Attribute) -> None:
        """Adds attributes to the current span, and perhaps the time at which a point was reached."""
        span = trace.get_current_span()
        span.set_attributes(_named(attributes))
        if point is not None:
            span.add_event(point)

    async def around(self, name: str, work: Awaitable[T]) -> T:
        """Waits for work inside of a span below the current one."""
        with self.inside(name):
            return await work

    def client(self) -> aiohttp.TraceConfig:
        """Makes what records requests of aiohttp's client, and sends ``traceparent`` with them."""
        config = aiohttp.TraceConfig()

        # A callback that raised would fail the request.
        async def begin(_: aiohttp.ClientSession, at: SimpleNamespace, start: aiohttp.TraceRequestStartParams) -> None:
            with suppress(Exception):
                at.call = self._begin_call(start.method, start.url.host, start.url.port)
                start.headers[TRACEPARENT] = at.call.traceparent

        async def end(_: aiohttp.ClientSession, at: SimpleNamespace, end: aiohttp.TraceRequestEndParams) -> None:
            with suppress(Exception):
                at.call.end(http_status=end.response.status)

        async def fail(_: aiohttp.ClientSession, at: SimpleNamespace, end: aiohttp.TraceRequestExceptionParams) -> None:
            with suppress(Exception):
                at.call.end(error=type(end.exception).__qualname__)

        config.on_request_start.append(begin)
        config.on_request_end.append(end)
        config.on_request_exception.append(fail)
        return config

    def call(self, method: str, host: str, port: int, path: str) -> RecordedCall | None:
        """Begins the span of a call; None where that fails."""
        with suppress(Exception):
            return self._begin_call(method, host, port, url__path=path)
        return None

    def _begin_call(self, method: str, host: str | None, port: int | None, **more: Attribute) -> RecordedCall:
        attributes = _named(
            {"http__request__method": method, "server__address": host or "", "server__port": port, **more}
        )
        return RecordedCall(self._tracer.start_span(method, kind=SpanKind.CLIENT, attributes=attributes))

    async def close(self) -> None:
        """Ends the export, but waits no longer than CLOSE_WITHIN_S: a collector that is away delays no stop."""
        loop, is_closed = asyncio.get_running_loop(), asyncio.Event()

        def shut_down() -> None:
            self._provider.shutdown()
            with suppress(RuntimeError):  # the loop has ended meanwhile
                loop.call_soon_threadsafe(is_closed.set)

        threading.Thread(target=shut_down, name="tracing-close", daemon=True).start()
        with suppress(TimeoutError):
            await asyncio.wait_for(is_closed.wait(), CLOSE_WITHIN_S)


def exporting_spans() -> OpenTelemetrySpans:
    """Makes spans that are sent to the collector that OpenTelemetry's standard variables name."""
    # The libraries' own handler at the exit would wait for a collector that is away.
    resource = Resource.create({"service.name": SERVICE_NAME, "service.version": version("payrelay")})
    provider = TracerProvider(resource=_own_name_last(resource), shutdown_on_exit=False)
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    return OpenTelemetrySpans(provider)


def _own_name_last(resource: Resource) -> Resource:
    """Lets OTEL_SERVICE_NAME and OTEL_RESOURCE_ATTRIBUTES give the service another name than ours."""
    named = Resource.create().attributes.get("service.name")
    is_named = isinstance(named, str) and not named.startswith("unknown_service")
    return resource.merge(Resource({"service.name": named})) if is_named else resource


def traceparent_of(context: trace.SpanContext) -> str:
    """Writes a trace context as the W3C header has it."""
    return f"00-{context.trace_id:032x}-{context.span_id:016x}-{context.trace_flags:02x}"


def _context_of(carrier: Mapping[str, str]) -> Context:
    """Reads a trace context; one that isn't valid counts as none."""
    return _propagator.extract(dict(carrier), _OUTSIDE)


def _named(attributes: Mapping[str, Attribute]) -> dict[str, str | int | bool]:
    """Gives attributes their names with dots; leaves out those without a value."""
    return {name.replace("__", "."): value for name, value in attributes.items() if value is not None}


def _add_span(_: WrappedLogger, __: str, event: EventDict) -> EventDict:
    """Adds the ids of the current span to a line; the line of a request has them in its record."""
    current = trace.get_current_span().get_span_context()
    if current.is_valid:
        trace_id, span_id = f"{current.trace_id:032x}", f"{current.span_id:016x}"
        record = event.get("record")
        if record is None:
            event.update(trace_id=trace_id, span_id=span_id)
        else:
            record.trace_id, record.span_id = trace_id, span_id
    return event
