"""Spans by OpenTelemetry: whose trace they belong to, what they carry, and that nothing of them can harm a payment."""

import asyncio
import io
import json
import re
from collections.abc import AsyncIterator, Iterator

import aiohttp
import pytest
from aiohttp import web
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanContext, SpanKind, StatusCode, TraceFlags
from tests.scenarios.trace_collector import TraceCollector

from payrelay.api.http.request_log import RequestLogRecord, json_log
from payrelay.clock import Clock
from payrelay.tracing.opening import opened_spans
from payrelay.tracing.opentelemetry_spans import OpenTelemetrySpans, traceparent_of

TRACE_ID = "4bf92f3577b34da6a3ce929d0e0e4736"
CALLER_SPAN = "00f067aa0ba902b7"
CALLER = f"00-{TRACE_ID}-{CALLER_SPAN}-01"


@pytest.fixture
def ended() -> InMemorySpanExporter:
    """Keeps spans that have ended, in their order."""
    return InMemorySpanExporter()


@pytest.fixture
def spans(ended: InMemorySpanExporter) -> Iterator[OpenTelemetrySpans]:
    """Records spans, each of which is exported as soon as it has ended."""
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(ended))
    yield OpenTelemetrySpans(provider)
    provider.shutdown()


def ids(span: ReadableSpan) -> tuple[str, str, str]:
    """Gives the ids of a span's trace, of itself and of its parent; the last is empty without one."""
    context = span.get_span_context()
    assert context is not None
    parent = f"{span.parent.span_id:016x}" if span.parent else ""
    return f"{context.trace_id:032x}", f"{context.span_id:016x}", parent


def named(traceparent: str | None) -> tuple[str, str]:
    """Gives the ids of a trace and of a span that a trace context names; its flags are the libraries' own."""
    _, trace_id, span_id, _ = (traceparent or "").split("-")
    return trace_id, span_id


def one(ended: InMemorySpanExporter) -> ReadableSpan:
    """Gives the span that has ended; fails unless it is one."""
    [span] = ended.get_finished_spans()
    return span


def test_a_request_continues_its_callers_trace(spans: OpenTelemetrySpans, ended: InMemorySpanExporter) -> None:
    """Whoever follows a customer's press of a button finds the payment below it."""
    with spans.of_request(CALLER, "vendor=1") as request:
        told = request.traceparent

    span = one(ended)
    trace_id, span_id, parent_id = ids(span)
    assert (trace_id, parent_id, span.kind) == (TRACE_ID, CALLER_SPAN, SpanKind.SERVER)
    assert told == f"00-{TRACE_ID}-{span_id}-01"
    assert span.context is not None
    assert span.context.trace_state.get("vendor") == "1"


@pytest.mark.parametrize("given", [None, "", "nonsense", f"00-{'0' * 32}-{CALLER_SPAN}-01", CALLER.upper() + "x"])
def test_a_trace_context_that_is_not_valid_begins_a_new_trace(
    spans: OpenTelemetrySpans, ended: InMemorySpanExporter, given: str | None
) -> None:
    """A caller's mistake must neither fail the request nor lose its span."""
    with spans.of_request(given, None):
        pass

    trace_id, _, parent_id = ids(one(ended))
    assert re.fullmatch("[0-9a-f]{32}", trace_id)
    assert (trace_id != TRACE_ID, trace_id != "0" * 32, parent_id) == (True, True, "")


def test_a_request_notes_its_route_and_its_failure(spans: OpenTelemetrySpans, ended: InMemorySpanExporter) -> None:
    """A span without the route's name couldn't be grouped; one that failed has to stand out."""
    with spans.of_request(None, None) as request:
        request.note("POST /charge", has_failed=True, http__response__status_code=500, user__id=None)

    span = one(ended)
    assert (span.name, span.status.status_code) == ("POST /charge", StatusCode.ERROR)
    assert dict(span.attributes or {}) == {"http.response.status_code": 500}


def test_a_request_that_went_well_is_not_marked(spans: OpenTelemetrySpans, ended: InMemorySpanExporter) -> None:
    """An alert on failed spans would otherwise ring for each payment."""
    with spans.of_request(None, None) as request:
        request.note(http__response__status_code=200)

    assert (one(ended).name, one(ended).status.status_code) == ("request", StatusCode.UNSET)


def test_an_exception_leaves_no_text_in_the_span(spans: OpenTelemetrySpans, ended: InMemorySpanExporter) -> None:
    """An exception's text may hold a token or a name, and traces are read by people who may see neither."""
    with pytest.raises(ValueError, match="CANARY"), spans.of_request(None, None), spans.inside("charge"):
        raise ValueError("CANARY")

    for span in ended.get_finished_spans():
        assert span.events == ()
        assert "CANARY" not in str(span.attributes)


def test_a_span_inside_stands_below_the_current_one(spans: OpenTelemetrySpans, ended: InMemorySpanExporter) -> None:
    """An operation is found below the request that began it."""
    with (
        spans.of_request(None, None) as request,
        spans.inside("operation charge", payrelay__operation__id="op_1", left=None),
    ):
        spans.note("sending", payrelay__attempt=2)

    [inner, outer] = ended.get_finished_spans()
    assert ids(inner)[2] == ids(outer)[1]
    assert dict(inner.attributes or {}) == {"payrelay.operation.id": "op_1", "payrelay.attempt": 2}
    assert [event.name for event in inner.events] == ["sending"]
    assert named(request.traceparent)[0] == ids(inner)[0]


def test_the_current_trace_context_can_be_stored(spans: OpenTelemetrySpans, ended: InMemorySpanExporter) -> None:
    """Another process continues the trace by it, days later; where there is none, nothing is made up."""
    assert spans.traceparent() is None
    with spans.inside("operation charge") as operation:
        assert spans.traceparent() == operation.traceparent
    assert spans.traceparent() is None

    with spans.inside("resolver") as round_of, spans.after(operation.traceparent, "resolve charge", found=True):
        pass

    [first, later, own] = ended.get_finished_spans()
    assert ids(later)[::2] == ids(first)[:2]
    assert dict(later.attributes or {}) == {"found": True}
    assert [f"{link.context.span_id:016x}" for link in later.links] == [ids(own)[1]]
    assert named(round_of.traceparent)[0] != ids(later)[0]


def test_what_has_no_earlier_trace_begins_one(spans: OpenTelemetrySpans, ended: InMemorySpanExporter) -> None:
    """An operation from before tracing was switched on must not end up below whatever looks after it by chance."""
    with spans.after(None, "resolve charge"):
        pass
    with spans.inside("resolver"), spans.after(None, "resolve charge"):
        pass

    [alone, within, resolver] = ended.get_finished_spans()
    assert (alone.parent, list(alone.links), within.parent) == (None, [], None)
    assert ids(within)[0] != ids(resolver)[0]
    assert [f"{link.context.span_id:016x}" for link in within.links] == [ids(resolver)[1]]


async def test_work_is_waited_for_inside_of_a_span(spans: OpenTelemetrySpans, ended: InMemorySpanExporter) -> None:
    """What the work yields comes back, and its time is the span's."""

    async def work() -> str:
        await asyncio.sleep(0)
        spans.note(seen=True)
        return "done"

    assert await spans.around("store", work()) == "done"
    assert (one(ended).name, dict(one(ended).attributes or {})) == ("store", {"seen": True})


def test_lines_of_the_log_name_the_current_span(spans: OpenTelemetrySpans) -> None:
    """From a line to its trace by a copied id; a line outside of any span has none, rather than zeros."""
    stream = io.BytesIO()
    log = spans.on_lines(json_log(stream, Clock())).bind(part="relay")
    log.info("outside")
    with spans.inside("operation charge") as operation:
        log.info("within", order="o1")

    [outside, within] = [json.loads(line) for line in stream.getvalue().splitlines()]
    assert ("trace_id" in outside, outside["part"]) == (False, "relay")
    assert (within["trace_id"], within["span_id"]) == named(operation.traceparent)
    assert (within["event"], within["part"], within["order"]) == ("within", "relay", "o1")


def test_the_line_of_a_request_has_the_ids_in_its_record(spans: OpenTelemetrySpans) -> None:
    """That line is written from its record alone; ids beside it would be lost."""
    stream = io.BytesIO()
    record = RequestLogRecord(request_id="req_1", method="GET", client="127.0.0.1")
    with spans.of_request(None, None) as request:
        spans.on_lines(json_log(stream, Clock())).info("request", record=record)

    assert (record.trace_id, record.span_id) == named(request.traceparent)


def test_a_call_is_a_span_of_its_own(spans: OpenTelemetrySpans, ended: InMemorySpanExporter) -> None:
    """The gateway's share of a slow payment is seen, and its path, which is no secret."""
    with spans.inside("operation charge") as operation:
        call = spans.call("POST", "gateway.example", 443, "/merchant/v1/payment/charge")
        assert call is not None
        call.end(http_status=200)

    [span, _] = ended.get_finished_spans()
    assert (span.name, span.kind, span.status.status_code) == ("POST", SpanKind.CLIENT, StatusCode.UNSET)
    assert dict(span.attributes or {}) == {
        "http.request.method": "POST",
        "server.address": "gateway.example",
        "server.port": 443,
        "url.path": "/merchant/v1/payment/charge",
        "http.response.status_code": 200,
    }
    assert named(call.traceparent) == ids(span)[:2]
    assert ids(span)[2] == named(operation.traceparent)[1]


def test_a_call_without_a_reply_has_failed(spans: OpenTelemetrySpans, ended: InMemorySpanExporter) -> None:
    """An unknown outcome at the gateway is the span that one looks for first."""
    call = spans.call("POST", "gateway.example", 443, "/")
    assert call is not None
    call.end(error="ReplyLost")

    assert one(ended).status.status_code is StatusCode.ERROR
    assert (one(ended).attributes or {})["error.type"] == "ReplyLost"


@pytest.fixture
async def receiver() -> AsyncIterator[tuple[str, list[str | None]]]:
    """A server that answers 204, or hangs up at ``/gone``; gives its address and the traceparents that came."""
    seen: list[str | None] = []

    async def answer(request: web.Request) -> web.Response:
        seen.append(request.headers.get("traceparent"))
        if request.path == "/gone" and request.transport is not None:
            request.transport.abort()
        return web.Response(status=204)

    app = web.Application()
    app.router.add_route("*", "/{rest:.*}", answer)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    port = runner.addresses[0][1]
    yield f"http://127.0.0.1:{port}", seen
    await runner.cleanup()


async def test_requests_of_the_http_client_are_spans_without_a_path(
    spans: OpenTelemetrySpans, ended: InMemorySpanExporter, receiver: tuple[str, list[str | None]]
) -> None:
    """A receiver's path may be its secret, and a receiver that traces goes on with ours."""
    address, seen = receiver
    async with aiohttp.ClientSession(trace_configs=[spans.client()]) as client:
        async with client.post(f"{address}/secret-hook?key=CANARY") as response:
            assert response.status == 204
        with pytest.raises(aiohttp.ClientError):
            await client.post(f"{address}/gone")

    [well, lost] = ended.get_finished_spans()
    assert dict(well.attributes or {}) == {
        "http.request.method": "POST",
        "server.address": "127.0.0.1",
        "server.port": int(address.rpartition(":")[2]),
        "http.response.status_code": 204,
    }
    assert (lost.status.status_code, (lost.attributes or {})["error.type"]) == (
        StatusCode.ERROR,
        "ServerDisconnectedError",
    )
    assert [named(each) for each in seen] == [ids(span)[:2] for span in (well, lost)]


def test_a_trace_context_is_written_as_the_standard_has_it() -> None:
    """Ids are padded with zeros: one that is a digit short is not valid, and the trace would break there."""
    context = SpanContext(trace_id=0xAB, span_id=0xC, is_remote=False, trace_flags=TraceFlags(0))

    assert traceparent_of(context) == f"00-{'0' * 30}ab-{'0' * 15}c-00"


async def test_spans_reach_a_collector_by_the_time_of_the_close(monkeypatch: pytest.MonkeyPatch) -> None:
    """The last spans before a stop are those that one asks for; they are named by the service's name."""
    with TraceCollector() as collector:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.url)
        async with opened_spans(is_on=True) as spans:
            assert spans is not None
            with spans.inside("the last one"):
                pass

        assert [(span.name, span.service) for span in collector.spans] == [("the last one", "payrelay")]


@pytest.mark.parametrize(
    ("variable", "value", "service"),
    [
        ("OTEL_SERVICE_NAME", "pay-east", "pay-east"),
        ("OTEL_RESOURCE_ATTRIBUTES", "service.name=pay-west,deployment=1", "pay-west"),
        ("OTEL_RESOURCE_ATTRIBUTES", "deployment=1", "payrelay"),
    ],
)
async def test_the_service_is_named_by_the_standard_variables(
    monkeypatch: pytest.MonkeyPatch, variable: str, value: str, service: str
) -> None:
    """Two installations behind one collector are told apart by the names that their operators gave them."""
    with TraceCollector() as collector:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.url)
        monkeypatch.setenv(variable, value)
        async with opened_spans(is_on=True) as spans:
            assert spans is not None
            with spans.inside("work"):
                pass

        assert [span.service for span in collector.spans] == [service]


async def test_a_collector_that_hangs_delays_no_stop(monkeypatch: pytest.MonkeyPatch) -> None:
    """A stop has its own promise to keep; spans that nobody takes are lost."""
    with TraceCollector() as collector:
        collector.may_answer.clear()
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.url)
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "600")  # the libraries themselves would wait for it
        async with asyncio.timeout(20), opened_spans(is_on=True) as spans:
            assert spans is not None
            with spans.inside("work"):
                pass

        assert collector.spans == []


async def test_without_tracing_nothing_is_recorded() -> None:
    """Each place that would record a span asks for None, and costs nothing then."""
    async with opened_spans(is_on=False) as spans:
        assert spans is None
