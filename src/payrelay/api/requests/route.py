"""The type of a route, the request that its handler gets, and the error codes that it may answer."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial
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
"""The codes of every route: all have an address, need a credential and use the store."""
READS_GATEWAY: Final = (
    Code.GATEWAY_REFUSED_US,
    Code.GATEWAY_BAD_REPLY,
    Code.GATEWAY_BUSY,
    Code.GATEWAY_UNREACHABLE,
)
"""The further codes of routes that read at the gateway."""
TAKES_BODY: Final = (Code.TOO_LARGE, Code.UNSUPPORTED_MEDIA_TYPE)
"""The further codes of routes that take a body."""
CHANGES_GATEWAY: Final = (
    Code.OUTCOME_UNKNOWN,
    Code.NEEDS_ATTENTION,
    Code.IN_PROGRESS,
    Code.CONFLICT,
    Code.IDEMPOTENCY_MISMATCH,
    Code.GATEWAY_REFUSED_US,
    Code.GATEWAY_BUSY,
    Code.GATEWAY_UNREACHABLE,
)
"""The further codes of routes that change something at the gateway."""

_EMPTY_BODIES: Final = frozenset({b"", b"{}", b"[]", b"null"})
"""What clients send where there is nothing to send, without white space: Laravel's sends an empty array."""
_CLOSED: Final = "a client token may not do this"


class EmptyBody(Body, frozen=True, kw_only=True):
    """An empty object: the body of routes that need no members."""


class ParsedRequest(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A request as a handler gets it: its credential, scope, account and parameters are checked already.

    Attributes:
        request: the caller and the account.
        id: the variable segment of the path, decoded; empty where the route has none.
        query: the parameters, each known to the route and valid by itself.
        body: as it came in, at most as long as allowed.
        wait_preference: how long the client prefers to wait; None where it doesn't, or where the route can't wait.
        last_event_id: of the last event that a browser received before it reconnected; only for a stream.
    """

    request: Request
    id: str = ""
    query: dict[str, str] = {}
    body: bytes = b""
    wait_preference: WaitPreference | None = None
    last_event_id: str | None = None

    def body_as(self, kind: type[BodyT]) -> BodyT:
        """Parses the body as one of this kind; raises Refusal with everything that is wrong with it."""
        return parse_body(self.body, kind)

    def require_empty(self) -> None:
        """Accepts no body, an empty object, an empty array and null; raises Refusal for anything else."""
        if b"".join(self.body.split()) not in _EMPTY_BODIES:
            parse_body(self.body, EmptyBody)


Handler = Callable[[Relay, ParsedRequest], Awaitable[Answer]]
"""The step between a route and its flow: makes a call of the request."""

Policy = Callable[[Relay, ParsedRequest, Bound], Awaitable[ParsedRequest]]
"""Gives the request as a bound credential, an app's, may make it; raises Refusal. See ``routes.policies``."""


async def refused(relay: Relay, parsed: ParsedRequest, bound: Bound) -> ParsedRequest:  # noqa: ARG001 - a policy
    """Closes a route to bound credentials."""
    raise Refusal(Code.FORBIDDEN, _CLOSED)


async def only_own(relay: Relay, parsed: ParsedRequest, bound: Bound) -> ParsedRequest:  # noqa: ARG001 - a policy
    """Changes nothing: the flow shows only what belongs to the credential by ``core.access.bounds``."""
    return parsed


def require_open(policy: Policy | None) -> Policy:
    """Gives the policy of a route that is open to bound credentials; raises Refusal (forbidden) where it is closed."""
    if policy is None or policy is refused:
        raise Refusal(Code.FORBIDDEN, _CLOSED)
    return policy


@dataclass(frozen=True, kw_only=True, slots=True)
class Route:
    """One route.

    Attributes:
        name: what OpenAPI calls the operation.
        method: the HTTP method.
        path: what follows ``/{account}/api``; one segment, in braces, may vary.
        sentence: its summary in the API docs.
        scope: the scope that the credential must have.
        handler: makes the call and runs the flow.
        answer: names the schema of ``data``; see ``openapi``.
        body: the type of its body; None where it takes none.
        segment: the parameter in its path; None where it has none.
        query: the parameters of its query.
        own_codes: the error codes that it may answer beyond those that follow from its other members.
        is_effect: whether it changes something at the gateway, and so takes an Idempotency-Key.
        is_read: whether it reads something at the gateway, which the read cache may keep.
        takes_key: whether it takes an Idempotency-Key although it changes nothing at the gateway.
        can_wait: whether its answer is held where the client prefers to wait, for a final operation or an event.
        is_stream: whether it answers with server-sent events.
        bound: the policy for bound credentials; None closes the route to them.
    """

    name: str
    method: str = "GET"
    path: str
    sentence: str
    scope: Scope
    handler: Handler
    answer: str
    body: type[Body] | None = None
    segment: Parameter | None = None
    query: tuple[Parameter, ...] = ()
    own_codes: tuple[Code, ...] = ()
    is_effect: bool = False
    is_read: bool = False
    takes_key: bool = False
    can_wait: bool = False
    is_stream: bool = False
    bound: Policy | None = None

    @property
    def codes(self) -> tuple[Code, ...]:
        """The error codes that it may answer beyond ALWAYS."""
        of_gateway = CHANGES_GATEWAY if self.is_effect else READS_GATEWAY if self.is_read else ()
        return (*self.own_codes, *of_gateway, *(() if self.body is None else TAKES_BODY))

    @property
    def template(self) -> str:
        """The whole path, as logs and metrics name it."""
        return "/{account}/api" + self.path


gateway_read: Final = partial(Route, is_read=True)
"""Makes a route that reads at the gateway."""
gateway_effect: Final = partial(Route, is_effect=True, can_wait=True)
"""Makes a route that changes something at the gateway."""
