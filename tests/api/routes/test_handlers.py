import pytest
from tests.api.fakes import Caller

BAD = b'{"amount":0}'


@pytest.mark.parametrize("path", ["charge", "capture", "refund"])
async def test_a_wrong_body_goes_no_further(call_parsing: Caller, path: str) -> None:
    """A wrong field is refused before any story begins (here one would fail for want of a journal)."""
    reply = await call_parsing("POST", f"/gateway/api/payments/{path}", body=BAD)
    assert (reply.status, reply.json["error"]["code"]) == (422, "invalid_request")
    assert "amount" in {field["path"] for field in reply.json["error"]["fields"]}


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b'{"a":1,"a":2}'])
async def test_a_body_that_can_not_be_read_goes_no_further(call_parsing: Caller, body: bytes) -> None:
    """Bad JSON, and none at all where one is needed, is 400."""
    headers = {"Content-Type": "application/json"}
    reply = await call_parsing("POST", "/gateway/api/payments/charge", headers=headers, body=body)
    assert (reply.status, reply.json["error"]["code"]) == (400, "malformed_request")


@pytest.mark.parametrize("order_id", ["x" * 256, "%E0%B6%B1" * 256])
async def test_too_long_an_order_id_is_wrong(call_parsing: Caller, order_id: str) -> None:
    """An id that no charge can have had is a mistake, named as the path's id."""
    reply = await call_parsing("GET", f"/gateway/api/payments/{order_id}")
    assert (reply.status, reply.json["error"]["fields"][0]["path"]) == (422, "id")


@pytest.mark.parametrize("subscription_id", ["abc", "-1", "1" * 20, "1.0", "%D9%A3", "1%20"])
@pytest.mark.parametrize(("method", "ending"), [("GET", ""), ("GET", "/payments"), ("POST", "/retry"), ("DELETE", "")])
async def test_what_is_no_subscription_is_not_found(
    call_parsing: Caller, method: str, ending: str, subscription_id: str
) -> None:
    """An id that isn't 1 to 19 digits names no subscription; nothing is sent to find that out."""
    reply = await call_parsing(method, f"/gateway/api/subscriptions/{subscription_id}{ending}")
    assert (reply.status, reply.json["error"]["code"], reply.json["data"]) == (404, "not_found", None)


@pytest.mark.parametrize(
    ("body", "status"), [(b'{"reason":"x"}', 422), (b"[]", 400), (b"null", 400), (b"now", 400), (b'"{}"', 400)]
)
async def test_a_cancellation_takes_no_body(call_parsing: Caller, body: bytes, status: int) -> None:
    """Where nothing is to be said, a body is a misunderstanding, and is told so."""
    reply = await call_parsing("DELETE", "/gateway/api/subscriptions/1", body=body)
    assert reply.status == status


@pytest.mark.parametrize("query", ["state=lost", "kind=loan", "limit=0", "cursor=1", "payment_id=x", "order_id="])
async def test_a_wrong_filter_goes_no_further(call_parsing: Caller, query: str) -> None:
    """A filter that can't be meant must not look like an empty list."""
    reply = await call_parsing("GET", f"/gateway/api/operations?{query}")
    assert (reply.status, reply.json["error"]["fields"][0]["path"]) == (422, query.partition("=")[0])
