import pytest

from payrelay.api.http.queries import PARAMETERS_MAX, parse_query
from payrelay.api.routes.parameters import CURSOR, LIMIT, ORDER_ID, STATE, query_errors
from payrelay.errors import Code, Refusal

ALLOWED = frozenset({"state", "order_id", "limit", "cursor"})


def test_parameters_are_decoded() -> None:
    """A plus is a blank, an escape is its character, an empty query is none."""
    assert parse_query(b"order_id=a+b%2Bc%26&state=", ALLOWED) == {"order_id": "a b+c&", "state": ""}
    assert parse_query(b"", ALLOWED) == {}
    assert parse_query(b"&", ALLOWED) == {}


def test_what_is_unknown_or_doubled_is_named() -> None:
    """A mistyped filter must not pass as no filter, and of two values neither is picked."""
    with pytest.raises(Refusal) as raised:
        parse_query(b"stat=unknown&limit=1&limit=2", ALLOWED)
    assert raised.value.code is Code.INVALID_REQUEST
    assert [(error.path, error.msg) for error in raised.value.fields] == [
        ("stat", "is not a known parameter"),
        ("limit", "is there twice"),
    ]


@pytest.mark.parametrize("query", [b"order_id=%", b"%zz=1", b"order_id=%ff", b"order_id=%00", b"a&" * 21])
def test_what_can_not_be_read_is_malformed(query: bytes) -> None:
    """Half an escape, another encoding and an endless list are no query."""
    with pytest.raises(Refusal) as raised:
        parse_query(query, ALLOWED)
    assert raised.value.code is Code.MALFORMED_REQUEST
    assert PARAMETERS_MAX == 20


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
