import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.api.fakes import Caller, RecordingFlows

from payrelay.api.http.incoming_request import Headers
from payrelay.api.http.preferences import insists_on_new, preferred_wait_s
from payrelay.core.answers import found
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
    """As RFC 7240 writes them, beside other preferences; longer waits are cut to the maximum."""
    assert wait_of(value) == wait_s


@pytest.mark.parametrize(
    "value", [b"", b"wait", b"wait=", b"wait=x", b"wait=-1", b"wait=1.5", b'wait="5"', b"waiting=5", b'x="wait=5', b","]
)
def test_what_is_malformed_is_passed_over(value: bytes) -> None:
    """A preference is no demand, and nothing is refused for it."""
    assert wait_of(value) == 0


def test_of_several_the_first_counts() -> None:
    """Also where the first is malformed: a client that sends two gets exactly the first."""
    assert wait_of(b"wait=3", b"wait=9") == 3
    assert wait_of(b"wait=x, wait=9") == 0


def test_without_the_header_no_client_waits() -> None:
    """The usual case."""
    assert wait_of() == 0


@given(st.binary(max_size=200))
def test_nothing_that_a_client_sends_breaks_it(value: bytes) -> None:
    """Whatever comes in, it is a wait within the limits."""
    assert 0 <= wait_of(value) <= WAIT_S_MAX


def insists(*values: bytes) -> bool:
    """Tells whether headers with these values require a new answer."""
    return insists_on_new(Headers([(b"cache-control", value) for value in values]))


@pytest.mark.parametrize(
    "values", [(b"no-cache",), (b"No-Cache",), (b"max-age=0, no-cache",), (b"x='a', no-cache ",), (b"", b"no-cache")]
)
def test_no_cache_asks_for_a_new_answer(values: tuple[bytes, ...]) -> None:
    """In any case, beside other directives, in one header or several."""
    assert insists(*values)


@pytest.mark.parametrize(
    "values", [(), (b"",), (b"no-store",), (b"max-age=0",), (b"no-cache=1",), (b"no-cached",), (b'x="a, no-cache, b"',)]
)
def test_anything_else_is_passed_over(values: tuple[bytes, ...]) -> None:
    """Other directives must not cost the gateway's budget a call at every reload of a page."""
    assert not insists(*values)


async def test_a_read_learns_that_the_client_requires_a_new_answer(call: Caller, flows: RecordingFlows) -> None:
    """Reads alone: to an effect it would mean nothing."""
    for method, path in (("GET", "payments/A-1"), ("POST", "subscriptions/7/retry"), ("GET", "operations")):
        await call(method, f"/gateway/api/{path}", headers={"Cache-Control": "no-cache"})
    await call("GET", "/gateway/api/payments/A-1")
    assert [parsed.request.is_insisting for _, parsed in flows.requests] == [True, False, False, False]


async def test_how_old_an_answer_is_stands_in_its_head(call: Caller, flows: RecordingFlows) -> None:
    """A proxy on the way must cache nothing, whatever the age."""
    answer = found([])
    flows.answer = type(answer)(http_status=200, body=answer.body, headers=(("Age", "61"), ("Payrelay-Stale", "true")))
    reply = await call("GET", "/gateway/api/payments/A-1")
    shown = [reply.headers.get(name) for name in ("age", "payrelay-stale", "cache-control")]
    assert shown == ["61", "true", "no-store"]
