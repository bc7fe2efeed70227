"""The step between a route and its story, for events and endpoints."""

from payrelay.api.http.streams import Streamed
from payrelay.api.routes.bodies import parse_body
from payrelay.api.routes.event_bodies import ChangeEndpointBody, NewEndpointBody, ReplayBody
from payrelay.api.routes.event_parameters import AFTER, DELIVERIES_USUAL, EVENTS_USUAL, FOLLOWED
from payrelay.api.routes.handlers import Asked, require_empty
from payrelay.core.answers import Answer, found
from payrelay.core.events.delivery import DeliveryState, pattern_of
from payrelay.errors import FieldError, wrong_fields
from payrelay.flows.events import manage_endpoints as endpoints
from payrelay.flows.events.manage_endpoints import Owner
from payrelay.flows.events.read_events import EventFilter, follow, read_events
from payrelay.flows.relay import Relay


async def some_events(relay: Relay, asked: Asked) -> Answer:
    """Reads one page of the feed."""
    query = asked.query
    wanted = EventFilter(
        after=int(query.get("after", "0")),
        limit=int(query.get("limit", EVENTS_USUAL)),
        subject=query.get("subject"),
        pattern=pattern_of(query["type"]) if "type" in query else None,
    )
    return await read_events(relay, asked.request, wanted, asked.patience)


async def event_stream(relay: Relay, asked: Asked) -> Answer:
    """Follows one operation or checkout; a browser that comes again says behind which event it goes on."""
    subject = asked.query.get(FOLLOWED.name)
    if subject is None:
        raise wrong_fields([FieldError(FOLLOWED.name, "is required")])
    after = asked.query.get("after", "0")
    if asked.last_event_id is not None and AFTER.complaint(asked.last_event_id) is None:
        after = asked.last_event_id
    return Streamed(stream=await follow(relay, asked.request, subject, after=int(after)))


async def new_endpoint(relay: Relay, asked: Asked) -> Answer:
    """Registers an endpoint."""
    new = parse_body(asked.body, NewEndpointBody).new()
    return found(await endpoints.create_endpoint(relay.dispatch, _owner(relay, asked), new))


async def some_endpoints(relay: Relay, asked: Asked) -> Answer:
    """Lists the caller's endpoints."""
    return found(await endpoints.list_endpoints(relay.dispatch, _owner(relay, asked)))


async def one_endpoint(relay: Relay, asked: Asked) -> Answer:
    """Shows one endpoint."""
    return found(await endpoints.show_endpoint(relay.dispatch, _owner(relay, asked), asked.id))


async def changed_endpoint(relay: Relay, asked: Asked) -> Answer:
    """Changes one endpoint."""
    changes = parse_body(asked.body, ChangeEndpointBody).changes()
    return found(await endpoints.change_endpoint(relay.dispatch, _owner(relay, asked), asked.id, changes))


async def removed_endpoint(relay: Relay, asked: Asked) -> Answer:
    """Removes one endpoint."""
    require_empty(asked.body)
    await endpoints.remove_endpoint(relay.dispatch, _owner(relay, asked), asked.id)
    return found(None)


async def rotated_endpoint(relay: Relay, asked: Asked) -> Answer:
    """Gives an endpoint a new secret."""
    require_empty(asked.body)
    return found(await endpoints.rotate_endpoint(relay.dispatch, _owner(relay, asked), asked.id))


async def tested_endpoint(relay: Relay, asked: Asked) -> Answer:
    """Sends a test event to one endpoint."""
    require_empty(asked.body)
    event_id = await endpoints.send_test(relay.dispatch, _owner(relay, asked), asked.id)
    return found({"event_id": event_id})


async def replayed_endpoint(relay: Relay, asked: Asked) -> Answer:
    """Sends events to one endpoint again."""
    span = parse_body(asked.body, ReplayBody).span()
    after = int(asked.query.get("after", "0"))
    owner = _owner(relay, asked)
    return found(await endpoints.replay_events(relay.dispatch, owner, asked.id, span, after=after))


async def some_deliveries(relay: Relay, asked: Asked) -> Answer:
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


def _owner(relay: Relay, asked: Asked) -> Owner:
    request = asked.request
    merchant = relay.account(request.account).merchant
    return Owner(account=request.account, merchant=merchant, principal=request.principal)
