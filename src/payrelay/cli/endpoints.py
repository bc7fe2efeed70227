"""The commands for endpoints and events: beside a running server, which does the sending, or without one."""

import sys
from collections.abc import Sequence
from datetime import datetime

import msgspec
from rich import box
from rich.console import Console, RenderableType
from rich.table import Table
from rich.text import Text

from payrelay.cli.session import DONE, REFUSED, UNKNOWN, complain, session
from payrelay.core.events.delivery import DeliveryState, pattern_of
from payrelay.core.events.event import PublishedEvent
from payrelay.core.payments.explanations import printable
from payrelay.errors import Refusal, SettingsError
from payrelay.flows.events.manage_endpoints import (
    EndpointView,
    NewEndpoint,
    Owner,
    ReplayedEvents,
    create_endpoint,
    list_deliveries,
    remove_endpoint,
    replay_events,
    rotate_endpoint,
    send_test,
    view,
)
from payrelay.flows.events.read_events import view as event_view
from payrelay.flows.relay import Relay
from payrelay.runtime.event_delivery import Dispatch
from payrelay.settings import Settings

_SHOWN_ONCE = "The secret is shown this once; whoever receives the events verifies them with it."


class WantedEndpoint(msgspec.Struct, frozen=True, kw_only=True):
    """Which events are listed."""

    name: str
    account: str | None
    after: int
    limit: int
    type: str | None
    subject: str | None


async def run_list(settings: Settings, *, as_json: bool) -> int:
    """Lists everybody's endpoints; gives the exit code."""
    async with session(settings) as relay:
        rows = [view(endpoint) for endpoint in await relay.dispatch.endpoints.list_all()]
    if as_json:
        _write_json(rows)
    else:
        Console(highlight=False).print(_list_page(rows))
    return DONE


async def run_add(settings: Settings, name: str, account: str | None, new: NewEndpoint) -> int:
    """Registers an endpoint, and prints its id and its secret on standard output; gives the exit code."""
    async with session(settings) as relay:
        try:
            owner = _owner(relay, name, account)
            issued = await create_endpoint(relay.dispatch, owner, new)
        except Refusal as refusal:
            return _refused(refusal)
    sys.stdout.write(f"{issued.id}\n{issued.secret}\n")
    _say(_SHOWN_ONCE)
    return DONE


async def run_remove(settings: Settings, endpoint_id: str) -> int:
    """Removes an endpoint; gives the exit code."""
    async with session(settings) as relay:
        owner = await _owner_of(relay.dispatch, endpoint_id)
        if owner is None:
            return _unknown(endpoint_id)
        await remove_endpoint(relay.dispatch, owner, endpoint_id)
    _say(f"{endpoint_id} is removed.")
    return DONE


async def run_rotate(settings: Settings, endpoint_id: str) -> int:
    """Gives an endpoint a new secret, and prints it; gives the exit code."""
    async with session(settings) as relay:
        owner = await _owner_of(relay.dispatch, endpoint_id)
        if owner is None:
            return _unknown(endpoint_id)
        issued = await rotate_endpoint(relay.dispatch, owner, endpoint_id)
    sys.stdout.write(f"{issued.secret}\n")
    _say(f"{_SHOWN_ONCE} The one before counts until {issued.older_secret_ends_at}.")
    return DONE


async def run_test(settings: Settings, endpoint_id: str) -> int:
    """Tells a test event, which a running server sends; gives the exit code."""
    async with session(settings) as relay:
        owner = await _owner_of(relay.dispatch, endpoint_id)
        if owner is None:
            return _unknown(endpoint_id)
        try:
            event_id = await send_test(relay.dispatch, owner, endpoint_id)
        except Refusal as refusal:
            return _refused(refusal)
    _say(f"{event_id} is sent within a second by the server that runs; payrelay endpoints deliveries {endpoint_id}")
    return DONE


async def run_replay(settings: Settings, endpoint_id: str, ids: list[str], since: str | None, until: str | None) -> int:
    """Queues events again, which a running server sends; gives the exit code. Raises SettingsError for no moment."""
    span = _span(ids, since, until)
    async with session(settings) as relay:
        dispatch = relay.dispatch
        owner = await _owner_of(dispatch, endpoint_id)
        if owner is None:
            return _unknown(endpoint_id)
        try:
            replayed = await replay_events(dispatch, owner, endpoint_id, span)
            count = replayed.events
            while replayed.after is not None:
                replayed = await replay_events(dispatch, owner, endpoint_id, span, after=replayed.after)
                count += replayed.events
        except Refusal as refusal:
            return _refused(refusal)
    _say(f"{count} events are sent again by the server that runs.")
    return DONE


async def run_deliveries(
    settings: Settings, endpoint_id: str, *, state: DeliveryState | None, limit: int, as_json: bool
) -> int:
    """Lists what became of events for an endpoint, newest first; gives the exit code."""
    async with session(settings) as relay:
        dispatch = relay.dispatch
        owner = await _owner_of(dispatch, endpoint_id)
        if owner is None:
            return _unknown(endpoint_id)
        rows = await list_deliveries(dispatch, owner, endpoint_id, state=state, limit=limit)
    if as_json:
        _write_json(rows)
        return DONE
    head = ("event", "type", "subject", "state", "tries", "last", "next")
    body: list[tuple[str, ...]] = [
        (
            row.event_id,
            row.type,
            row.subject,
            row.state,
            str(row.attempts),
            row.last_failure or (f"HTTP {row.last_status}" if row.last_status is not None else ""),
            row.next_try_at or "",
        )
        for row in rows
    ]
    _print(head, body)
    return DONE


async def run_events(settings: Settings, wanted: WantedEndpoint, *, as_json: bool) -> int:
    """Lists a principal's events, oldest first; gives the exit code. Raises PatternError."""
    pattern = pattern_of(wanted.type or "*")
    async with session(settings) as relay:
        try:
            reader = _owner(relay, wanted.name, wanted.account).reader
        except Refusal as refusal:
            return _refused(refusal)
        feed = relay.dispatch.feed
        if wanted.subject is not None:
            page = await feed.read_about(reader, wanted.subject, after=wanted.after, limit=wanted.limit)
        else:
            page = await feed.read_types(reader, pattern, after=wanted.after, limit=wanted.limit)
    events = [event for event in page.events if pattern.fits(event.type)]
    if as_json:
        _write_json([event_view(event) for event in events])
    else:
        _print(("position", "time", "type", "subject", "data"), [_event_row(event) for event in events])
    return DONE


def _owner(relay: Relay, name: str, account: str | None) -> Owner:
    if account is None:
        if len(relay.accounts) != 1:
            names = ", ".join(relay.accounts)
            raise SettingsError(f"--account is missing: name one of {names}" if names else "no gateway is configured")
        account = next(iter(relay.accounts))
    return Owner(account=account, merchant=relay.account(account).merchant, principal=name)


async def _owner_of(dispatch: Dispatch, endpoint_id: str) -> Owner | None:
    endpoint = await dispatch.endpoints.get(endpoint_id)
    if endpoint is None:
        return None
    return Owner(account=endpoint.account, merchant=endpoint.merchant, principal=endpoint.principal)


def _span(ids: list[str], since: str | None, until: str | None) -> ReplayedEvents:
    if ids:
        return ReplayedEvents(ids=tuple(ids))
    if since is None:
        raise SettingsError("name events by their ids, or a span by --since")
    from_ms = _ms("--since", since)
    return (
        ReplayedEvents(from_ms=from_ms)
        if until is None
        else ReplayedEvents(from_ms=from_ms, until_ms=_ms("--until", until))
    )


def _ms(option: str, text: str) -> int:
    try:
        return int(datetime.fromisoformat(text).astimezone().timestamp() * 1000)
    except (ValueError, OverflowError):
        raise SettingsError(f"{option} must be a moment such as 2026-11-21T10:00:00Z") from None


def _list_page(rows: Sequence[EndpointView]) -> RenderableType:
    if not rows:
        return Text("Nothing here: no endpoint is registered.")
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, leading=1)
    table.add_column("endpoint", overflow="fold", width=len("end_") + 32)
    table.add_column("takes", overflow="fold")
    table.add_column("state", overflow="fold")
    for row in rows:
        lines = f"{printable(row.url)}\n{printable(f'on {row.account}, by {row.principal}')}"
        state = row.state if row.reason is None else f"{row.state}: {printable(row.reason)}"
        table.add_row(Text.assemble((row.id, "bold"), "\n", lines), Text("\n".join(row.types)), Text(state))
    return table


def _event_row(event: PublishedEvent) -> tuple[str, ...]:
    shown = event_view(event)
    return (str(shown.position), shown.timestamp, shown.type, shown.subject, msgspec.json.encode(shown.data).decode())


def _print(head: tuple[str, ...], body: list[tuple[str, ...]]) -> None:
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False)
    for title in head:
        table.add_column(title, overflow="fold")  # what is cut off can't be copied
    for row in body:
        table.add_row(*row)
    Console(highlight=False, markup=False).print(table)


def _write_json(rows: object) -> None:
    sys.stdout.write(msgspec.json.format(msgspec.json.encode(rows), indent=2).decode() + "\n")


def _unknown(endpoint_id: str) -> int:
    complain(f"there is no endpoint {endpoint_id}")
    return UNKNOWN


def _refused(refusal: Refusal) -> int:
    complain(refusal.msg)
    return REFUSED


def _say(line: str) -> None:
    sys.stderr.write(f"{line}\n")
