from hypothesis import given
from hypothesis import strategies as st

from payrelay.core.keyed_digest import DigestKey

SECRET = b"s" * 32
VALUES = st.lists(st.none() | st.integers(-(2**63), 2**63 - 1) | st.text() | st.binary()).map(tuple)


@given(VALUES, VALUES)
def test_only_equal_values_have_equal_digests(
    one: tuple[str | int | bytes | None, ...], other: tuple[str, ...]
) -> None:
    """Two orders whose fields run together to one text must not be taken for each other."""
    key = DigestKey(SECRET, "test")

    assert (key.digest(*one) == key.digest(*other)) == (one == other)
    assert key.fits(key.digest(*one), *one)


def test_values_that_run_together_differ() -> None:
    """The gateway's own signature does not keep these apart; a stored digest must."""
    key = DigestKey(SECRET, "test")

    assert len({key.digest("A1", "2510.00"), key.digest("A12", "510.00"), key.digest("A12510.00"), key.digest()}) == 4


def test_a_number_is_not_its_text() -> None:
    """Otherwise a row could be exchanged for one whose columns have other types."""
    key = DigestKey(SECRET, "test")

    assert len({key.digest(1), key.digest("1"), key.digest(b"1"), key.digest(None), key.digest("")}) == 5


def test_a_digest_is_of_one_secret_and_one_purpose() -> None:
    """A digest that was copied from one table into another, or from another installation, must fit nothing there."""
    digest = DigestKey(SECRET, "test").digest("A1")

    assert not DigestKey(SECRET, "other").fits(digest, "A1")
    assert not DigestKey(b"t" * 32, "test").fits(digest, "A1")


def test_a_missing_digest_fits_nothing() -> None:
    """A row whose digest was blanked must not count as one that is right."""
    key = DigestKey(SECRET, "test")

    assert not key.fits(None)
    assert not key.fits("")
    assert not key.fits("ä")


def test_a_key_is_never_printed() -> None:
    """A key in a log would let its reader forge what it protects."""
    assert repr(DigestKey(SECRET, "test")) == "DigestKey()"
