"""The fields of laravel-payhere's rows, as its databases write them."""

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.laravel_shop import APP_KEY_TEXT, sealed

from payrelay.core.secret import Secret
from payrelay.imports.rules.items import ItemRefusedError
from payrelay_tools.laravel.fields import LaravelFields
from payrelay_tools.laravel.secrets import AppKeys

KEYS = AppKeys([Secret(APP_KEY_TEXT)])


def fields_of(values: dict[str, str | None]) -> LaravelFields:
    """Gives the fields of a row of a shop whose key is known."""
    return LaravelFields(values, KEYS)


def test_an_encrypted_nothing_is_nothing() -> None:
    """The package encrypts whatever stands in the column."""
    assert fields_of({"a": sealed(" ")}).text("a") is None
    assert fields_of({"a": sealed("x")}).text("a") == "x"


def test_what_is_neither_yes_nor_no_is_refused_by_its_name() -> None:
    """A payment that was given back must not pass for one that can be refunded."""
    with pytest.raises(ItemRefusedError, match="a is neither 1 nor 0"):
        fields_of({"a": "2"}).flag("a")


@pytest.mark.parametrize(("text", "minor"), [("49.99", 4_999), ("30.299999999999997", 3_030), ("1250", 125_000)])
def test_a_binary_fraction_is_the_hundredth_that_was_stored(text: str, minor: int) -> None:
    """The package's tables hold amounts as binary fractions, which databases write with a tail."""
    assert fields_of({"a": text}).amount("a") == minor


@pytest.mark.parametrize("text", ["1.005", "1.250", "1.2500"])
def test_what_is_no_binary_fraction_of_hundredths_is_refused(text: str) -> None:
    """Nobody knows which amount was meant. No fraction's shortest text ends with a 0: 1.250 may be a thousand."""
    with pytest.raises(ItemRefusedError, match="a must be written like"):
        fields_of({"a": text}).amount("a")


@given(st.none() | st.text(max_size=40))
def test_whatever_a_table_has_it_is_read_or_refused(value: str | None) -> None:
    """No field of a hostile table ends the import of the others."""
    for read in (LaravelFields.flag, LaravelFields.amount):
        with suppress(ItemRefusedError):
            read(fields_of({"a": value}), "a")
