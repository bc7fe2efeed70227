import pytest
from tests.api.fakes import Caller


@pytest.mark.parametrize("query", ["state=lost", "kind=loan", "limit=0", "cursor=1", "payment_id=x", "order_id="])
async def test_a_wrong_filter_goes_no_further(call_parsing: Caller, query: str) -> None:
    """An impossible filter must not look like an empty list."""
    reply = await call_parsing("GET", f"/gateway/api/operations?{query}")
    assert (reply.status, reply.json["error"]["fields"][0]["path"]) == (422, query.partition("=")[0])
