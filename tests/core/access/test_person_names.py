"""The names under which the service keeps what a person does."""

from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from payrelay.core.access.person_names import PersonNames

NAMES = PersonNames(b"s" * 32)


@given(st.text(min_size=1, max_size=20), st.text(min_size=1, max_size=20), st.text("ab/", min_size=1, max_size=5))
def test_each_person_has_one_name_that_nobody_can_compute(one: str, other: str, key: str) -> None:
    """A repeat finds its request by it; another person's key is another one, and without the secret it says nothing."""
    assert (NAMES.keys_of(one) == NAMES.keys_of(other)) == (one == other)
    assert NAMES.keys_of(one) == PersonNames(b"s" * 32).keys_of(one) != PersonNames(b"t" * 32).keys_of(one)
    assert NAMES.keys_of(one).count("/") == 1
    assert NAMES.key_as_stored(f"reference/{quote(one, safe='')}/{key}") == f"{NAMES.keys_of(one)}/{key}"


def test_what_is_logged_is_not_what_is_stored() -> None:
    """Who has the log can't find the person's operations by it, and two providers may call two people alike."""
    assert NAMES.credential_id("a", "anna").removeprefix("idp_") not in NAMES.keys_of("anna")
    assert NAMES.credential_id("a", "anna") != NAMES.credential_id("b", "anna")


@pytest.mark.parametrize(
    "key", ["pay", "reference/anna", "reference//pay", "reference/a b/pay", "person/anna/pay", "order/reference/anna/k"]
)
def test_only_a_key_that_names_a_person_is_read_so(key: str) -> None:
    """A shop's own key stays as it was sent: it would find another operation than the shop's."""
    assert NAMES.key_as_stored(key) is None
