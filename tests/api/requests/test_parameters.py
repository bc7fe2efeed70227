import pytest

from payrelay.api.requests.parameters import LIMIT, query_errors
from payrelay.api.routes.operations import CURSOR, ORDER_ID, STATE


@pytest.mark.parametrize("limit", ["0", "101", "-1", "1.0", "", "1e1", "٣", "1" * 50])
def test_a_page_has_one_to_a_hundred_operations(limit: str) -> None:
    """A page has a size that fits an answer; anything else is refused, not trimmed."""
    assert [error.path for error in query_errors((LIMIT,), {"limit": limit})] == ["limit"]
    assert query_errors((LIMIT,), {"limit": "1"}) == query_errors((LIMIT,), {"limit": "100"}) == []


def test_filters_know_their_values() -> None:
    """A state that doesn't exist would otherwise look like no operations."""
    values = {"state": "lost", "cursor": "op_1", "order_id": "x" * 256}
    assert [error.path for error in query_errors((STATE, CURSOR, ORDER_ID), values)] == ["state", "cursor", "order_id"]
    assert not query_errors((STATE, CURSOR), {"state": "unknown", "cursor": "op_" + "0" * 32})
