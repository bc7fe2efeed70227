import msgspec
import pytest
from tests.api.fakes import Caller, Keyring, RecordingFlows

from payrelay.core.access.credential import Scope

CHARGE = b'{"type":"PAYMENT"}'


async def test_a_request_reaches_its_flow(call: Caller, flows: RecordingFlows) -> None:
    """The flow gets the caller, the account, the key, the request id and the body."""
    reply = await call(
        "POST",
        "/gateway/api/payments/charge",
        headers={"Idempotency-Key": '"order-1"', "X-Request-Id": "mine"},
        body=CHARGE,
    )
    name, parsed = flows.requests[0]
    assert (reply.status, reply.body) == (200, b'{"status":1,"msg":"OK","data":{"is":"done"}}')
    assert (name, parsed.body, parsed.request.account) == ("charge", CHARGE, "gateway")
    assert (parsed.request.principal, parsed.request.idempotency_key) == ("shop", "order-1")
    assert parsed.request.request_id == reply.headers["x-request-id"] == "mine"


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
async def test_another_method_learns_the_right_ones(call: Caller, method: str, target: str, allow: str) -> None:
    """A known address lists its methods, also to HEAD and OPTIONS."""
    reply = await call(method, target)
    assert (reply.status, reply.headers["allow"]) == (405, allow)
    assert reply.json["error"]["code"] == "method_not_allowed"


async def test_a_scope_that_is_missing_is_named(call: Caller, keyring: Keyring, flows: RecordingFlows) -> None:
    """An app's key can't refund, and its owner learns which scope is needed."""
    keyring.by_id["abcdefghijkl"] = msgspec.structs.replace(
        keyring.by_id["abcdefghijkl"], scopes=frozenset({Scope.PAYMENTS_READ})
    )
    reply = await call("POST", "/gateway/api/payments/refund", body=b"{}")
    assert (reply.status, reply.json["status"]) == (403, -2)
    assert "payments:refund" in reply.json["msg"]
    assert flows.requests == []


async def test_a_key_for_another_account_is_refused(call: Caller, keyring: Keyring) -> None:
    """A key that is bound to one account opens no other."""
    keyring.by_id["abcdefghijkl"] = msgspec.structs.replace(
        keyring.by_id["abcdefghijkl"], accounts=frozenset({"elsewhere"})
    )
    assert (await call("GET", "/gateway/api/subscriptions")).status == 403
