import pytest
from tests.api.fakes import Caller


@pytest.mark.parametrize("subscription_id", ["abc", "-1", "1" * 20, "1.0", "%D9%A3", "1%20"])
@pytest.mark.parametrize(("method", "ending"), [("GET", ""), ("GET", "/payments"), ("POST", "/retry"), ("DELETE", "")])
async def test_what_is_no_subscription_is_not_found(
    call_parsing: Caller, method: str, ending: str, subscription_id: str
) -> None:
    """An id that isn't 1 to 19 digits names no subscription; nothing is sent to find that out."""
    reply = await call_parsing(method, f"/gateway/api/subscriptions/{subscription_id}{ending}")
    assert (reply.status, reply.json["error"]["code"], reply.json["data"]) == (404, "not_found", None)


@pytest.mark.parametrize("body", [b"", b"{}", b"[]", b"null", b" [ ]\n"])
async def test_a_cancellation_takes_whatever_stands_for_no_body(call_parsing: Caller, body: bytes) -> None:
    """Laravel's client sends an empty array where it is given nothing, others null: neither says anything."""
    reply = await call_parsing("DELETE", "/gateway/api/subscriptions/1", body=body)
    assert reply.json["error"]["code"] == "unavailable"


@pytest.mark.parametrize(
    ("body", "status"), [(b'{"reason":"x"}', 422), (b'["x"]', 400), (b"0", 400), (b"now", 400), (b'"{}"', 400)]
)
async def test_a_cancellation_takes_no_body(call_parsing: Caller, body: bytes, status: int) -> None:
    """Where a body needs no members, any member is a misunderstanding, and is refused."""
    reply = await call_parsing("DELETE", "/gateway/api/subscriptions/1", body=body)
    assert reply.status == status
