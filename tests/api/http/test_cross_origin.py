from collections.abc import Callable

import pytest
from tests.api.fakes import Caller

from payrelay.api.http.cross_origin import ANSWER_HEADERS
from payrelay.api.openapi.document import HEADERS

SHOP = "https://shop.example"
ASKS = {"Authorization": "", "Origin": SHOP, "Access-Control-Request-Method": "POST"}
TARGET = "/gateway/api/payments/charge"


@pytest.fixture
def call(call_with: Callable[..., Caller]) -> Caller:
    """A service that lets one page in."""
    return call_with(browser_origins=(SHOP,))


async def test_an_allowed_page_may_ask(call: Caller) -> None:
    """A browser sends a preflight without a credential first, and only then the request of the page's script."""
    reply = await call("OPTIONS", TARGET, headers=ASKS)
    assert (reply.status, reply.body) == (204, b"")
    assert reply.headers["access-control-allow-origin"] == SHOP
    assert {"authorization", "idempotency-key"} <= set(reply.headers["access-control-allow-headers"].split(", "))
    assert "DELETE" in reply.headers["access-control-allow-methods"]


@pytest.mark.parametrize(
    "origin", ["https://shop.example.evil.example", "http://shop.example", "https://SHOP.example", "null", ""]
)
async def test_another_page_learns_nothing(call: Caller, origin: str) -> None:
    """It gets the answer to any request without a credential, and no headers for its browser."""
    reply = await call("OPTIONS", TARGET, headers=ASKS | {"Origin": origin})
    assert (reply.status, reply.json["error"]["code"]) == (401, "unauthenticated")
    assert "access-control-allow-origin" not in reply.headers
    assert reply.headers["vary"] == "origin"


async def test_an_allowed_page_reads_answers_and_errors(call: Caller) -> None:
    """A script that couldn't read the error would tell its user that the network is down."""
    for headers in ({"Origin": SHOP}, {"Origin": SHOP, "Authorization": ""}):
        reply = await call("GET", "/gateway/api/operations", headers=headers)
        assert reply.headers["access-control-allow-origin"] == SHOP
        assert "payrelay-operation" in reply.headers["access-control-expose-headers"]
        assert "access-control-allow-credentials" not in reply.headers


def test_a_page_reads_every_header_that_is_described() -> None:
    """But for two that tell a script nothing: a browser keeps back each header that isn't named."""
    described = {name.lower() for name in HEADERS} - {"allow", "www-authenticate"}
    exposed = {name.decode() for name in ANSWER_HEADERS.split(b", ")}

    assert exposed == described | {"traceresponse"}


async def test_an_allowed_page_still_needs_a_credential(call: Caller) -> None:
    """The client itself sends the origin: it proves nothing."""
    reply = await call("GET", "/gateway/api/operations", headers={"Origin": SHOP, "Authorization": ""})
    assert reply.status == 401


async def test_options_without_the_question_is_no_preflight(call: Caller) -> None:
    """A client that is no browser learns the methods, once it is authenticated."""
    reply = await call("OPTIONS", TARGET, headers={"Origin": SHOP})
    assert (reply.status, reply.json["error"]["code"]) == (405, "method_not_allowed")


async def test_no_origin_is_allowed_unless_set(call_with: Callable[..., Caller]) -> None:
    """As it comes, no page of another origin can use the API, and answers don't mention browsers."""
    reply = await call_with()("OPTIONS", TARGET, headers=ASKS)
    assert reply.status == 401
    assert not {"vary", "access-control-allow-origin"} & set(reply.headers)
