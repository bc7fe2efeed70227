"""Registers, changes, tests and removes endpoints, and replays events to them, for the principal of the events."""

import base64
import os
from typing import Final

import msgspec

from payrelay.core.events.delivery import (
    LABEL_LENGTH_MAX,
    OLDER_SECRET_MS,
    PATTERNS_MAX,
    DeliveryState,
    Endpoint,
    EndpointState,
    PatternError,
    pattern_of,
)
from payrelay.core.events.destinations import DestinationError, require_destination
from payrelay.core.events.event import TEST, OutgoingEvent, event_id
from payrelay.core.payments.schedules import NEVER_MS
from payrelay.core.secret import STARS, MaskedRepr, Secret
from payrelay.core.views import moment_or_none, view_of
from payrelay.errors import Code, Refusal, wrong_field
from payrelay.runtime.event_delivery import Dispatch
from payrelay.runtime.ids import new_id
from payrelay.store.events.endpoints import ENDPOINTS_MAX
from payrelay.store.events.feed import Reader

SECRET_BYTES: Final = 32
"""Standard Webhooks requires 24 to 64."""
REPLAYED_MAX: Final = 10_000
"""Events of one replay; the result has the position at which the next replay continues."""
REPLAYED_IDS_MAX: Final = 100
ATTEMPTS_MAX: Final = 3
"""Attempts to change an endpoint whose state changes meanwhile."""
PAGES_MAX: Final = 50
"""Pages of the feed that one replay reads, whether it replays any of their events or not."""
_READ_AT_ONCE: Final = 1_000


class Owner(msgspec.Struct, frozen=True, kw_only=True):
    """The principal that owns endpoints, and its account."""

    account: str
    merchant: str
    principal: str

    @property
    def reader(self) -> Reader:
        """The reader whose events the endpoints get."""
        return Reader(self.merchant, self.principal)


class NewEndpoint(MaskedRepr, frozen=True, kw_only=True):
    """A request to register an endpoint."""

    url: str
    types: tuple[str, ...] = ("*",)
    label: str | None = None


class Changes(MaskedRepr, frozen=True, kw_only=True):
    """A request to change an endpoint; UNSET keeps a member."""

    url: str | msgspec.UnsetType = msgspec.UNSET
    types: tuple[str, ...] | msgspec.UnsetType = msgspec.UNSET
    label: str | msgspec.UnsetType | None = msgspec.UNSET
    state: EndpointState | msgspec.UnsetType = msgspec.UNSET


class ReplayedEvents(msgspec.Struct, frozen=True, kw_only=True):
    """The events to replay: those with the given ids, or else those from ``from_ms`` to just before ``until_ms``."""

    from_ms: int = 0
    until_ms: int = NEVER_MS
    ids: tuple[str, ...] = ()


class EndpointView(MaskedRepr, frozen=True, kw_only=True):
    """An endpoint as its owner sees it; times are RFC 3339 in UTC."""

    id: str
    url: str
    types: tuple[str, ...]
    label: str | None
    state: EndpointState
    reason: str | None
    account: str
    principal: str
    failing_since: str | None
    older_secret_ends_at: str | None
    created_at: str
    updated_at: str


class IssuedEndpoint(EndpointView, frozen=True, kw_only=True):
    """A new endpoint, or one with a new secret: its view with the secret, which is shown only this once."""

    secret: str

    def __repr__(self) -> str:
        return f"IssuedEndpoint(id={self.id!r}, secret={STARS})"


class DeliveryView(msgspec.Struct, frozen=True, kw_only=True):
    """The delivery of an event to an endpoint; times are RFC 3339 in UTC."""

    position: int
    event_id: str
    type: str
    subject: str
    state: DeliveryState
    attempts: int
    queued_at: str
    last_try_at: str | None
    next_try_at: str | None
    last_status: int | None
    last_failure: str | None


class ReplayResult(msgspec.Struct, frozen=True, kw_only=True):
    """How many events are replayed; ``after`` is the position after which a next replay continues, None at the end."""

    events: int
    after: int | None = None


async def create_endpoint(dispatch: Dispatch, owner: Owner, new: NewEndpoint) -> IssuedEndpoint:
    """Registers an endpoint, and makes its secret.

    Raises Refusal: invalid_request for a forbidden address, or invalid types or label; conflict for more than
    ENDPOINTS_MAX endpoints.
    """
    now_ms = dispatch.clock.now_ms()
    endpoint = Endpoint(
        id=new_id("end", now_ms),
        **msgspec.structs.asdict(owner),
        url=_url(dispatch, new.url),
        types=_types(new.types),
        label=_label(new.label),
        state=EndpointState.ACTIVE,
        reason=None,
        older_ends_at_ms=None,
        failing_since_ms=None,
        deferred_until_ms=0,
        created_at_ms=now_ms,
        updated_at_ms=now_ms,
    )
    secret = _new_secret()
    if not await dispatch.endpoints.add(endpoint, secret):
        raise Refusal(Code.CONFLICT, f"there are {ENDPOINTS_MAX} endpoints already, which is the maximum")
    return _issued(endpoint, secret)


async def list_endpoints(dispatch: Dispatch, owner: Owner) -> list[EndpointView]:
    """Lists the owner's endpoints, oldest first."""
    return [view(endpoint) for endpoint in await dispatch.endpoints.list(owner.reader)]


async def show_endpoint(dispatch: Dispatch, owner: Owner, endpoint_id: str) -> EndpointView:
    """Shows an endpoint; raises Refusal (not_found) for an endpoint that is not the owner's."""
    return view(await _own(dispatch, owner, endpoint_id))


async def change_endpoint(dispatch: Dispatch, owner: Owner, endpoint_id: str, changes: Changes) -> EndpointView:
    """Changes an endpoint. A restart, or a new address, forgets its failures; a paused endpoint keeps its deliveries.

    An endpoint that is stopped at the same moment stays stopped, unless the change starts it; and one that is moved
    then stays where it was moved to. Raises Refusal: not_found; invalid_request; unavailable where others change it
    ATTEMPTS_MAX times meanwhile.
    """
    for _ in range(ATTEMPTS_MAX):
        before = await _own(dispatch, owner, endpoint_id)
        changed = await dispatch.endpoints.change(_changed(dispatch, before, changes), was=before)
        if changed is not None:
            dispatch.wake()
            return view(changed)
    raise Refusal(Code.UNAVAILABLE, "others are changing the endpoint; try again")


def _changed(dispatch: Dispatch, before: Endpoint, changes: Changes) -> Endpoint:
    state = before.state if changes.state is msgspec.UNSET else changes.state
    is_started = state is EndpointState.ACTIVE and before.state is not EndpointState.ACTIVE
    is_moved = changes.url is not msgspec.UNSET and changes.url != before.url
    return msgspec.structs.replace(
        before,
        url=before.url if changes.url is msgspec.UNSET else _url(dispatch, changes.url),
        types=before.types if changes.types is msgspec.UNSET else _types(changes.types),
        label=before.label if changes.label is msgspec.UNSET else _label(changes.label),
        state=state,
        reason=_reason(before, state),
        failing_since_ms=None if is_started or is_moved else before.failing_since_ms,
        deferred_until_ms=0 if is_started or is_moved else before.deferred_until_ms,
        updated_at_ms=dispatch.clock.now_ms(),
    )


async def remove_endpoint(dispatch: Dispatch, owner: Owner, endpoint_id: str) -> None:
    """Removes an endpoint, and deletes its deliveries; raises Refusal (not_found)."""
    await _own(dispatch, owner, endpoint_id)
    if not await dispatch.endpoints.remove(endpoint_id):
        raise _missing()


async def rotate_endpoint(dispatch: Dispatch, owner: Owner, endpoint_id: str) -> IssuedEndpoint:
    """Makes a new secret. For OLDER_SECRET_MS, Payrelay signs events with the previous secret too.

    Raises Refusal (not_found).
    """
    await _own(dispatch, owner, endpoint_id)
    secret, now_ms = _new_secret(), dispatch.clock.now_ms()
    ends_at_ms = now_ms + OLDER_SECRET_MS
    rotated = await dispatch.endpoints.rotate(endpoint_id, secret, older_ends_at_ms=ends_at_ms, now_ms=now_ms)
    if rotated is None:
        raise _missing()
    return _issued(rotated, secret)


async def send_test_event(dispatch: Dispatch, owner: Owner, endpoint_id: str) -> str:
    """Publishes a test event to this endpoint only; returns the event's id, which its delivery has too.

    Raises Refusal: not_found; conflict for an endpoint that is stopped.
    """
    endpoint = await _own(dispatch, owner, endpoint_id)
    _require_started(endpoint)
    now_ms = dispatch.clock.now_ms()
    id_ = event_id(now_ms, new_id("test", now_ms))
    await dispatch.endpoints.put(
        OutgoingEvent(
            id=id_,
            type=TEST,
            account=endpoint.account,
            merchant=endpoint.merchant,
            principal=endpoint.principal,
            subject=f"endpoint:{endpoint_id}",
            at_ms=now_ms,
            data={"endpoint_id": endpoint_id},
        )
    )
    dispatch.wake()
    return id_


async def replay_events(
    dispatch: Dispatch,
    owner: Owner,
    endpoint_id: str,
    replayed: ReplayedEvents,
    *,
    after: int = 0,
    pages_max: int = PAGES_MAX,
) -> ReplayResult:
    """Queues events for an endpoint again, whether they were delivered or not.

    Replays events by their ids, or those of a span of time that the endpoint subscribes to. An event that waits already
    is not queued twice. A replay of a span starts after a position, and ends after REPLAYED_MAX events or ``pages_max``
    pages of the feed.
    Raises Refusal: not_found for an endpoint that is not the owner's, or for an unknown id, and then nothing is queued;
    conflict for an endpoint that is stopped.
    """
    endpoint = await _own(dispatch, owner, endpoint_id)
    _require_started(endpoint)
    now_ms, count, is_end = dispatch.clock.now_ms(), 0, False
    if replayed.ids:
        events = await dispatch.feed.of_ids(owner.reader, replayed.ids)
        if missing := sorted(set(replayed.ids) - {event.id for event in events}):
            raise Refusal(Code.NOT_FOUND, f"{len(missing)} of the ids name no stored event; nothing was sent")
        await dispatch.deliveries.queue_again(endpoint_id, events, now_ms)
        dispatch.wake()
        return ReplayResult(events=len(events))
    for _ in range(pages_max):
        page = await dispatch.feed.between(
            owner.reader, replayed.from_ms, replayed.until_ms, after=after, limit=_READ_AT_ONCE
        )
        events = [event for event in page.events if event.type != TEST and endpoint.wants(event.type)]
        await dispatch.deliveries.queue_again(endpoint_id, events, now_ms)
        count += len(events)
        is_end, after = page.next == after, page.next
        if is_end or count >= REPLAYED_MAX:
            break
    dispatch.wake()
    return ReplayResult(events=count, after=None if is_end else after)


async def list_deliveries(
    dispatch: Dispatch,
    owner: Owner,
    endpoint_id: str,
    *,
    state: DeliveryState | None = None,
    before: int | None = None,
    limit: int = 20,
) -> list[DeliveryView]:
    """Lists an endpoint's deliveries, newest first, below a position; raises Refusal (not_found)."""
    await _own(dispatch, owner, endpoint_id)
    listed = await dispatch.deliveries.list(endpoint_id, state=state, before=before, limit=limit)
    return [view_of(delivery, DeliveryView) for delivery in listed]


def view(endpoint: Endpoint) -> EndpointView:
    """Returns an endpoint as its owner sees it."""
    return view_of(endpoint, EndpointView, older_secret_ends_at=moment_or_none(endpoint.older_ends_at_ms))


def _issued(endpoint: Endpoint, secret: Secret) -> IssuedEndpoint:
    return IssuedEndpoint(**msgspec.structs.asdict(view(endpoint)), secret=secret.reveal())


async def _own(dispatch: Dispatch, owner: Owner, endpoint_id: str) -> Endpoint:
    endpoint = await dispatch.endpoints.get(endpoint_id)
    if endpoint is None or (endpoint.merchant, endpoint.principal) != (owner.merchant, owner.principal):
        raise _missing()
    return endpoint


def _require_started(endpoint: Endpoint) -> None:
    if endpoint.state is EndpointState.STOPPED:
        raise Refusal(Code.CONFLICT, "the endpoint is stopped: set its state to active first")


def _reason(before: Endpoint, state: EndpointState) -> str | None:
    if state is EndpointState.ACTIVE:
        return None
    return before.reason if state is before.state else f"it was {state} by its owner"


def _url(dispatch: Dispatch, url: str) -> str:
    try:
        require_destination(url, dispatch.sender.allowed)
    except DestinationError as error:
        raise wrong_field("url", str(error)) from None
    return url


def _types(types: tuple[str, ...]) -> tuple[str, ...]:
    if not 1 <= len(types) <= PATTERNS_MAX:
        raise wrong_field("types", f"must have 1 to {PATTERNS_MAX} entries")
    for index, text in enumerate(types):
        try:
            pattern_of(text)
        except PatternError as error:
            raise wrong_field(f"types[{index}]", str(error)) from None
    return tuple(dict.fromkeys(types))


def _label(label: str | None) -> str | None:
    if label is not None and (not label.strip() or not label.isprintable() or len(label) > LABEL_LENGTH_MAX):
        raise wrong_field("label", f"must have 1 to {LABEL_LENGTH_MAX} printable characters")
    return label


def _new_secret() -> Secret:
    return Secret("whsec_" + base64.b64encode(os.urandom(SECRET_BYTES)).decode())


def _missing() -> Refusal:
    return Refusal(Code.NOT_FOUND, "there is no such endpoint")
