"""The public paths of an account, which need no credential: for the gateway's notifications and customers' browsers.

Rules:

1. Each handler checks what proves the request: a notification by its signature, a page by the secret in its address.
2. The caller is a stranger: bodies are bounded, and an answer shows only what the proof covers.
"""

from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Final, TypeAlias

from payrelay.api.http.outgoing import PlainAnswer
from payrelay.api.http.queries import decoded
from payrelay.api.public.caller import Caller
from payrelay.api.public.checkout_pages import back_page, checkout_page
from payrelay.api.public.notifications import receive_notification
from payrelay.api.public.page_assets import asset
from payrelay.api.public.page_reader import reader_of
from payrelay.core.answers import Answer
from payrelay.errors import Code, Refusal
from payrelay.flows.relay import Relay

PublicHandler: TypeAlias = Callable[[Relay, Caller], Awaitable[Answer | PlainAnswer]]


@dataclass(frozen=True, kw_only=True, slots=True)
class PublicRoute:
    """One public route; ``path`` follows ``/{account}``, and its segments in braces vary."""

    method: str
    path: str
    handler: PublicHandler

    @property
    def template(self) -> str:
        """The whole path, as logs and metrics name it."""
        return "/{account}" + self.path


async def _checkout_page(relay: Relay, caller: Caller) -> PlainAnswer:
    checkout_id, secret = caller.segments
    return await checkout_page(relay, caller.account, checkout_id, secret, reader_of(caller))


async def _back_page(relay: Relay, caller: Caller, *, is_cancelled: bool) -> PlainAnswer:
    checkout_id, secret = caller.segments
    return await back_page(relay, caller.account, checkout_id, secret, reader_of(caller), is_cancelled=is_cancelled)


async def _asset(relay: Relay, caller: Caller) -> PlainAnswer:  # noqa: ARG001 - a PublicHandler
    (name,) = caller.segments
    return asset(name, caller.shop)


PUBLIC_ROUTES: Final[tuple[PublicRoute, ...]] = (
    PublicRoute(method="POST", path="/notifications", handler=receive_notification),
    PublicRoute(
        method="GET",
        path="/checkouts/{id}/{secret}",
        handler=_checkout_page,
    ),
    PublicRoute(method="GET", path="/checkouts/{id}/{secret}/return", handler=partial(_back_page, is_cancelled=False)),
    PublicRoute(method="GET", path="/checkouts/{id}/{secret}/cancel", handler=partial(_back_page, is_cancelled=True)),
    PublicRoute(method="GET", path="/hosted/{asset}", handler=_asset),
)


@dataclass(frozen=True, slots=True)
class PublicMatch:
    """The account of a path, its routes by method, and its variable segments."""

    account: str
    routes: Mapping[str, PublicRoute]
    segments: tuple[str, ...]

    def route(self, method: str) -> PublicRoute:
        """Gives the route of a method; GET answers HEAD too. Raises Refusal (method_not_allowed)."""
        route = self.routes.get("GET" if method == "HEAD" else method)
        if route is None:
            allow = ", ".join(sorted(self.routes))
            raise Refusal(Code.METHOD_NOT_ALLOWED, f"this address accepts {allow} only", headers=(("Allow", allow),))
        return route


class PublicRouter:
    """Finds the public routes of a path; ``accounts`` are the names that paths begin with."""

    def __init__(self, accounts: Iterable[str], routes: Iterable[PublicRoute] = PUBLIC_ROUTES) -> None:
        self._accounts = frozenset(accounts)
        self._routes: dict[tuple[str, ...], dict[str, PublicRoute]] = {}
        for route in routes:
            self._routes.setdefault(tuple(route.path.strip("/").split("/")), {})[route.method] = route
        self._lengths = frozenset(map(len, self._routes))

    def find(self, raw_segments: list[bytes]) -> PublicMatch | None:
        """Gives the match of a raw path, split at its slashes; None where no route matches.

        Raises Refusal (malformed_request) for a segment that can't be decoded.
        """
        before = 2  # the nothing before the first slash, and the account
        if len(raw_segments) - before not in self._lengths or raw_segments[0] != b"":
            return None
        account, *segments = map(decoded, raw_segments[1:])
        if account not in self._accounts:
            return None
        for pattern, routes in self._routes.items():
            varying = _varying(pattern, segments)
            if varying is not None:
                return PublicMatch(account, routes, varying)
        return None


def _varying(pattern: tuple[str, ...], segments: list[str]) -> tuple[str, ...] | None:
    """Gives the segments that match those in braces; None where another segment differs."""
    if len(pattern) != len(segments):
        return None
    varying = []
    for expected, segment in zip(pattern, segments, strict=True):
        if expected.startswith("{") and segment:
            varying.append(segment)
        elif expected != segment:
            return None
    return tuple(varying)
