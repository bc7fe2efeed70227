import asyncio
import json
from collections.abc import Callable
from typing import Any, Final

import msgspec
import pytest
from tests.api.fakes import KEY, Caller, Keyring, MovableClock, Stories

from payrelay.api.auth.failed_credentials import FAILURES
from payrelay.api.context import ApiContext
from payrelay.api.http.incoming import BODY_BYTES_MAX, Message
from payrelay.core.access.credential import Credential, Rate, Scope
from payrelay.core.answers import Answer
from payrelay.errors import Code, Refusal, StoreUnavailable

CHARGE = b'{"type":"PAYMENT"}'
Lines = Callable[[], list[dict[str, Any]]]
WRONG: Final = {"Authorization": f"Bearer {KEY}x"}


async def test_a_request_reaches_its_story(call: Caller, stories: Stories) -> None:
    """The story hears who asks, on which account, under which key and id, and what for."""
    reply = await call(
        "POST",
        "/gateway/api/payments/charge",
        headers={"Idempotency-Key": '"order-1"', "X-Request-Id": "mine"},
        body=CHARGE,
    )
    name, asked = stories.asked[0]
    assert (reply.status, reply.body) == (200, b'{"status":1,"msg":"OK","data":{"is":"done"}}')
    assert (name, asked.body, asked.request.account) == ("chargePayment", CHARGE, "gateway")
    assert (asked.request.principal, asked.request.idempotency_key) == ("shop", "order-1")
    assert asked.request.request_id == reply.headers["x-request-id"] == "mine"


async def test_answers_are_not_kept_and_not_guessed_at(call: Caller) -> None:
    """No cache keeps a payment, and no browser takes an answer for a page."""
    headers = (await call("GET", "/gateway/api/subscriptions")).headers
    assert headers["cache-control"] == "no-store"
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["content-type"] == "application/json"


async def test_what_a_story_adds_goes_out(call: Caller, stories: Stories) -> None:
    """Headers of a replay, the wait of an unknown outcome and the place to watch it reach the client."""
    stories.answer = Answer(
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


@pytest.mark.parametrize(
    "target",
    ["/gateway/api/payments/1", "/gateway/api/nothing", "/gateway/api/", "/gateway/api", "/other/api/payments/1",
     "//api/x", "/gateway/api/payments/%zz"],
)  # fmt: skip
@pytest.mark.parametrize("method", ["GET", "POST", "OPTIONS", "HEAD", "BREW"])
async def test_without_a_credential_nothing_is_told(call: Caller, target: str, method: str) -> None:
    """Not even that an address doesn't exist: whoever has no key learns nothing about us."""
    reply = await call(method, target, headers={"Authorization": ""})
    assert (reply.status, reply.json["error"]["code"], reply.json["status"]) == (401, "unauthenticated", -2)
    assert reply.headers["www-authenticate"].startswith("Bearer")


@pytest.mark.parametrize("target", ["/gateway/api/nothing", "/other/api/payments/1", "/gateway/api/payments/1/"])
async def test_with_a_credential_what_is_not_there_is_404(call: Caller, target: str) -> None:
    """An unknown address and an unknown account look the same."""
    reply = await call("GET", target)
    assert (reply.status, reply.json["error"]["code"], reply.json["data"]) == (404, "not_found", None)


@pytest.mark.parametrize(
    ("method", "target", "allow"),
    [
        ("PUT", "/gateway/api/payments/charge", "GET, POST"),
        ("HEAD", "/gateway/api/subscriptions", "GET"),
        ("OPTIONS", "/gateway/api/subscriptions/1", "DELETE, GET"),
        ("get", "/gateway/api/operations", "GET"),
        ("POST", "/health/live", "GET, HEAD"),
    ],
)
async def test_another_method_is_told_the_right_ones(call: Caller, method: str, target: str, allow: str) -> None:
    """A known address says what it takes, HEAD and OPTIONS included."""
    reply = await call(method, target)
    assert (reply.status, reply.headers["allow"]) == (405, allow)
    assert reply.json["error"]["code"] == "method_not_allowed"


async def test_who_tries_keys_is_slowed_down(call: Caller, clock: MovableClock) -> None:
    """429 in place of 401 with the seconds to wait, from this address only; after them it is 401 again."""
    statuses = [(await call("GET", "/gateway/api/operations", headers=WRONG)).status for _ in range(FAILURES.count)]
    reply = await call("GET", "/gateway/api/operations", headers=WRONG)
    assert set(statuses) == {401}
    assert (reply.status, reply.json["error"]["code"], reply.headers["retry-after"]) == (429, "rate_limited", "60")
    assert reply.headers["ratelimit"] == '"failed-credentials";r=0;t=60'
    assert (await call("GET", "/gateway/api/operations", headers=WRONG, client="203.0.113.9")).status == 401
    clock.at_s += 60
    assert (await call("GET", "/gateway/api/operations", headers=WRONG)).status == 401


async def test_a_good_key_is_never_slowed_down_by_bad_ones(call: Caller) -> None:
    """Nobody can lock out a shop by failing from its address, whatever it tries."""
    for _ in range(FAILURES.count * 2):
        await call("GET", "/gateway/api/operations", headers=WRONG)
    assert (await call("GET", "/gateway/api/operations")).status == 200


async def test_only_wrong_keys_are_counted(call: Caller, keyring: Keyring, credential: Credential) -> None:
    """Who sends none doesn't try any, and who has one of ours that is over needs to be told so, every time."""
    keyring.by_id[credential.id] = msgspec.structs.replace(credential, revoked_at_ms=1)
    for _ in range(FAILURES.count + 1):
        assert (await call("GET", "/gateway/api/operations", headers={"Authorization": ""})).status == 401
        assert (await call("GET", "/gateway/api/operations")).status == 401


async def test_failed_credentials_are_counted(call: Caller, context: ApiContext) -> None:
    """An operator sees that somebody tries keys."""
    await call("GET", "/gateway/api/operations", headers=WRONG)
    await call("GET", "/gateway/api/operations", headers={"Authorization": ""})
    for reason in ("wrong", "missing"):
        labels = {"reason": reason}
        assert context.metrics.registry.get_sample_value("payrelay_failed_credentials_total", labels) == 1


@pytest.mark.parametrize(("prefer", "wait_s"), [("wait=10", 10), ("wait=900", 60)])
async def test_a_client_that_would_rather_wait_may(call: Caller, stories: Stories, prefer: str, wait_s: int) -> None:
    """What it prefers gets to the story, cut to what we hold; what is known at once is not held."""
    for method, target in [("POST", "/gateway/api/payments/charge"), ("DELETE", "/gateway/api/subscriptions/1")]:
        reply = await call(method, target, headers={"Prefer": prefer}, body=b"{}")
        assert (reply.status, reply.headers["preference-applied"]) == (200, f"wait={wait_s}")
    await call("GET", "/gateway/api/operations/op_1", headers={"Prefer": prefer})
    assert [asked.patience.wait_s for _, asked in stories.asked if asked.patience is not None] == [wait_s] * 3


@pytest.mark.parametrize("prefer", ["", "wait=0", "wait=soon", "respond-async"])
async def test_who_prefers_nothing_is_answered_at_once(call: Caller, stories: Stories, prefer: str) -> None:
    """Also where the preference can't be read: nothing is refused for it."""
    reply = await call("POST", "/gateway/api/payments/charge", headers={"Prefer": prefer}, body=b"{}")
    assert (reply.status, "preference-applied" in reply.headers) == (200, False)
    assert stories.asked[0][1].patience is None


async def test_a_read_is_never_held(call: Caller, stories: Stories) -> None:
    """There is nothing to wait for."""
    await call("GET", "/gateway/api/payments/A-1", headers={"Prefer": "wait=10"})
    assert stories.asked[0][1].patience is None


async def test_who_waits_is_noticed_when_gone(call: Caller, stories: Stories) -> None:
    """The server says so once the body was read; what a client still sends before that is passed over."""
    pieces: list[Message] = [{"type": "http.request"}, {"type": "http.request"}, {"type": "http.disconnect"}]
    await call("DELETE", "/gateway/api/subscriptions/1", headers={"Prefer": "wait=10"}, pieces=pieces)
    patience = stories.asked[0][1].patience
    assert patience is not None
    await patience.gone()


async def test_a_scope_that_is_missing_is_named(call: Caller, keyring: Keyring, stories: Stories) -> None:
    """A key for the phone can't refund, and its owner learns which scope that would take."""
    keyring.by_id["abcdefghijkl"] = msgspec.structs.replace(
        keyring.by_id["abcdefghijkl"], scopes=frozenset({Scope.PAYMENTS_READ})
    )
    reply = await call("POST", "/gateway/api/payments/refund", body=b"{}")
    assert (reply.status, reply.json["status"]) == (403, -2)
    assert "payments:refund" in reply.json["msg"]
    assert stories.asked == []


async def test_a_key_for_another_account_is_refused(call: Caller, keyring: Keyring) -> None:
    """A key that is bound to one account opens no other."""
    keyring.by_id["abcdefghijkl"] = msgspec.structs.replace(
        keyring.by_id["abcdefghijkl"], accounts=frozenset({"elsewhere"})
    )
    assert (await call("GET", "/gateway/api/subscriptions")).status == 403


async def test_a_quota_is_told_and_kept(call: Caller, keyring: Keyring, clock: MovableClock) -> None:
    """Every answer of a limited key says what is left, the refusal when to come back."""
    keyring.by_id["abcdefghijkl"] = msgspec.structs.replace(
        keyring.by_id["abcdefghijkl"], rate=Rate(count=1, window_s=30)
    )
    first = await call("GET", "/gateway/api/nothing")
    assert (first.status, first.headers["ratelimit"]) == (404, '"default";r=0;t=30')
    second = await call("GET", "/gateway/api/subscriptions")
    assert (second.status, second.headers["retry-after"]) == (429, "30")
    assert second.headers["ratelimit-policy"] == '"default";q=1;w=30'
    clock.at_s += 30
    assert (await call("GET", "/gateway/api/subscriptions")).status == 200


@pytest.mark.parametrize("target", ["/gateway/api/payments/1?x=1", "/gateway/api/subscriptions/1?expand=all"])
async def test_a_wrong_parameter_is_named(call: Caller, stories: Stories, target: str) -> None:
    """An unknown name and an unknown value are both mistakes of the caller, told by name."""
    reply = await call("GET", target)
    assert (reply.status, len(reply.json["error"]["fields"])) == (422, 1)
    assert stories.asked == []


@pytest.mark.parametrize("keys", [["a", "b"], [""], ["a b"], ['"open'], ["é"], ["x" * 256]])
async def test_a_bad_idempotency_key_is_malformed(call: Caller, stories: Stories, keys: list[str]) -> None:
    """A key that isn't understood must not be dropped: the client counts on it."""
    headers = [("Idempotency-Key", key or " ") for key in keys]
    reply = await call("POST", "/gateway/api/payments/charge", headers=headers, body=CHARGE)
    assert (reply.status, reply.json["error"]["code"]) == (400, "malformed_request")
    assert stories.asked == []


async def test_a_read_takes_no_key(call: Caller, stories: Stories) -> None:
    """A GET may be repeated anyway; a key on it says nothing, not even when it is bad."""
    headers = [("Idempotency-Key", "a"), ("Idempotency-Key", "b")]
    assert (await call("GET", "/gateway/api/subscriptions", headers=headers)).status == 200
    assert stories.asked[0][1].request.idempotency_key is None


async def test_a_body_must_be_json(call: Caller) -> None:
    """A charge as a form, or without a type, is not read."""
    reply = await call("POST", "/gateway/api/payments/charge", headers={"Content-Type": "text/plain"}, body=CHARGE)
    assert (reply.status, reply.json["error"]["code"]) == (415, "unsupported_media_type")
    assert (await call("POST", "/gateway/api/payments/charge")).status == 415


@pytest.mark.parametrize(("method", "target"), [("POST", "/subscriptions/1/retry"), ("DELETE", "/subscriptions/1")])
async def test_where_nothing_is_to_be_said_no_type_is_needed(call: Caller, method: str, target: str) -> None:
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


async def test_a_refusal_is_rendered(call: Caller, stories: Stories) -> None:
    """What a story refuses reaches the client with its code, advice, fields and ids."""
    stories.answer = Refusal(Code.IN_PROGRESS, "under way", operation_id="op_1")
    reply = await call("GET", "/gateway/api/subscriptions")
    assert (reply.status, reply.headers["retry-after"]) == (409, "1")
    assert reply.json["error"] == {
        "code": "in_progress",
        "retry": "after",
        "request_id": reply.headers["x-request-id"],
        "operation_id": "op_1",
    }


async def test_a_store_that_is_down_is_503(call: Caller, stories: Stories) -> None:
    """Nothing was done, and the client is told when to try again; the reason is ours to know."""
    stories.answer = StoreUnavailable("disk full at /secret/path")
    reply = await call("GET", "/gateway/api/subscriptions")
    assert (reply.status, reply.json["error"]["code"], reply.headers["retry-after"]) == (503, "unavailable", "5")
    assert b"secret" not in reply.body


async def test_a_caller_that_can_not_be_looked_up_is_503(call: Caller, keyring: Keyring) -> None:
    """With the store down nobody can be known; that is no reason to call a good key bad."""
    keyring.is_broken = True
    assert (await call("GET", "/gateway/api/subscriptions")).status == 503


async def test_our_own_fault_is_500_and_keeps_its_secrets(call: Caller, stories: Stories, log_lines: Lines) -> None:
    """The client gets an id, the log the place; what the exception says, which may be a card, goes nowhere."""
    stories.answer = ValueError("4111111111111111")
    reply = await call("POST", "/gateway/api/payments/charge", body=b'{"card":"4111111111111111"}')
    assert (reply.status, reply.json["error"]["code"], reply.json["error"]["retry"]) == (500, "internal", "same_key")
    fault, line = log_lines()
    assert fault["errors"][0]["type"] == "ValueError"
    assert any("fakes.py" in place for place in fault["errors"][0]["places"])
    assert fault["request_id"] == line["request_id"] == reply.headers["x-request-id"]
    assert "4111" not in json.dumps([fault, line])


async def test_a_request_is_one_line(call: Caller, stories: Stories, log_lines: Lines) -> None:
    """Chosen fields under a fixed name: the route and not the path, the caller and not the key."""
    stories.answer = Answer(
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


async def test_the_log_never_holds_what_a_client_sent(call: Caller, log_lines: Lines) -> None:
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
