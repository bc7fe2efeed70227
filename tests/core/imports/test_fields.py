"""The fields of a row, read or refused by their names."""

from collections.abc import Callable
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.laravel_shop import sealed

from payrelay.imports.rules.fields import Fields
from payrelay.imports.rules.items import ItemRefusedError


@pytest.mark.parametrize("empty", [None, "", "  ", "NULL", "null", "\\N"])
def test_what_stands_for_nothing_is_nothing(empty: str | None) -> None:
    """Exports write a null in several ways, and none of them is a customer's reference."""
    fields = Fields({"a": empty, "b": "x"})

    assert fields.text("a") is None
    assert fields.text("a", "b") == fields.required("a", "b") == "x"
    assert fields.text("missing") is None
    assert (fields.number("a"), fields.count("a"), fields.day("a"), fields.moment("a", "UTC")) == (None,) * 4


READERS: dict[str, Callable[[Fields], object]] = {
    "text": lambda fields: fields.text("a"),
    "required": lambda fields: fields.required("a"),
    "number": lambda fields: fields.number("a"),
    "required number": lambda fields: fields.required_number("a"),
    "token": lambda fields: fields.token("a"),
    "amount": lambda fields: fields.amount("a"),
    "currency": lambda fields: fields.currency("a"),
    "count": lambda fields: fields.count("a"),
    "day": lambda fields: fields.day("a"),
    "card expiry": lambda fields: fields.card_expiry("a"),
    "card fact": lambda fields: fields.card_fact("a"),
    "moment": lambda fields: fields.moment("a", "UTC"),
}


@pytest.mark.parametrize(
    ("reader", "value", "why"),
    [
        ("text", "\udcff", "a isn't UTF-8"),
        ("text", "a\x1b[0m", "a has a character"),
        ("text", "x" * 256, "a has more than 255"),
        ("text", sealed("x"), "a is encrypted"),
        ("required", "", "a is missing"),
        ("number", "abc", "a is no number"),
        ("number", "0", "a is no number"),
        ("number", "1" * 20, "a is no number"),
        ("required number", "", "a is missing"),
        ("token", "short", "a can't be a token"),
        ("token", "has space inside", "a can't be a token"),
        ("token", "********", "a can't be a token"),
        ("token", "cus_0123456789", "a is the handle"),
        ("token", sealed("59AFEE022CC69CA39D325E1B59130862"), "a is encrypted"),
        *(("amount", text, "a must be written like") for text in ("1250,00", "-5", "1e3", "1.250", "1.005")),
        ("amount", "0", "a must be greater than 0"),
        ("currency", "lkr", "a is no currency"),
        ("count", "two", "a is no whole number"),
        ("day", "yesterday", "a is no date"),
        ("day", "2026-11-255", "a is no date"),
        ("day", "2026-11-25x", "a is no date"),
        ("day", "2026-02-30 00:00:00", "a is no date"),
        ("card expiry", "13/29", "a must be a month and a year"),
        ("card fact", "x" * 33, "a has more than 32"),
        ("moment", "yesterday", "a is no time"),
        ("moment", "2999-01-01", "a is no time"),
    ],
)
def test_what_cannot_be_read_is_refused_by_its_name(reader: str, value: str, why: str) -> None:
    """Whoever imports mends the file by this sentence."""
    with pytest.raises(ItemRefusedError) as raised:
        READERS[reader](Fields({"a": value}))

    assert str(raised.value).startswith(why)


def test_what_can_be_read_is_read() -> None:
    """One of each kind."""
    fields = Fields({"n": "00320025", "m": "12.5", "d": "2026-11-25 00:00:00", "z": "0000-00-00", "c": "3"})

    assert fields.required_number("n") == "320025"
    assert fields.amount("m") == 1_250
    assert fields.day("d") == "2026-11-25"
    assert (fields.day("z"), fields.moment("z", "UTC")) == (None, None)
    assert fields.moment("d", "Asia/Colombo") == fields.moment("d", "UTC") - 19_800_000  # type: ignore[operator]
    assert fields.count("c") == 3
    assert fields.has("n") is not fields.has("x")


def test_a_row_of_another_merchant_is_refused() -> None:
    """Its tokens charge nobody here, and its payments aren't this account's."""
    with pytest.raises(ItemRefusedError, match="another merchant's"):
        Fields({"merchant_id": "1999999"}).require_merchant(lambda _: False)


@pytest.mark.parametrize(("number", "answer"), [("1211149", True), ("1999999", None), ("", False)])
def test_a_row_of_the_merchant_or_of_nobody_knows_whom_is_read(number: str, *, answer: bool | None) -> None:
    """Where the account has no number, or the row none, nothing can be compared."""
    Fields({"merchant_id": number}).require_merchant(lambda _: answer)


@given(st.dictionaries(st.just("a"), st.none() | st.text(max_size=40)), st.sampled_from(sorted(READERS)))
def test_whatever_a_file_has_it_is_read_or_refused(values: dict[str, str | None], reader: str) -> None:
    """No field of a hostile file ends the import of the others."""
    with suppress(ItemRefusedError):
        READERS[reader](Fields(values))
