import pytest
from tests.api.fakes import Caller, Stories

from payrelay.api.http.freshness import insists_on_new
from payrelay.api.http.incoming_request import Headers
from payrelay.core.answers import found


def insists(*values: bytes) -> bool:
    """Tells whether headers of these values ask for a new answer."""
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
    """A browser that reloads a page must not cost the gateway's budget a call each time, unless it says so."""
    assert not insists(*values)


async def test_a_read_is_told_that_the_client_insists(call: Caller, stories: Stories) -> None:
    """Reads alone: to an effect it would mean nothing."""
    for method, path in (("GET", "payments/A-1"), ("POST", "subscriptions/7/retry"), ("GET", "operations")):
        await call(method, f"/gateway/api/{path}", headers={"Cache-Control": "no-cache"})
    await call("GET", "/gateway/api/payments/A-1")
    assert [asked.request.is_insisting for _, asked in stories.asked] == [True, False, False, False]


async def test_how_old_an_answer_is_stands_in_its_head(call: Caller, stories: Stories) -> None:
    """And a proxy on the way is told to keep nothing, whatever the age."""
    answer = found([])
    stories.answer = type(answer)(
        http_status=200, body=answer.body, headers=(("Age", "61"), ("Payrelay-Stale", "true"))
    )
    reply = await call("GET", "/gateway/api/payments/A-1")
    shown = [reply.headers.get(name) for name in ("age", "payrelay-stale", "cache-control")]
    assert shown == ["61", "true", "no-store"]
