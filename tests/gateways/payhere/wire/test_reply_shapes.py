import json
import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from payrelay.gateways.payhere.wire.reply_shapes import (
    Cause,
    Envelope,
    OauthError,
    UnreadableReply,
    WrongShape,
    members_of,
    read_shape,
)

NAMES = st.sampled_from(["a", "b", "aa", 'q"', "\\", "é", "{", ",", ":", "}"]) | st.text(max_size=3)
VALUES = st.sampled_from(["1", "12", "123", '"x"', '"x,"', "[1,2]", '{"a":1}', "null", '","', '"}"', "[ ]"])
SPACES = st.sampled_from(["", " ", "\n\t", "\r\n  "])


@given(members=st.dictionaries(NAMES, VALUES, max_size=5), space=SPACES, is_ascii=st.booleans())
def test_every_object_with_single_names_is_read(members: dict[str, str], space: str, *, is_ascii: bool) -> None:
    """Names with quotes, braces and escapes, values that look like syntax, white space anywhere: all of it is kept."""
    pairs = [f"{json.dumps(name, ensure_ascii=is_ascii)}{space}:{space}{value}" for name, value in members.items()]
    text = space + "{" + space + f"{space},{space}".join(pairs) + space + "}" + space
    try:
        raw = text.encode()
    except UnicodeEncodeError:  # a lone surrogate, which no bytes can hold
        return
    assert members_of(raw) == {name: value.encode() for name, value in members.items()}


@given(name=NAMES.filter(str.isprintable), first=VALUES, last=VALUES, others=st.dictionaries(NAMES, VALUES, max_size=3))
def test_a_name_that_stands_twice_is_found(name: str, first: str, last: str, others: dict[str, str]) -> None:
    """Two amounts in one reply: we would compare the one, and the client would read the other."""
    rest = [f"{json.dumps(other)}:{value}" for other, value in others.items() if other != name]
    pairs = [f"{json.dumps(name)}:{first}", *rest, f"{json.dumps(name, ensure_ascii=False)}:{last}"]
    with pytest.raises(WrongShape) as caught:
        members_of(("{" + ",".join(pairs) + "}").encode())
    assert caught.value.cause is Cause.DOUBLED_MEMBER


def test_a_name_that_is_written_in_two_ways_is_the_same_name() -> None:
    """An escape in a name doesn't hide it."""
    with pytest.raises(WrongShape):
        members_of(b'{"amount":1,"\\u0061mount":2}')


@pytest.mark.parametrize("body", [b'{"amount":12,"amount":1}', b'{ "amount": 1.25, "amount": 1 }'])
def test_a_first_value_that_begins_like_the_last_hides_nothing(body: bytes) -> None:
    """Of 12 and 1 the second is kept, and stands at the head of the first."""
    with pytest.raises(WrongShape) as caught:
        members_of(body)
    assert caught.value.cause is Cause.DOUBLED_MEMBER


@pytest.mark.parametrize(
    ("body", "cause"),
    [
        (b'{"status":1,"msg":"\xff","data":null}', Cause.NOT_UTF8),
        (b"\xef\xbb\xbf{}", Cause.NOT_JSON),
        (b'{"status":1,"msg":"x","data":NaN}', Cause.NOT_JSON),
        (b'{"status":1,"msg":"x","data":' + b"[" * 5_000 + b"]" * 5_000 + b"}", Cause.NOT_JSON),
        (b'{"status":1,"msg":"x","data":null} x', Cause.NOT_JSON),
        (b"[1]", Cause.OTHER_SHAPE),
        (b'{"status":1,"msg":"\\ud800","data":null}', Cause.NOT_JSON),
        (b'{"status":01,"msg":"x","data":null}', Cause.NOT_JSON),
        (b'{"status":99999999999999999999,"msg":"x","data":null}', Cause.OTHER_SHAPE),
    ],
)
def test_why_a_body_is_not_read(body: bytes, cause: Cause) -> None:
    """The reason stands in the evidence, for whoever must find out what the gateway sent."""
    assert read_shape(body) == UnreadableReply(cause=cause)


def test_a_long_name_takes_little_memory() -> None:
    """A pattern that keeps a way back for each character took some hundred bytes for it, and 2 GB for a whole reply."""
    name = "a" * 500_000
    body = b'{ "%b": 1}' % name.encode()
    tracemalloc.start()
    try:
        assert members_of(body) == {name: b"1"}
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert peak < 10 * len(body)


def test_the_two_shapes_of_a_reply() -> None:
    """A business answer and an OAuth answer are distinguished by their members, not by the HTTP status."""
    assert read_shape(b'{"error":"x","error_description":"y"}') == OauthError(error="x", description="y")
    assert read_shape(b'{"data":[],"msg":"m","status":-2}') == Envelope(
        status=-2, msg="m", raw_msg=b'"m"', raw_data=b"[]"
    )
