"""Endpoints: the addresses that events are delivered to, and their deliveries."""

from collections.abc import Awaitable
from datetime import datetime
from functools import partial
from typing import Annotated, Final, Literal

from msgspec import UNSET, Meta, UnsetType

from payrelay.api.requests.body import EMPTY_IS_ABSENT, Body, Text
from payrelay.api.requests.parameters import choice, cursor, limit, own_id
from payrelay.api.requests.route import EmptyBody, ParsedRequest, Route, refused
from payrelay.api.routes.events import AFTER, POSITION
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
from payrelay.errors import Code, FieldError, wrong_fields
from payrelay.flows.events import manage_endpoints as endpoints
from payrelay.flows.events.manage_endpoints import REPLAYED_IDS_MAX, Changes, NewEndpoint, Owner, ReplayedEvents
from payrelay.flows.pagination import answer_page
from payrelay.flows.relay import Relay

DELIVERIES_USUAL: Final = 20
DELIVERIES_MAX: Final = 100

ENDPOINT: Final = own_id("end", "endpoint")
DELIVERY_LIMIT: Final = limit("Deliveries", DELIVERIES_USUAL, DELIVERIES_MAX)
DELIVERY_STATE: Final = choice("state", "Only deliveries in this state.", DeliveryState, DeliveryState.WAITING)
DELIVERY_CURSOR: Final = cursor(
    "a delivery (its position)", POSITION, "1000", words="must be a position, as next_cursor of a page has it"
)

# A setting may allow more addresses than this pattern.
_PUBLIC_URL: Final = r'^https://([a-z0-9]([a-z0-9-]{0,40}[a-z0-9])?\.){1,4}[a-z]{2,20}(/[!-"$-\[\]-~]*)?$'
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
        description="The events that are sent: `*`, patterns such as `operation.*`, or types of events.",
    ),
]
# Letters of other languages are accepted too: which characters of Unicode are printable, no pattern can say.
_Label = Annotated[
    str,
    Meta(
        min_length=1,
        max_length=LABEL_LENGTH_MAX,
        description="A name for people to read, in printable characters.",
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
    label: Annotated[_Label | UnsetType, EMPTY_IS_ABSENT] = UNSET

    def call(self) -> NewEndpoint:
        """Gives the endpoint that this body describes."""
        return NewEndpoint(
            url=self.url,
            types=("*",) if self.types is UNSET else tuple(self.types),
            label=None if self.label is UNSET else self.label,
        )


class ChangeEndpointBody(Body, frozen=True, kw_only=True):
    """The body that changes an endpoint; an absent member stays as it is."""

    url: _Url | UnsetType = UNSET
    types: _Types | UnsetType = UNSET
    label: _Label | UnsetType | None = UNSET
    state: Literal["active", "paused", "stopped"] | UnsetType = UNSET

    def call(self) -> Changes:
        """Gives the changes that this body describes."""
        return Changes(
            url=self.url,
            types=UNSET if self.types is UNSET else tuple(self.types),
            label=self.label,
            state=UNSET if self.state is UNSET else EndpointState(self.state),
        )


class ReplayBody(Body, frozen=True, kw_only=True):
    """The body of a replay: some events by their ids, or all of a span of time that the endpoint subscribes to."""

    ids: Annotated[list[Text], Meta(min_length=1, max_length=REPLAYED_IDS_MAX)] | UnsetType = UNSET
    since: _Moment | UnsetType = UNSET
    until: _Moment | UnsetType = UNSET

    def call(self) -> ReplayedEvents:
        """Gives the events to deliver again; raises Refusal (invalid_request)."""
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


def _owner(parsed: ParsedRequest) -> Owner:
    request = parsed.request
    merchant = request.gateway.merchant
    return Owner(account=request.account, merchant=merchant, principal=request.principal)


async def _found(data: Awaitable[object]) -> Answer:
    return found(await data)


async def _remove(relay: Relay, parsed: ParsedRequest) -> Answer:
    await endpoints.remove_endpoint(relay.dispatch, _owner(parsed), parsed.id)
    return found(None)


async def _send_test_event(relay: Relay, parsed: ParsedRequest) -> Answer:
    event_id = await endpoints.send_test_event(relay.dispatch, _owner(parsed), parsed.id)
    return found({"event_id": event_id})


async def _replay(relay: Relay, parsed: ParsedRequest) -> Answer:
    events = parsed.body_as(ReplayBody).call()
    after = int(parsed.query.get("after", "0"))
    owner = _owner(parsed)
    return found(await endpoints.replay_events(relay.dispatch, owner, parsed.id, events, after=after))


async def _list_deliveries(relay: Relay, parsed: ParsedRequest) -> Answer:
    query = parsed.query
    size, state = int(query.get("limit", DELIVERIES_USUAL)), query.get("state")
    deliveries = await endpoints.list_deliveries(
        relay.dispatch,
        _owner(parsed),
        parsed.id,
        state=None if state is None else DeliveryState(state),
        before=int(query["cursor"]) if "cursor" in query else None,
        limit=size + 1,
    )
    return answer_page(
        parsed.request,
        f"endpoints/{parsed.id}/deliveries",
        deliveries,
        size,
        show=lambda each: each,
        id_of=lambda each: str(each.position),
        query={"state": state},
    )


_route: Final = partial(Route, scope=Scope.ENDPOINTS_WRITE, bound=refused)
_endpoint_route: Final = partial(_route, segment=ENDPOINT)

ROUTES: Final[tuple[Route, ...]] = (
    _route(
        name="createEndpoint",
        method="POST",
        path="/endpoints",
        sentence="Register an endpoint, to which events are sent",
        handler=lambda relay, parsed: _found(
            endpoints.create_endpoint(relay.dispatch, _owner(parsed), parsed.body_as(NewEndpointBody).call())
        ),
        answer="issued endpoint",
        body=NewEndpointBody,
        own_codes=(Code.CONFLICT,),
    ),
    _route(
        name="listEndpoints",
        path="/endpoints",
        sentence="List the endpoints",
        handler=lambda relay, parsed: _found(endpoints.list_endpoints(relay.dispatch, _owner(parsed))),
        answer="endpoints",
    ),
    _endpoint_route(
        name="showEndpoint",
        path="/endpoints/{id}",
        sentence="Show an endpoint",
        handler=lambda relay, parsed: _found(endpoints.show_endpoint(relay.dispatch, _owner(parsed), parsed.id)),
        answer="endpoint",
    ),
    _endpoint_route(
        name="changeEndpoint",
        method="PATCH",
        path="/endpoints/{id}",
        sentence="Change, pause, stop or start an endpoint",
        handler=lambda relay, parsed: _found(
            endpoints.change_endpoint(
                relay.dispatch, _owner(parsed), parsed.id, parsed.body_as(ChangeEndpointBody).call()
            )
        ),
        answer="endpoint",
        body=ChangeEndpointBody,
    ),
    _endpoint_route(
        name="removeEndpoint",
        method="DELETE",
        path="/endpoints/{id}",
        sentence="Remove an endpoint",
        handler=_remove,
        answer="nothing",
        body=EmptyBody,
    ),
    _endpoint_route(
        name="rotateEndpoint",
        method="POST",
        path="/endpoints/{id}/rotate",
        sentence="Give an endpoint a new secret; the old one stays valid for a day",
        handler=lambda relay, parsed: _found(endpoints.rotate_endpoint(relay.dispatch, _owner(parsed), parsed.id)),
        answer="issued endpoint",
        body=EmptyBody,
    ),
    _endpoint_route(
        name="sendTestEvent",
        method="POST",
        path="/endpoints/{id}/test",
        sentence="Send a test event to an endpoint",
        handler=_send_test_event,
        answer="test event",
        body=EmptyBody,
        own_codes=(Code.CONFLICT,),
    ),
    _endpoint_route(
        name="replayEvents",
        method="POST",
        path="/endpoints/{id}/replay",
        sentence="Send events to an endpoint again",
        handler=_replay,
        answer="replayed",
        query=(AFTER,),
        body=ReplayBody,
        own_codes=(Code.CONFLICT,),
    ),
    _endpoint_route(
        name="listDeliveries",
        path="/endpoints/{id}/deliveries",
        sentence="List the deliveries of events to an endpoint, newest first",
        handler=_list_deliveries,
        answer="deliveries",
        query=(DELIVERY_STATE, DELIVERY_CURSOR, DELIVERY_LIMIT),
    ),
)
