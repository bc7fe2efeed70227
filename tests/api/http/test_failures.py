import json
from collections.abc import Callable
from typing import Any

from tests.api.fakes import Caller, Keyring, MovableClock, RecordingFlows

from payrelay.core.access.credential import compose_key
from payrelay.errors import Code, Refusal, StoreUnavailable

LogLines = Callable[[], list[dict[str, Any]]]


async def test_a_refusal_is_rendered(call: Caller, flows: RecordingFlows) -> None:
    """A flow's refusal reaches the client with its code, advice, fields and ids."""
    flows.answer = Refusal(Code.IN_PROGRESS, "under way", operation_id="op_1")
    reply = await call("GET", "/gateway/api/subscriptions")
    assert (reply.status, reply.headers["retry-after"]) == (409, "1")
    assert reply.json["error"] == {
        "code": "in_progress",
        "retry": "after",
        "request_id": reply.headers["x-request-id"],
        "operation_id": "op_1",
    }


async def test_a_store_that_is_down_is_503(call: Caller, flows: RecordingFlows) -> None:
    """Nothing was done, and the client learns when to repeat the request; the cause stays inside the service."""
    flows.answer = StoreUnavailable("disk full at /secret/path")
    reply = await call("GET", "/gateway/api/subscriptions")
    assert (reply.status, reply.json["error"]["code"], reply.headers["retry-after"]) == (503, "unavailable", "5")
    assert b"secret" not in reply.body


async def test_a_repeat_while_the_store_is_down_hears_of_no_outcome(call: Caller, flows: RecordingFlows) -> None:
    """Its first try may have charged: only the store knows, and it can't be asked. The advice is to send it again."""
    flows.answer = StoreUnavailable("the connection was lost")
    reply = await call("POST", "/gateway/api/payments/charge", body=b"{}")
    assert (reply.status, reply.json["error"]["code"], reply.json["error"]["retry"]) == (503, "unavailable", "after")
    assert reply.json["msg"] == (
        "the store can't be used now: it can't be told here and now whether this request, or an earlier equal one,"
        " took effect; send the same request again"
    )


async def test_a_read_while_the_store_is_down_is_told_to_come_again(call: Caller, flows: RecordingFlows) -> None:
    """A read has no effect that could be in doubt."""
    flows.answer = StoreUnavailable("the connection was lost")
    reply = await call("GET", "/gateway/api/subscriptions")
    assert reply.json["msg"] == "the store can't be used now; send the same request again"


async def test_a_caller_that_can_not_be_checked_is_503(call: Caller, keyring: Keyring) -> None:
    """Without the store no key can be checked; that is no reason to call a valid key wrong."""
    keyring.is_broken = True
    assert (await call("GET", "/gateway/api/subscriptions")).status == 503


async def test_a_503_counts_for_its_route_and_its_caller(
    call: Caller, keyring: Keyring, clock: MovableClock, log_lines: LogLines
) -> None:
    """An outage that is counted for nobody and nowhere can't be told from strangers at the door."""
    await call("GET", "/gateway/api/subscriptions")
    keyring.is_broken = True
    clock.at_s += 3600
    stranger = {"Authorization": f"Bearer {compose_key('sandbox', 'abcdefghijkl', 'x' * 43)}"}
    for headers in ({}, stranger):
        await call("GET", "/gateway/api/subscriptions", headers=headers)
    await call("GET", "/gateway/api/nothing")

    named = [(line["route"], line["principal"], line["status"]) for line in log_lines() if line["status"] == 503]
    route = "/{account}/api/subscriptions"
    assert named == [(route, "shop", 503), (route, None, 503), ("unmatched", "shop", 503)]


async def test_an_internal_error_is_500_and_keeps_secrets(
    call: Caller, flows: RecordingFlows, log_lines: LogLines
) -> None:
    """The client gets an id, the log the frames; the exception's message, which may be a card, goes nowhere."""
    flows.answer = ValueError("4111111111111111")
    reply = await call("POST", "/gateway/api/payments/charge", body=b'{"card":"4111111111111111"}')
    assert (reply.status, reply.json["error"]["code"], reply.json["error"]["retry"]) == (500, "internal", "same_key")
    fault, line = log_lines()
    assert fault["errors"][0]["type"] == "ValueError"
    assert any("fakes.py" in frame for frame in fault["errors"][0]["frames"])
    assert fault["request_id"] == line["request_id"] == reply.headers["x-request-id"]
    assert "4111" not in json.dumps([fault, line])
