"""What a route is, what its handler is given, and what it may answer."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final

import msgspec

from payrelay.api.requests.body import Body, BodyT, parse_body
from payrelay.api.requests.parameters import Parameter
from payrelay.core.access.credential import Bound, Scope
from payrelay.core.answers import Answer
from payrelay.errors import Code, Refusal
from payrelay.flows.payments.await_outcome import WaitPreference
from payrelay.flows.relay import Relay, Request

ALWAYS: Final = (
    Code.MALFORMED_REQUEST,
    Code.UNAUTHENTICATED,
    Code.FORBIDDEN,
    Code.NOT_FOUND,
    Code.METHOD_NOT_ALLOWED,
    Code.INVALID_REQUEST,
    Code.RATE_LIMITED,
    Code.INTERNAL,
    Code.UNAVAILABLE,
)
"""What any route may answer: all take an address, a credential and our store."""
READS_GATEWAY: Final = (
    Code.GATEWAY_REFUSED_US,
    Code.GATEWAY_BAD_REPLY,
    Code.GATEWAY_BUSY,
    Code.GATEWAY_UNREACHABLE,
)
"""Beyond that, where something is read at the gateway."""
TAKES_BODY: Final = (Code.TOO_LARGE, Code.UNSUPPORTED_MEDIA_TYPE)
MAY_CLASH: Final = (Code.CONFLICT, *TAKES_BODY)
"""Where a body may ask for what can't be, as things stand."""
CHANGES_GATEWAY: Final = (
    Code.OUTCOME_UNKNOWN,
    Code.IN_PROGRESS,
    Code.CONFLICT,
    Code.IDEMPOTENCY_MISMATCH,
    Code.GATEWAY_REFUSED_US,
    Code.GATEWAY_BUSY,
    Code.GATEWAY_UNREACHABLE,
    *TAKES_BODY,
)
"""Where something is changed at the gateway."""

_EMPTY_BODIES: Final = (b"", b"{}")
_CLOSED: Final = "a client token may not do this"


class EmptyBody(Body, frozen=True, kw_only=True):
    """An empty object, where nothing is to be said."""


class ParsedRequest(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A request as a handler sees it: its credential, scope, account and parameters are checked already.

    Attributes:
        request: who asks, on which account.
        id: the variable segment of the path, decoded; empty where the route has none.
        query: the parameters, each known to the route and right by itself.
        body: as it came in, at most as long as allowed.
        wait_preference: how long the client would rather wait than ask again; None where it wouldn't, or can't.
        last_event_id: of the last event that a browser saw before it came again; only for a stream.
    """

    request: Request
    id: str = ""
    query: dict[str, str] = {}
    body: bytes = b""
    wait_preference: WaitPreference | None = None
    last_event_id: str | None = None

    def parsed(self, kind: type[BodyT]) -> BodyT:
        """Gives the body as one of this kind; raises Refusal with everything that is wrong with it."""
        return parse_body(self.body, kind)

    def require_empty(self) -> None:
        """Accepts no body or an empty object, in whatever white space; raises Refusal."""
        if self.body.strip() not in _EMPTY_BODIES:
            parse_body(self.body, EmptyBody)


Handler = Callable[[Relay, ParsedRequest], Awaitable[Answer]]
"""The step between a route and its story: what the request says becomes a call."""

Policy = Callable[[Relay, ParsedRequest, Bound], Awaitable[ParsedRequest]]
"""Gives the request as a bound credential, a phone's, may make it; raises Refusal. See ``routes.policies``."""


async def refused(relay: Relay, asked: ParsedRequest, bound: Bound) -> ParsedRequest:  # noqa: ARG001 - a policy
    """Closes a route to phones."""
    raise Refusal(Code.FORBIDDEN, _CLOSED)


async def only_own(relay: Relay, asked: ParsedRequest, bound: Bound) -> ParsedRequest:  # noqa: ARG001 - a policy
    """Leaves it to the flow, which shows what ``core.access.bounds`` says is the credential's own, and nothing else."""
    return asked


def require_open(policy: Policy | None) -> Policy:
    """Gives the policy of a route that phones may come to; raises Refusal (forbidden) where it is closed to them."""
    if policy is None or policy is refused:
        raise Refusal(Code.FORBIDDEN, _CLOSED)
    return policy


@dataclass(frozen=True, kw_only=True, slots=True)
class Route:
    """One route.

    Attributes:
        name: what OpenAPI calls the operation.
        method: the HTTP method.
        path: behind ``/{account}/api``; one segment in braces may vary.
        sentence: what it does, for the docs.
        scope: what the credential must be allowed.
        handler: makes the call and runs the story.
        answer: names the schema of ``data``; see ``openapi``.
        body: the type of its body; None where it takes none.
        segment: the parameter in its path, None where it has none.
        query: the parameters that it takes in its query.
        codes: the error codes that it may answer beyond ALWAYS.
        is_effect: whether it changes something at the gateway, and so takes an Idempotency-Key.
        is_read: whether it reads something at the gateway, which may be kept for a while.
        takes_key: whether it takes an Idempotency-Key although it changes nothing at the gateway.
        can_wait: whether its answer is held where the client prefers to wait until an operation is settled.
        is_stream: whether it answers bit by bit, as server-sent events.
        bound: what a phone's credential may do here; None where nobody has said it, and it may do nothing.
    """

    name: str
    method: str
    path: str
    sentence: str
    scope: Scope
    handler: Handler
    answer: str
    body: type[Body] | None = None
    segment: Parameter | None = None
    query: tuple[Parameter, ...] = ()
    codes: tuple[Code, ...] = ()
    is_effect: bool = False
    is_read: bool = False
    takes_key: bool = False
    can_wait: bool = False
    is_stream: bool = False
    bound: Policy | None = None

    @property
    def template(self) -> str:
        """The whole path as logs and metrics name it."""
        return "/{account}/api" + self.path
