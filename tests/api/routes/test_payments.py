import pytest
from tests.api.fakes import Caller

BAD = b'{"amount":0}'


@pytest.mark.parametrize("path", ["charge", "capture", "refund"])
async def test_a_wrong_body_goes_no_further(call_parsing: Caller, path: str) -> None:
    """A wrong field is refused before any flow begins (here one would fail without a journal)."""
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
