"""What stands under an account's name and needs no credential of ours: where gateways and customers' browsers come to.

Rules:

1. Each of these proves itself what it needs: a notification by its signature, a page by the secret in its address.
2. Whoever calls is a stranger: bodies are bounded, and nothing is told that is not his.
"""

from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Final, TypeAlias

from payrelay.api.http.outgoing import PlainAnswer
from payrelay.api.http.queries import decoded
from payrelay.api.public.caller import Caller
from payrelay.api.public.checkout_pages import asset, back_page, checkout_page
from payrelay.api.public.notifications import notified
from payrelay.core.answers import Answer
from payrelay.errors import Code, Refusal
from payrelay.flows.relay import Relay

PublicHandler: TypeAlias = Callable[[Relay, Caller], Awaitable[Answer | PlainAnswer]]


@dataclass(frozen=True, kw_only=True, slots=True)
class PublicRoute:
    """One route; ``path`` stands behind ``/{account}``, and its segments in braces vary."""

    method: str
    path: str
    handler: PublicHandler

    @property
    def template(self) -> str:
        """The whole path as logs and metrics name it."""
        return "/{account}" + self.path


async def asked(relay: Relay, caller: Caller) -> PlainAnswer:
    """Shows a customer what is asked for, with the way on to the gateway."""
    return await checkout_page(relay, caller.account, *caller.segments)


async def returned(relay: Relay, caller: Caller) -> PlainAnswer:
    """Shows a customer who comes back from the gateway what came of it."""
    return await back_page(relay, caller.account, *caller.segments, is_cancelled=False)


async def abandoned(relay: Relay, caller: Caller) -> PlainAnswer:
    """Shows the same to a customer who has cancelled."""
    return await back_page(relay, caller.account, *caller.segments, is_cancelled=True)


async def loaded(relay: Relay, caller: Caller) -> PlainAnswer:  # noqa: ARG001 - one shape for all
    """Gives what the pages load."""
    return asset(*caller.segments)


PUBLIC_ROUTES: Final[tuple[PublicRoute, ...]] = (
    PublicRoute(method="POST", path="/notifications", handler=notified),
    PublicRoute(method="GET", path="/checkouts/{id}/{secret}", handler=asked),
    PublicRoute(method="GET", path="/checkouts/{id}/{secret}/return", handler=returned),
    PublicRoute(method="GET", path="/checkouts/{id}/{secret}/cancel", handler=abandoned),
    PublicRoute(method="GET", path="/hosted/{asset}", handler=loaded),
)


@dataclass(frozen=True, slots=True)
class PublicPath:
    """What a path has: its handlers by method, and what varies in it."""

    account: str
    routes: Mapping[str, PublicRoute]
    segments: tuple[str, ...]

    def route(self, method: str) -> PublicRoute:
        """Gives the route of a method; GET answers HEAD too. Raises Refusal (method_not_allowed)."""
        route = self.routes.get("GET" if method == "HEAD" else method)
        if route is None:
            allow = ", ".join(sorted(self.routes))
            raise Refusal(Code.METHOD_NOT_ALLOWED, f"this address takes {allow} only", headers=(("Allow", allow),))
        return route


class Public:
    """Finds the routes of a path; ``accounts`` are the names that paths begin with."""

    def __init__(self, accounts: Iterable[str], routes: Iterable[PublicRoute] = PUBLIC_ROUTES) -> None:
        self._accounts = frozenset(accounts)
        self._routes: dict[tuple[str, ...], dict[str, PublicRoute]] = {}
        for route in routes:
            self._routes.setdefault(tuple(route.path.strip("/").split("/")), {})[route.method] = route

    def find(self, raw_segments: list[bytes]) -> PublicPath | None:
        """Gives what stands at this raw path, split at its slashes, or None for nothing.

        Raises Refusal (malformed_request) for a segment that can't be read.
        """
        if len(raw_segments) < 3 or raw_segments[0] != b"":  # noqa: PLR2004, the slash, the account, and something
            return None
        account, *segments = map(decoded, raw_segments[1:])
        if account not in self._accounts:
            return None
        for pattern, routes in self._routes.items():
            varying = _varying(pattern, segments)
            if varying is not None:
                return PublicPath(account, routes, varying)
        return None


def _varying(pattern: tuple[str, ...], segments: list[str]) -> tuple[str, ...] | None:
    """Gives the segments that stand in the places of those in braces; None where the rest differs."""
    if len(pattern) != len(segments):
        return None
    varying = []
    for wanted, given in zip(pattern, segments, strict=True):
        if wanted.startswith("{") and given:
            varying.append(given)
        elif wanted != given:
            return None
    return tuple(varying)
