import asyncio
from collections.abc import Callable

import pytest
from tests.api.fakes import Caller, RecordingFlows

from payrelay.api.http.incoming_request import BODY_BYTES_MAX, Message

CHARGE = b'{"type":"PAYMENT"}'


@pytest.mark.parametrize(("prefer", "wait_s"), [("wait=10", 10), ("wait=900", 60)])
async def test_a_client_may_prefer_to_wait(call: Caller, flows: RecordingFlows, prefer: str, wait_s: int) -> None:
    """The preference reaches the flow, cut to the maximum; an answer that is known at once is not held."""
    for method, target in [("POST", "/gateway/api/payments/charge"), ("DELETE", "/gateway/api/subscriptions/1")]:
        reply = await call(method, target, headers={"Prefer": prefer}, body=b"{}")
        assert (reply.status, reply.headers["preference-applied"]) == (200, f"wait={wait_s}")
    await call("GET", "/gateway/api/operations/op_1", headers={"Prefer": prefer})
    assert [parsed.wait_preference.wait_s for _, parsed in flows.requests if parsed.wait_preference is not None] == [
        wait_s
    ] * 3


@pytest.mark.parametrize("prefer", ["", "wait=0", "wait=soon", "respond-async"])
async def test_who_prefers_nothing_is_answered_at_once(call: Caller, flows: RecordingFlows, prefer: str) -> None:
    """Also where the preference can't be read: nothing is refused for it."""
    reply = await call("POST", "/gateway/api/payments/charge", headers={"Prefer": prefer}, body=b"{}")
    assert (reply.status, "preference-applied" in reply.headers) == (200, False)
    assert flows.requests[0][1].wait_preference is None


async def test_a_read_is_never_held(call: Caller, flows: RecordingFlows) -> None:
    """There is nothing to wait for."""
    await call("GET", "/gateway/api/payments/A-1", headers={"Prefer": "wait=10"})
    assert flows.requests[0][1].wait_preference is None


async def test_who_waits_is_noticed_when_gone(call: Caller, flows: RecordingFlows) -> None:
    """The server says so once the body was read; anything that the client still sends before is ignored."""
    pieces: list[Message] = [{"type": "http.request"}, {"type": "http.request"}, {"type": "http.disconnect"}]
    await call("DELETE", "/gateway/api/subscriptions/1", headers={"Prefer": "wait=10"}, pieces=pieces)
    wait_preference = flows.requests[0][1].wait_preference
    assert wait_preference is not None
    await wait_preference.gone()


@pytest.mark.parametrize("target", ["/gateway/api/payments/1?x=1", "/gateway/api/subscriptions/1?expand=all"])
async def test_a_wrong_parameter_is_named(call: Caller, flows: RecordingFlows, target: str) -> None:
    """An unknown name and an unknown value are both mistakes of the caller, told by name."""
    reply = await call("GET", target)
    assert (reply.status, len(reply.json["error"]["fields"])) == (422, 1)
    assert flows.requests == []


@pytest.mark.parametrize("keys", [["a", "b"], [""], ["a b"], ['"open'], ["é"], ["x" * 256]])
async def test_a_bad_idempotency_key_is_malformed(call: Caller, flows: RecordingFlows, keys: list[str]) -> None:
    """A key that isn't understood must not be dropped: the client counts on it."""
    headers = [("Idempotency-Key", key or " ") for key in keys]
    reply = await call("POST", "/gateway/api/payments/charge", headers=headers, body=CHARGE)
    assert (reply.status, reply.json["error"]["code"]) == (400, "malformed_request")
    assert flows.requests == []


async def test_a_read_takes_no_key(call: Caller, flows: RecordingFlows) -> None:
    """A GET may be repeated anyway; a key on it says nothing, not even when it is bad."""
    headers = [("Idempotency-Key", "a"), ("Idempotency-Key", "b")]
    assert (await call("GET", "/gateway/api/subscriptions", headers=headers)).status == 200
    assert flows.requests[0][1].request.idempotency_key is None


async def test_a_body_must_be_json(call: Caller) -> None:
    """A charge as a form, or without a type, is not read."""
    reply = await call("POST", "/gateway/api/payments/charge", headers={"Content-Type": "text/plain"}, body=CHARGE)
    assert (reply.status, reply.json["error"]["code"]) == (415, "unsupported_media_type")
    assert (await call("POST", "/gateway/api/payments/charge")).status == 415


@pytest.mark.parametrize(("method", "target"), [("POST", "/subscriptions/1/retry"), ("DELETE", "/subscriptions/1")])
async def test_an_absent_body_needs_no_type(call: Caller, method: str, target: str) -> None:
    """A retry and a cancellation may come without a body, or with an empty object."""
    assert (await call(method, f"/gateway/api{target}")).status == 200
    assert (await call(method, f"/gateway/api{target}", body=b"{}")).status == 200
    reply = await call(method, f"/gateway/api{target}", headers={"Content-Type": "text/plain"}, body=b"now")
    assert reply.status == 415


async def test_too_large_a_body_closes_the_connection(call: Caller) -> None:
    """The rest of it is not read, so nothing else can come over this connection."""
    reply = await call("POST", "/gateway/api/payments/charge", body=b"x" * (BODY_BYTES_MAX + 1))
    assert (reply.status, reply.json["error"]["code"], reply.headers["connection"]) == (413, "too_large", "close")


async def test_a_slow_body_closes_the_connection(call_with: Callable[..., Caller]) -> None:
    """A sender that stalls gets its answer and is let go."""
    waiting = {"type": "wait", "until": asyncio.Event()}
    reply = await call_with(body_timeout_s=0.01)(
        "POST", "/gateway/api/payments/charge", headers={"Content-Type": "application/json"}, pieces=[waiting]
    )
    assert (reply.status, reply.headers["connection"]) == (400, "close")
