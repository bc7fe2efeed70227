import pytest

from payrelay.api.http.queries import PARAMETERS_MAX, parse_query
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
