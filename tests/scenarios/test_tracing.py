"""Traces on the real program: one trace from a request to its webhook, and nothing that a collector can harm."""

import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.scenarios import gateway_double as payhere
from tests.scenarios.event_receiver import EventReceiver
from tests.scenarios.gateway_double import GatewayDouble
from tests.scenarios.program import Program, free_port
from tests.scenarios.stories import CUSTOMER_TOKEN, Scene, charge_body, fresh, settings_for, state_of
from tests.scenarios.trace_collector import TraceCollector
from tests.scenarios.waiting import until

TRACE_ID = "4bf92f3577b34da6a3ce929d0e0e4736"
CALLER_SPAN = "00f067aa0ba902b7"
RESOLVED_S = 40.0
STOPS_WITHIN_S = 6.0
CLIENT, SERVER = 3, 2


@pytest.fixture
def collector() -> Iterator[TraceCollector]:
    """Takes spans."""
    with TraceCollector() as listening:
        yield listening


@pytest.fixture
def traced(tmp_path: Path, gateway: GatewayDouble, collector: TraceCollector) -> Iterator[Scene]:
    """A service that sends spans to the collector, and events to this machine."""
    allowed = {"PAYRELAY_EVENTS__ALLOWED_HOSTS": "127.0.0.1"}
    program = Program(tmp_path, settings_for(gateway) | allowed | collector.settings())
    key = program.new_key("shop")
    program.start()
    yield Scene(program=program, gateway=gateway, client=program.client(key))
    program.kill()


def test_a_lost_reply_its_resolution_and_its_webhook_are_one_trace(traced: Scene, collector: TraceCollector) -> None:
    """Whoever looks at one failed request sees how it ended, although another process found that out later."""
    order_id, key = fresh("order"), fresh("key")
    traced.gateway.script(payhere.CHARGE, order_id, payhere.cuts)
    with EventReceiver() as receiver:
        traced.client.post("endpoints", {"url": receiver.url, "types": ["operation.succeeded"]})
        reply = traced.client.post(
            "payments/charge",
            charge_body(order_id),
            key=key,
            headers=[("traceparent", f"00-{TRACE_ID}-{CALLER_SPAN}-01")],
        )
        assert reply.status == 202, str(reply)
        assert (reply.header("traceresponse") or "").startswith(f"00-{TRACE_ID}-")
        traced.program.stop()
        record = payhere.payment_now(order_id, "345.67")
        traced.gateway.always(payhere.SEARCH, order_id, payhere.says(payhere.found(record)))
        traced.program.start()
        client = traced.program.client(traced.client.key)
        until(lambda: state_of(client, key) == "succeeded", "the charge is resolved", deadline_s=RESOLVED_S)
        until(lambda: bool(receiver.received), "the webhook has come")
        [webhook] = receiver.received
    until(lambda: bool(collector.of_trace(TRACE_ID, "deliver webhook")), "the last span has come")

    [request] = [span for span in collector.spans if span.parent_id == CALLER_SPAN]
    [operation] = collector.of_trace(TRACE_ID, "operation charge")
    posts = [span for span in collector.of_trace(TRACE_ID, "POST") if span.parent_id == operation.span_id]
    [sent] = [span for span in posts if span.attributes["url.path"].endswith("/charge")]
    resolutions = collector.of_trace(TRACE_ID, "resolve charge")
    [resolution] = [span for span in resolutions if span.attributes.get("payrelay.operation.state") == "succeeded"]
    [delivery] = collector.of_trace(TRACE_ID, "deliver webhook")
    assert (request.kind, operation.parent_id, sent.kind, sent.has_failed) == (SERVER, request.span_id, CLIENT, True)
    assert (resolution.parent_id, delivery.parent_id) == (operation.span_id, resolution.span_id)
    assert operation.events[:3] == ("accepting", "accepted", "sending")
    [charged] = traced.gateway.calls(payhere.CHARGE, order_id)
    told = {name.lower(): value for name, value in charged.headers}
    assert told["traceparent"] == f"00-{TRACE_ID}-{sent.span_id}-01"
    assert webhook.message["traceparent"] == f"00-{TRACE_ID}-{resolution.span_id}-01"
    assert webhook.headers["traceparent"].startswith(f"00-{TRACE_ID}-")
    assert {span.service for span in collector.spans} == {"payrelay"}


def test_spans_hold_no_personal_data(traced: Scene, collector: TraceCollector) -> None:
    """Traces go to people, and often to firms, that may see no customer, no order, no token and no key."""
    order_id, caller = fresh("order"), fresh("caller")
    assert traced.client.charge(charge_body(order_id), key=fresh("key")).status == 200
    traced.client.get(f"payments?order_id={order_id}", [("User-Agent", caller)])
    until(lambda: len([span for span in collector.spans if span.kind == SERVER]) >= 2, "both requests have come")

    sent = b"".join(collector.bodies)
    secrets = (order_id, caller, traced.client.key or "", CUSTOMER_TOKEN, "Taxi", "app-secret")
    assert [secret for secret in secrets if secret.encode() in sent] == []


def test_a_collector_that_hangs_delays_nothing(tmp_path: Path, gateway: GatewayDouble) -> None:
    """Payments go on, the queue stays bounded, the log says that spans are lost, and a stop doesn't wait."""
    with TraceCollector() as collector:
        collector.may_answer.clear()
        small = {"OTEL_BSP_MAX_QUEUE_SIZE": "4", "OTEL_BSP_MAX_EXPORT_BATCH_SIZE": "2"}
        program = Program(tmp_path, settings_for(gateway) | collector.settings() | small)
        client = program.client(program.new_key("shop"))
        program.start()
        client = program.client(client.key)
        assert collector.arrived.wait(20) or client.charge(charge_body()).status == 200
        statuses = {client.charge(charge_body()).status for _ in range(8)}
        began_s = time.monotonic()
        assert (program.stop(), statuses) == (0, {200})
        assert time.monotonic() - began_s < STOPS_WITHIN_S
    told = [line for line in program.log_lines() if line["event"] == "library" and "Queue full" in line["text"]]
    assert told, program.log()


def test_an_absent_collector_is_told_once_in_a_while(tmp_path: Path, gateway: GatewayDouble) -> None:
    """An operator must learn that traces are lost, and must not lose the log's other lines among the complaints."""
    nobody = {"PAYRELAY_TRACING": "true", "OTEL_EXPORTER_OTLP_ENDPOINT": f"http://127.0.0.1:{free_port()}"}
    fast = {"OTEL_BSP_SCHEDULE_DELAY": "50", "OTEL_EXPORTER_OTLP_TIMEOUT": "1"}
    program = Program(tmp_path, settings_for(gateway) | nobody | fast)
    key = program.new_key("shop")
    program.start()
    assert program.client(key).charge(charge_body()).status == 200
    until(lambda: any(line["event"] == "library" for line in program.log_lines()), "the log tells of it")
    assert program.stop() == 0
    assert all(line.startswith("{") for line in program.log().splitlines())
