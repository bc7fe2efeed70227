import json
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from payrelay.api.http.json_text import (
    CONTAINERS_MAX,
    NESTING_MAX,
    OVERSIZE_NUMBER,
    PATH_LENGTH_SHOWN_MAX,
    parse_object,
    printable,
    unusable_texts,
)
from payrelay.errors import Code, Refusal

TEXTS = st.text(st.characters(exclude_categories=["Cs"]))
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=8,
)


@given(st.dictionaries(TEXTS, VALUES, max_size=4))
def test_an_object_is_read_as_it_was_written(members: dict[str, object]) -> None:
    """Whatever JSON holds, apart from fractions, comes out as it went in."""
    assert parse_object(json.dumps(members).encode()) == members


@pytest.mark.parametrize(
    "text", ["345.67", "0.10", "1.000", "-0.5", "9" * 400 + ".5", "1E+2", "1.5E-3", "-1E+999", "1E-999"]
)
def test_a_fraction_is_exact(text: str) -> None:
    """A fraction becomes a decimal with the very digits that were sent; a float would move money."""
    value = parse_object(b'{"amount":%b}' % text.encode())["amount"]
    assert isinstance(value, Decimal)
    assert value.as_tuple() == Decimal(text).as_tuple()


@pytest.mark.parametrize("text", [b"1e1000", b"-1e999999999", b"1E-999999999", b"1e" + b"9" * 5_000, b"1" * 99 + b"e1"])
def test_a_number_that_no_field_takes_is_marked(text: bytes) -> None:
    """Such a number is never calculated: 1e999999999 would fill the memory."""
    assert parse_object(b'{"amount":%b}' % text)["amount"] is OVERSIZE_NUMBER
    assert parse_object(b'{"nested":[],"amount":%b}' % text)["amount"] is OVERSIZE_NUMBER


def test_zeros_before_an_exponent_say_nothing() -> None:
    """JSON allows them: it is the exponent's value that is bounded."""
    assert parse_object(b'{"amount":1e+0000000002}')["amount"] == 100


@pytest.mark.parametrize(("encoding", "named"), [("utf-8-sig", "UTF-8"), ("utf-16", "UTF-16"), ("utf-32", "UTF-32")])
@pytest.mark.parametrize("text", ['{"a":1}', "", '{"a":[]}', "[]"])
def test_a_byte_order_mark_is_named(text: str, encoding: str, named: str) -> None:
    """Some editors and libraries write one that nobody sees: "not JSON" would not lead to it."""
    with pytest.raises(Refusal, match=rf"begins with a byte order mark \({named}\)") as raised:
        parse_object(text.encode(encoding))
    assert raised.value.code is Code.MALFORMED_REQUEST


@pytest.mark.parametrize(("mark", "named"), [(b"\xfe\xff", "UTF-16"), (b"\x00\x00\xfe\xff", "UTF-32")])
def test_a_mark_of_the_other_order_is_named_too(mark: bytes, named: str) -> None:
    """Java writes UTF-16 so."""
    with pytest.raises(Refusal, match=f"byte order mark .{named}"):
        parse_object(mark + b'{"a":1}')


def test_an_endless_integer_does_no_harm() -> None:
    """Python refuses to make an int of over 4300 digits; the request must get 422 by its field, not 500."""
    assert parse_object(b'{"a":%b}' % (b"9" * 5000))["a"] == Decimal("9" * 5000)


def test_an_endless_integer_hides_no_mistake_behind_it() -> None:
    """Such a body is read once more for its integer, and what is wrong with it is told all the same."""
    with pytest.raises(Refusal, match="not JSON"):
        parse_object(b'{"a":%b,}' % (b"9" * 5000))


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"null",
        b"[]",
        b'"text"',
        b"7",
        b"{",
        b"{}{}",
        b"{'a':1}",
        b'{"a":1,}',
        b'{"a":NaN}',
        b'{"a":-Infinity}',
        b'{"a":01}',
        b'{"a":.5}',
        b'{"a":"tab\t"}',
        b'\xef\xbb\xbf{"a":1}',
        b'{"a":"\xff"}',
        b'{"a":"\xed\xa0\x80"}',
        '{"a":1}'.encode("utf-16"),
    ],
)
def test_anything_but_one_object_in_utf8_is_malformed(body: bytes) -> None:
    """What two readers could understand differently is not read at all."""
    with pytest.raises(Refusal) as raised:
        parse_object(body)
    assert raised.value.code is Code.MALFORMED_REQUEST


@pytest.mark.parametrize("body", [b'{"amount":1,"amount":2}', b'{"l":[{"x":{"amount":1,"b":2,"amount":1}}]}'])
def test_a_doubled_member_is_named(body: bytes) -> None:
    """Of two amounts, some readers take the first and others the last: neither is charged."""
    with pytest.raises(Refusal, match="the member amount is there twice"):
        parse_object(body)


RAW_NAMES = st.sampled_from(["a", "b", "amount", "", "\u00e9", "a b", "{", ":"])
RAW_NUMBERS = ("1", "-0", "0.10", "1.5", "1e2", "1E400", "1.0E+2", "9" * 25, "9" * 5000, "01", ".5", "+1", "NaN")
RAW_TEXTS = ('"a"', '""', '"\u00e9"', '"\x7f"', '"\t"', '"{"', '"a" "b"', '"')
RAW_VALUES = st.sampled_from((*RAW_NUMBERS, *RAW_TEXTS, "true", "null", "nul", "[1]", "{}", '{"a":"b"}'))


def _outcome(body: str) -> str:
    try:
        return str({name: repr(value) for name, value in parse_object(body.encode()).items() if name != "nested"})
    except Refusal as refused:
        return refused.code


@given(st.lists(st.tuples(RAW_NAMES, RAW_VALUES), max_size=5), st.sampled_from(["", " ", "\r\n", "\x0b"]))
def test_a_flat_body_is_read_as_one_that_is_not(pairs: list[tuple[str, str]], space: str) -> None:
    """Flat bodies have a quick reader; where the two differed, one of them would charge something else."""
    flat = f",{space}".join(f'"{name}":{space}{value}' for name, value in pairs)
    nested = f'{flat}{"," if pairs else ""}"nested":[]'

    assert _outcome(f"{{{flat}}}{space}") == _outcome(f"{{{nested}}}{space}")


@pytest.mark.parametrize("opening", [b"[", b'{"a":'])
def test_deep_nesting_is_refused(opening: bytes) -> None:
    """Sixteen levels are more than enough, and 60,000 must not end the process."""
    closing = b"]" if opening == b"[" else b"}"
    fitting = b'{"a":' + opening * (NESTING_MAX - 1) + b"1" + closing * (NESTING_MAX - 1) + b"}"
    assert parse_object(fitting)
    for levels in (NESTING_MAX, 9_000):
        with pytest.raises(Refusal, match="nested"):
            parse_object(b'{"a":' + opening * levels + b"1" + closing * levels + b"}")


@pytest.mark.parametrize("container", [b"[]", b'{"a":1}', b"[[[]]]"])
def test_more_objects_and_arrays_than_any_body_has_are_refused(container: bytes) -> None:
    """Each of them is looked at several times, and 64 KiB have room for 30,000."""
    each = container.count(b"[") + container.count(b"{")
    fitting = (CONTAINERS_MAX - 2) // each  # beside the body and its list
    assert parse_object(b'{"a":[' + (container + b",") * fitting + b"1]}")
    with pytest.raises(Refusal, match="more than 1000 objects and arrays"):
        parse_object(b'{"a":[' + (container + b",") * (fitting + 1) + b"1]}")


def test_brackets_in_a_text_are_not_nesting() -> None:
    """A title may hold as many brackets as it likes."""
    assert parse_object(b'{"items":"%b"}' % (b"[{" * 50))


def test_texts_that_no_database_keeps_are_found_by_path() -> None:
    """NUL and half a surrogate pair can be written as escapes, and would fail only when they are stored."""
    members = parse_object(b'{"a":"\\u0000","l":[{"n":"\\ud800"}],"ok":"\\ud83d\\ude00","\\udfff":1}')
    assert [error.path for error in unusable_texts(members)] == ["a", "l[0].n"]


def test_a_path_through_long_names_is_cut() -> None:
    """It is written for each text below it, so names in names must not make it longer and longer."""
    members = parse_object(b'{"%b":{"%b":{"%b":{"%b":{"%b":["\\u0000"]}}}}}' % ((b"x" * 64,) * 5))
    (error,) = unusable_texts(members)
    assert error.path == ".".join(["x" * 64] * 5)[:PATH_LENGTH_SHOWN_MAX]


def test_a_foreign_name_can_stand_in_an_answer() -> None:
    """An unknown member's name is repeated to the caller: cut, and always writable."""
    assert printable("x" * 500) == "x" * 64
    assert printable("a\0\ud800").encode() == b"a\\x00\\ud800"
