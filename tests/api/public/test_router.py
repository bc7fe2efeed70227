"""The public paths of an account: they match exactly, and their bodies are bounded."""

import pytest

from payrelay.api.http.incoming_request import Headers, require_type
from payrelay.api.http.outgoing import PlainAnswer
from payrelay.api.public.caller import Caller
from payrelay.api.public.notifications import EMPTY
from payrelay.api.public.router import PUBLIC_ROUTES, PublicRoute, PublicRouter
from payrelay.core.gateways.capabilities import FORM_TYPE
from payrelay.errors import Code, Refusal
from payrelay.flows.relay import Relay


async def nothing(relay: Relay, caller: Caller) -> PlainAnswer:  # noqa: ARG001, the shape of a handler
    """Answers with nothing."""
    return EMPTY


ROUTES = (
    PublicRoute(method="POST", path="/notifications", handler=nothing),
    PublicRoute(method="GET", path="/things/{id}/{secret}", handler=nothing),
    PublicRoute(method="POST", path="/things/{id}/{secret}", handler=nothing),
)


def segments(path: str) -> list[bytes]:
    """Splits a raw path as the API does."""
    return path.encode().split(b"/")


@pytest.fixture
def public() -> PublicRouter:
    """Gives the routes under one account."""
    return PublicRouter({"gateway"}, ROUTES)


@pytest.mark.parametrize(
    "path",
    [
        "/gateway",
        "/gateway/",
        "/gateway/notifications/",
        "/gateway/notifications/x",
        "/nowhere/notifications",
        "/gateway/things/1",
        "/gateway/things//s",
        "/gateway/things/1/",
        "gateway/notifications",
        "//notifications",
    ],
)
def test_what_is_not_there_is_not_found(public: PublicRouter, path: str) -> None:
    """An address that is nearly right must not reach anything."""
    assert public.find(segments(path)) is None


def test_what_varies_is_given_decoded(public: PublicRouter) -> None:
    """The secret in an address may need escapes."""
    door = public.find(segments("/gateway/things/chk_1/a%2Fb"))

    assert door is not None
    assert (door.account, door.segments) == ("gateway", ("chk_1", "a/b"))
    assert door.route("HEAD").method == "GET"
    assert door.route("POST").template == "/{account}/things/{id}/{secret}"


def test_another_method_learns_which_there_are(public: PublicRouter) -> None:
    """An operator may open the address of notifications in a browser."""
    door = public.find(segments("/gateway/notifications"))
    assert door is not None
    with pytest.raises(Refusal) as refused:
        door.route("GET")

    assert (refused.value.code, refused.value.headers) == (Code.METHOD_NOT_ALLOWED, (("Allow", "POST"),))


def test_a_segment_that_cannot_be_read_is_refused(public: PublicRouter) -> None:
    """Bytes that are no text name nothing."""
    with pytest.raises(Refusal) as refused:
        public.find(segments("/gateway/things/%FF/s"))

    assert refused.value.code is Code.MALFORMED_REQUEST


def test_no_public_address_hides_one_of_the_api() -> None:
    """What is under /api/ needs a credential, whatever is added here."""
    assert [route.path for route in PUBLIC_ROUTES if route.path.split("/")[1] == "api"] == []


@pytest.mark.parametrize(
    "value",
    [
        b"application/x-www-form-urlencoded",
        b"Application/X-WWW-Form-Urlencoded; charset=UTF-8",
        b" application/x-www-form-urlencoded ;charset=iso-8859-1",
    ],
)
def test_a_form_may_say_its_charset(value: bytes) -> None:
    """What is signed is bytes; a charset changes nothing of them."""
    require_type(Headers([(b"content-type", value)]), FORM_TYPE)


@pytest.mark.parametrize(
    "headers",
    [
        [],
        [(b"content-type", b"application/json")],
        [(b"content-type", b"multipart/form-data; boundary=x")],
        [(b"content-type", b"application/x-www-form-urlencodedx")],
        [(b"content-type", b"application/x-www-form-urlencoded"), (b"content-type", b"text/plain")],
        [(b"content-type", b"application/x-www-form-urlencoded"), (b"content-encoding", b"gzip")],
    ],
)
def test_what_is_no_form_is_refused(headers: list[tuple[bytes, bytes]]) -> None:
    """It would be read as a form with one strange field otherwise."""
    with pytest.raises(Refusal) as refused:
        require_type(Headers(headers), FORM_TYPE)

    assert refused.value.code is Code.UNSUPPORTED_MEDIA_TYPE
