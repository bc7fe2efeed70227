import json
from collections.abc import Callable
from typing import Any

import pytest
from tests.api.fakes import KEY, Caller, RecordingFlows

from payrelay.api.app import Api
from payrelay.api.context import ApiContext
from payrelay.api.http.sampled_lines import LINES_OF_A_KIND
from payrelay.core.answers import Answer
from payrelay.errors import Code

CHARGE = b'{"type":"PAYMENT"}'
LogLines = Callable[[], list[dict[str, Any]]]


async def test_answers_are_not_cached_and_not_sniffed(call: Caller) -> None:
    """No cache keeps a payment, and no browser shows an answer as a page."""
    headers = (await call("GET", "/gateway/api/subscriptions")).headers
    assert headers["cache-control"] == "no-store"
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["content-type"] == "application/json"


async def test_headers_of_a_flow_goes_out(call: Caller, flows: RecordingFlows) -> None:
    """The headers of a replay, and of an unknown outcome its wait and its address, reach the client."""
    flows.answer = Answer(
        http_status=202,
        body=b"{}",
        code=Code.OUTCOME_UNKNOWN,
        retry_after_s=2,
        headers=(("Location", "/gateway/api/operations/op_1"), ("Idempotent-Replayed", "true")),
    )
    headers = (await call("GET", "/gateway/api/subscriptions")).headers
    assert headers["retry-after"] == "2"
    assert headers["location"] == "/gateway/api/operations/op_1"
    assert headers["idempotent-replayed"] == "true"


async def test_a_request_is_one_line(call: Caller, flows: RecordingFlows, log_lines: LogLines) -> None:
    """Chosen fields under a fixed name: the route and not the path, the caller and not the key."""
    flows.answer = Answer(
        http_status=200, body=b"{}", headers=(("Payrelay-Operation", "op_1"), ("Idempotent-Replayed", "true"))
    )
    await call("POST", "/gateway/api/payments/charge", headers={"Idempotency-Key": "k-1"}, body=CHARGE)
    (line,) = log_lines()
    assert line.pop("duration_ms") >= 0
    assert line.pop("request_id").startswith("req_")
    assert line == {
        "at": "2027-01-15T08:00:00.000Z",
        "level": "info",
        "event": "request",
        "method": "POST",
        "route": "/{account}/api/payments/charge",
        "account": "gateway",
        "principal": "shop",
        "credential_id": "abcdefghijkl",
        "status": 200,
        "code": None,
        "operation_id": "op_1",
        "is_replayed": True,
        "client": "127.0.0.1",
    }


async def test_refused_callers_are_logged_in_part(context: ApiContext, log_lines: LogLines) -> None:
    """Nobody fills the disk by asking without a key: the first lines are there, and the number of the others."""
    api = Api(context)
    call = Caller(api)
    for _ in range(LINES_OF_A_KIND + 5):
        await call("GET", "/gateway/api/x", headers={"Authorization": "Bearer wrong"}, client="192.0.2.7")
    await call("GET", "/gateway/api/x", headers={"Authorization": "Bearer wrong"}, client="192.0.2.8")
    api.lines.log_counts()

    *lines, counted = log_lines()
    assert [line["client"] for line in lines] == ["192.0.2.7"] * LINES_OF_A_KIND + ["192.0.2.8"]
    assert (counted["event"], counted["of"], counted["client"]) == ("lines_left_out", "request", "192.0.2.7")
    assert (counted["status"], counted["code"], counted["count"]) == (401, "unauthenticated", 5)


async def test_no_path_without_a_credential_is_logged_whole(context: ApiContext, log_lines: LogLines) -> None:
    """What nobody needs a key for can be asked for without end, also where it is there and belongs to an account."""
    call = Caller(Api(context))
    answered = set()
    for target in ("/health/live", "/docs", "/gateway/hosted/page.css", "/nothing"):
        for _ in range(LINES_OF_A_KIND + 5):
            answered.add((await call("GET", target)).status)
    assert answered == {200, 404}
    assert len(log_lines()) == 4 * LINES_OF_A_KIND


async def test_a_callers_own_lines_are_all_there(context: ApiContext, log_lines: LogLines) -> None:
    """Whoever has a key finds each request of his in the log, whatever its answer."""
    call = Caller(Api(context))
    for _ in range(LINES_OF_A_KIND + 5):
        await call("GET", "/gateway/api/x")
    assert len(log_lines()) == LINES_OF_A_KIND + 5


async def test_the_log_never_holds_what_a_client_sent(call: Caller, log_lines: LogLines) -> None:
    """Keys, tokens, ids in paths and invented addresses stay out of it, right or wrong."""
    await call("GET", "/gateway/api/payments/secret-1?token=secret-2", headers={"X-Request-Id": "secret 3"})
    await call("GET", "/secret-4", headers={"Authorization": "Bearer secret-5", "User-Agent": "secret-6"})
    await call("GET", "/gateway/api/x", headers={"Authorization": "Bearer secret-7"})
    written = json.dumps(log_lines())
    assert "secret" not in written
    assert KEY not in written
    assert [line["route"] for line in log_lines()] == ["/{account}/api/payments/{id}", "unmatched", "unmatched"]


async def test_requests_are_counted_by_route(call: Caller, context: ApiContext) -> None:
    """The metrics have templates, so that no client can fill them with names of its own."""
    for target in ("/gateway/api/payments/1", "/gateway/api/payments/2", "/nothing"):
        await call("GET", target)
    text = context.metrics.text().decode()
    assert 'payrelay_http_requests_total{method="GET",route="/{account}/api/payments/{id}",status="200"} 2.0' in text
    assert 'route="unmatched",status="404"} 1.0' in text


async def test_only_http_is_spoken(context: ApiContext, call: Caller) -> None:
    """A WebSocket or a lifespan of some other server is not misunderstood as a request."""

    async def nothing(*_: object) -> dict[str, object]:
        return {}

    with pytest.raises(NotImplementedError):
        await call._api({"type": "websocket"}, nothing, nothing)  # type: ignore[arg-type]
    assert context.body_timeout_s == 10
