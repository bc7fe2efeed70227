"""Endpoints: where events are sent to, and what became of them there."""

from datetime import datetime
from typing import Annotated, Final, Literal

from msgspec import UNSET, Meta, UnsetType

from payrelay.api.requests.body import Body, Text
from payrelay.api.requests.parameters import Parameter, anything, matches, up_to
from payrelay.api.requests.route import MAY_CLASH, TAKES_BODY, EmptyBody, ParsedRequest, Route, refused
from payrelay.api.routes.events import AFTER, POSITION, POSITION_MAX
from payrelay.core.access.credential import Scope
from payrelay.core.answers import Answer, found
from payrelay.core.events.delivery import (
    LABEL_LENGTH_MAX,
    PATTERNS,
    PATTERNS_MAX,
    URL_LENGTH_MAX,
    DeliveryState,
    EndpointState,
)
from payrelay.core.payments.schedules import NEVER_MS
from payrelay.errors import FieldError, wrong_fields
from payrelay.flows.events import manage_endpoints as endpoints
from payrelay.flows.events.manage_endpoints import REPLAYED_IDS_MAX, Changes, NewEndpoint, Owner, ReplayedEvents
from payrelay.flows.relay import Relay

DELIVERIES_USUAL: Final = 20
DELIVERIES_MAX: Final = 100
_ENDPOINT_ID: Final = r"end_[0-9a-f]{32}"

ENDPOINT: Final = Parameter(
    name="id",
    sentence="Identifier of the endpoint.",
    schema={"type": "string", "pattern": f"^{_ENDPOINT_ID}$"},
    # A wrong one is no such endpoint.
    validator=anything,
    example="end_019c8b2f5a7e4d10b6f3a92c7e08d154",
)
DELIVERY_LIMIT: Final = Parameter(
    name="limit",
    sentence="Deliveries on the page.",
    schema={"type": "integer", "minimum": 1, "maximum": DELIVERIES_MAX, "default": DELIVERIES_USUAL},
    validator=up_to(DELIVERIES_MAX),
    example=DELIVERIES_USUAL,
)
DELIVERY_STATE: Final = Parameter(
    name="state",
    sentence="Only deliveries in this state.",
    schema={"type": "string", "enum": [*DeliveryState]},
    validator=lambda text: None if text in set(DeliveryState) else f"must be one of {', '.join(DeliveryState)}",
    example=DeliveryState.WAITING,
)
BEFORE: Final = Parameter(
    name="before",
    sentence="Only deliveries of events below this position, for the next page.",
    schema={"type": "integer", "minimum": 0, "maximum": POSITION_MAX},
    validator=matches(POSITION, "must be a position, as a delivery has it"),
    example=1_000,
)

# What a setting allows beyond this is left out here.
_PUBLIC_URL: Final = r"^https://([a-z0-9]([a-z0-9-]{0,40}[a-z0-9])?\.){1,4}[a-z]{2,20}(/[!-\"$-\[\]-~]*)?$"
_Url = Annotated[
    str,
    Meta(
        min_length=1,
        max_length=URL_LENGTH_MAX,
        description="An `https` address.",
        extra_json_schema={"pattern": _PUBLIC_URL},
    ),
]
_Type = Annotated[str, Meta(min_length=1, max_length=100, extra_json_schema={"enum": [*PATTERNS]})]
_Types = Annotated[
    list[_Type],
    Meta(
        min_length=1,
        max_length=PATTERNS_MAX,
        description="What is sent: `*`, such as `operation.*`, or whole types of events.",
    ),
]
# Letters of other languages are taken too; what of Unicode can be printed is more than a pattern says.
_Label = Annotated[
    str,
    Meta(
        min_length=1,
        max_length=LABEL_LENGTH_MAX,
        description="For people; printable characters.",
        extra_json_schema={"pattern": "^[ -~]*[!-~][ -~]*$"},
    ),
]
_Moment = Annotated[
    str,
    Meta(
        min_length=1,
        max_length=40,
        description="RFC 3339, such as 2026-11-21T10:00:00Z.",
        extra_json_schema={"format": "date-time"},
    ),
]


class NewEndpointBody(Body, frozen=True, kw_only=True):
    """The body that registers an endpoint."""

    url: _Url
    types: _Types | UnsetType = UNSET
    label: _Label | UnsetType = UNSET

    def new(self) -> NewEndpoint:
        """Gives the endpoint that is asked for."""
        return NewEndpoint(
            url=self.url,
            types=("*",) if self.types is UNSET else tuple(self.types),
            label=None if self.label is UNSET else self.label,
        )


class ChangeEndpointBody(Body, frozen=True, kw_only=True):
    """The body that changes an endpoint; what is not there stays as it is."""

    url: _Url | UnsetType = UNSET
    types: _Types | UnsetType = UNSET
    label: _Label | UnsetType | None = UNSET
    state: Literal["active", "paused", "stopped"] | UnsetType = UNSET

    def changes(self) -> Changes:
        """Gives the changes that are asked for."""
        return Changes(
            url=self.url,
            types=UNSET if self.types is UNSET else tuple(self.types),
            label=self.label,
            state=UNSET if self.state is UNSET else EndpointState(self.state),
        )


class ReplayBody(Body, frozen=True, kw_only=True):
    """The body of a replay: some events by their ids, or all that the endpoint wants of a span of time."""

    ids: Annotated[list[Text], Meta(min_length=1, max_length=REPLAYED_IDS_MAX)] | UnsetType = UNSET
    since: _Moment | UnsetType = UNSET
    until: _Moment | UnsetType = UNSET

    def span(self) -> ReplayedEvents:
        """Gives what is to be sent again; raises Refusal (invalid_request)."""
        if self.ids is not UNSET:
            if not self.ids or self.since is not UNSET or self.until is not UNSET:
                raise wrong_fields(
                    [FieldError("ids", "must not be empty, and not be given together with since and until")]
                )
            return ReplayedEvents(ids=tuple(self.ids))
        if self.since is UNSET:
            raise wrong_fields([FieldError("since", "is required, or ids")])
        until_ms = NEVER_MS if self.until is UNSET else _ms("until", self.until)
        return ReplayedEvents(from_ms=_ms("since", self.since), until_ms=until_ms)


def _ms(name: str, text: str) -> int:
    try:
        at = datetime.fromisoformat(text)
        if at.tzinfo is not None:
            return int(at.timestamp() * 1000)
    except (ValueError, OverflowError):
        pass
    raise wrong_fields([FieldError(name, "must be a moment such as 2026-11-21T10:00:00Z")])


async def new_endpoint(relay: Relay, asked: ParsedRequest) -> Answer:
    """Registers an endpoint."""
    new = asked.parsed(NewEndpointBody).new()
    return found(await endpoints.create_endpoint(relay.dispatch, _owner(relay, asked), new))


async def some_endpoints(relay: Relay, asked: ParsedRequest) -> Answer:
    """Lists the caller's endpoints."""
    return found(await endpoints.list_endpoints(relay.dispatch, _owner(relay, asked)))


async def one_endpoint(relay: Relay, asked: ParsedRequest) -> Answer:
    """Shows one endpoint."""
    return found(await endpoints.show_endpoint(relay.dispatch, _owner(relay, asked), asked.id))


async def changed_endpoint(relay: Relay, asked: ParsedRequest) -> Answer:
    """Changes one endpoint."""
    changes = asked.parsed(ChangeEndpointBody).changes()
    return found(await endpoints.change_endpoint(relay.dispatch, _owner(relay, asked), asked.id, changes))


async def removed_endpoint(relay: Relay, asked: ParsedRequest) -> Answer:
    """Removes one endpoint."""
    asked.require_empty()
    await endpoints.remove_endpoint(relay.dispatch, _owner(relay, asked), asked.id)
    return found(None)


async def rotated_endpoint(relay: Relay, asked: ParsedRequest) -> Answer:
    """Gives an endpoint a new secret."""
    asked.require_empty()
    return found(await endpoints.rotate_endpoint(relay.dispatch, _owner(relay, asked), asked.id))


async def tested_endpoint(relay: Relay, asked: ParsedRequest) -> Answer:
    """Sends a test event to one endpoint."""
    asked.require_empty()
    event_id = await endpoints.send_test(relay.dispatch, _owner(relay, asked), asked.id)
    return found({"event_id": event_id})


async def replayed_endpoint(relay: Relay, asked: ParsedRequest) -> Answer:
    """Sends events to one endpoint again."""
    span = asked.parsed(ReplayBody).span()
    after = int(asked.query.get("after", "0"))
    owner = _owner(relay, asked)
    return found(await endpoints.replay_events(relay.dispatch, owner, asked.id, span, after=after))


async def some_deliveries(relay: Relay, asked: ParsedRequest) -> Answer:
    """Lists what became of events for one endpoint."""
    query = asked.query
    listed = await endpoints.list_deliveries(
        relay.dispatch,
        _owner(relay, asked),
        asked.id,
        state=DeliveryState(query["state"]) if "state" in query else None,
        before=int(query["before"]) if "before" in query else None,
        limit=int(query.get("limit", DELIVERIES_USUAL)),
    )
    return found(listed)


def _owner(relay: Relay, asked: ParsedRequest) -> Owner:
    request = asked.request
    merchant = relay.account(request.account).merchant
    return Owner(account=request.account, merchant=merchant, principal=request.principal)


ROUTES: Final[tuple[Route, ...]] = (
    Route(
        name="registerEndpoint",
        method="POST",
        path="/endpoints",
        sentence="Register an endpoint, to which events are sent",
        scope=Scope.ENDPOINTS_WRITE,
        handler=new_endpoint,
        answer="issued endpoint",
        bound=refused,
        body=NewEndpointBody,
        codes=MAY_CLASH,
    ),
    Route(
        name="listEndpoints",
        method="GET",
        path="/endpoints",
        sentence="List the endpoints",
        scope=Scope.ENDPOINTS_WRITE,
        handler=some_endpoints,
        answer="endpoints",
        bound=refused,
    ),
    Route(
        name="showEndpoint",
        method="GET",
        path="/endpoints/{id}",
        sentence="Show an endpoint",
        scope=Scope.ENDPOINTS_WRITE,
        handler=one_endpoint,
        answer="endpoint",
        bound=refused,
        segment=ENDPOINT,
    ),
    Route(
        name="changeEndpoint",
        method="PATCH",
        path="/endpoints/{id}",
        sentence="Change, pause, stop or start an endpoint",
        scope=Scope.ENDPOINTS_WRITE,
        handler=changed_endpoint,
        answer="endpoint",
        bound=refused,
        segment=ENDPOINT,
        body=ChangeEndpointBody,
        codes=TAKES_BODY,
    ),
    Route(
        name="removeEndpoint",
        method="DELETE",
        path="/endpoints/{id}",
        sentence="Remove an endpoint",
        scope=Scope.ENDPOINTS_WRITE,
        handler=removed_endpoint,
        answer="nothing",
        bound=refused,
        segment=ENDPOINT,
        body=EmptyBody,
        codes=TAKES_BODY,
    ),
    Route(
        name="rotateEndpoint",
        method="POST",
        path="/endpoints/{id}/rotate",
        sentence="Give an endpoint a new secret; the old one stays valid for a day",
        scope=Scope.ENDPOINTS_WRITE,
        handler=rotated_endpoint,
        answer="issued endpoint",
        bound=refused,
        segment=ENDPOINT,
        body=EmptyBody,
        codes=TAKES_BODY,
    ),
    Route(
        name="testEndpoint",
        method="POST",
        path="/endpoints/{id}/test",
        sentence="Send a test event to an endpoint",
        scope=Scope.ENDPOINTS_WRITE,
        handler=tested_endpoint,
        answer="told event",
        bound=refused,
        segment=ENDPOINT,
        body=EmptyBody,
        codes=MAY_CLASH,
    ),
    Route(
        name="replayEvents",
        method="POST",
        path="/endpoints/{id}/replay",
        sentence="Send events to an endpoint again",
        scope=Scope.ENDPOINTS_WRITE,
        handler=replayed_endpoint,
        answer="replayed",
        bound=refused,
        segment=ENDPOINT,
        query=(AFTER,),
        body=ReplayBody,
        codes=MAY_CLASH,
    ),
    Route(
        name="listDeliveries",
        method="GET",
        path="/endpoints/{id}/deliveries",
        sentence="List the deliveries of events to an endpoint, newest first",
        scope=Scope.ENDPOINTS_WRITE,
        handler=some_deliveries,
        answer="deliveries",
        bound=refused,
        segment=ENDPOINT,
        query=(DELIVERY_STATE, BEFORE, DELIVERY_LIMIT),
    ),
)
