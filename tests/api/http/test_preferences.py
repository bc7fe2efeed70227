import pytest
from hypothesis import given
from hypothesis import strategies as st

from payrelay.api.http.incoming_request import Headers
from payrelay.api.http.preferences import preferred_wait_s
from payrelay.flows.payments.await_outcome import WAIT_S_MAX


def wait_of(*values: bytes) -> int:
    """Gives the seconds that headers of these values ask for."""
    return preferred_wait_s(Headers([(b"prefer", value) for value in values]))


@pytest.mark.parametrize(
    ("value", "wait_s"),
    [
        (b"wait=10", 10),
        (b"Wait = 10", 10),
        (b"respond-async, wait=7;strict", 7),
        (b'handling="strict, wait=9", wait=5', 5),
        (b"wait=0", 0),
        (b"wait=007", 7),
        (b"wait=60", 60),
        (b"wait=61", WAIT_S_MAX),
        (b"wait=" + b"9" * 10_000, WAIT_S_MAX),
    ],
)
def test_the_seconds_are_read(value: bytes, wait_s: int) -> None:
    """As RFC 7240 writes them, beside other preferences; more than we hold is cut."""
    assert wait_of(value) == wait_s


@pytest.mark.parametrize(
    "value", [b"", b"wait", b"wait=", b"wait=x", b"wait=-1", b"wait=1.5", b'wait="5"', b"waiting=5", b'x="wait=5', b","]
)
def test_what_is_malformed_is_passed_over(value: bytes) -> None:
    """A preference is no demand, and nothing is refused for it."""
    assert wait_of(value) == 0


def test_of_several_the_first_counts() -> None:
    """Also where it is malformed: a client that says two things gets neither more nor less than the first."""
    assert wait_of(b"wait=3", b"wait=9") == 3
    assert wait_of(b"wait=x, wait=9") == 0


def test_without_the_header_nobody_waits() -> None:
    """The usual case."""
    assert wait_of() == 0


@given(st.binary(max_size=200))
def test_nothing_that_a_client_sends_breaks_it(value: bytes) -> None:
    """Whatever comes in, it is a wait within the limits."""
    assert 0 <= wait_of(value) <= WAIT_S_MAX
