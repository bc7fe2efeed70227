"""The commands for endpoints and events: beside a running server, which does the sending, or without one."""

import sys
from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Annotated

import msgspec
import typer
from rich import box
from rich.console import Console, RenderableType
from rich.table import Table
from rich.text import Text

from payrelay.cli.session import (
    DONE,
    REFUSED,
    UNKNOWN,
    Json,
    awaited,
    complain,
    read_settings,
    say,
    session,
)
from payrelay.core.events.delivery import DeliveryState, pattern_of
from payrelay.core.payments.explanations import printable
from payrelay.errors import Refusal, SettingsError

if TYPE_CHECKING:
    from payrelay.flows.events.manage_endpoints import EndpointView, Owner, ReplayedEvents
    from payrelay.flows.relay import Relay
    from payrelay.runtime.event_delivery import Dispatch

app = typer.Typer()
endpoints = typer.Typer(help="Endpoints: where events are sent.", no_args_is_help=True)
app.add_typer(endpoints, name="endpoints")
events = typer.Typer(help="Events: what was told.", no_args_is_help=True)
app.add_typer(events, name="events")

EndpointId = Annotated[str, typer.Argument(metavar="ID", help="As `endpoints list` shows it.")]
Principal = Annotated[str, typer.Option("--name", help="Whose events: the name of its keys.")]
OnAccount = Annotated[str | None, typer.Option("--account", help="Which account; needed where there are several.")]

_SHOWN_ONCE = "The secret is shown this once; whoever receives the events verifies them with it."


@endpoints.command("list")
@awaited
async def list_endpoints(*, as_json: Json = False) -> int:
    """List everybody's endpoints, without their secrets."""
    from payrelay.flows.events.manage_endpoints import view

    async with session(read_settings()) as relay:
        rows = [view(endpoint) for endpoint in await relay.dispatch.endpoints.list_all()]
    if as_json:
        _write_json(rows)
    else:
        Console(highlight=False).print(_list_page(rows))
    return DONE


@endpoints.command("add")
@awaited
async def add_endpoint(
    url: Annotated[str, typer.Argument(help="Where events are posted; https, unless its host is allowed.")],
    *,
    name: Principal,
    account: OnAccount = None,
    types: Annotated[list[str] | None, typer.Option("--type", help="Such as operation.*; repeatable.")] = None,
    label: Annotated[str | None, typer.Option(help="For people.")] = None,
) -> int:
    """Register an endpoint, and print its id and its secret on standard output."""
    from payrelay.flows.events.manage_endpoints import NewEndpoint, create_endpoint

    new = NewEndpoint(url=url, types=tuple(types or ("*",)), label=label)
    async with session(read_settings()) as relay:
        try:
            owner = _owner(relay, name, account)
            issued = await create_endpoint(relay.dispatch, owner, new)
        except Refusal as refusal:
            return _refused(refusal)
    sys.stdout.write(f"{issued.id}\n{issued.secret}\n")
    say(_SHOWN_ONCE)
    return DONE


@endpoints.command("remove")
@awaited
async def remove_endpoint(endpoint_id: EndpointId) -> int:
    """Remove an endpoint, and forget what became of its events."""
    from payrelay.flows.events import manage_endpoints

    async with session(read_settings()) as relay:
        owner = await _owner_of(relay.dispatch, endpoint_id)
        if owner is None:
            return _unknown(endpoint_id)
        await manage_endpoints.remove_endpoint(relay.dispatch, owner, endpoint_id)
    say(f"{endpoint_id} is removed.")
    return DONE


@endpoints.command("rotate")
@awaited
async def rotate_endpoint(endpoint_id: EndpointId) -> int:
    """Give an endpoint a new secret, and print it; the one before counts for a day."""
    from payrelay.flows.events import manage_endpoints

    async with session(read_settings()) as relay:
        owner = await _owner_of(relay.dispatch, endpoint_id)
        if owner is None:
            return _unknown(endpoint_id)
        issued = await manage_endpoints.rotate_endpoint(relay.dispatch, owner, endpoint_id)
    sys.stdout.write(f"{issued.secret}\n")
    say(f"{_SHOWN_ONCE} The one before counts until {issued.older_secret_ends_at}.")
    return DONE


@endpoints.command("test")
@awaited
async def send_test_event(endpoint_id: EndpointId) -> int:
    """Send a test event to an endpoint."""
    from payrelay.flows.events.manage_endpoints import send_test

    async with session(read_settings()) as relay:
        owner = await _owner_of(relay.dispatch, endpoint_id)
        if owner is None:
            return _unknown(endpoint_id)
        try:
            event_id = await send_test(relay.dispatch, owner, endpoint_id)
        except Refusal as refusal:
            return _refused(refusal)
    say(f"{event_id} is sent within a second by the server that runs; payrelay endpoints deliveries {endpoint_id}")
    return DONE


@endpoints.command("replay")
@awaited
async def replay_events(
    endpoint_id: EndpointId,
    event_ids: Annotated[list[str] | None, typer.Argument(metavar="[EVENT]...", help="Only these.")] = None,
    *,
    since: Annotated[str | None, typer.Option(help="From this moment on, such as 2026-11-21T10:00:00Z.")] = None,
    until: Annotated[str | None, typer.Option(help="Up to this moment.")] = None,
) -> int:
    """Send events to an endpoint again: some by their ids, or all that it wants of a span of time."""
    from payrelay.flows.events import manage_endpoints

    settings = read_settings()
    span = _span(event_ids or [], since, until)
    async with session(settings) as relay:
        dispatch = relay.dispatch
        owner = await _owner_of(dispatch, endpoint_id)
        if owner is None:
            return _unknown(endpoint_id)
        try:
            replayed = await manage_endpoints.replay_events(dispatch, owner, endpoint_id, span)
            count = replayed.events
            while replayed.after is not None:
                after = replayed.after
                replayed = await manage_endpoints.replay_events(dispatch, owner, endpoint_id, span, after=after)
                count += replayed.events
        except Refusal as refusal:
            return _refused(refusal)
    say(f"{count} events are sent again by the server that runs.")
    return DONE


@endpoints.command("deliveries")
@awaited
async def list_deliveries(
    endpoint_id: EndpointId,
    *,
    state: Annotated[DeliveryState | None, typer.Option(help="Only those in this state.")] = None,
    limit: Annotated[int, typer.Option(help="How many.", min=1, max=1_000)] = 20,
    as_json: Json = False,
) -> int:
    """List what became of events for an endpoint, newest first."""
    from payrelay.flows.events import manage_endpoints

    async with session(read_settings()) as relay:
        dispatch = relay.dispatch
        owner = await _owner_of(dispatch, endpoint_id)
        if owner is None:
            return _unknown(endpoint_id)
        rows = await manage_endpoints.list_deliveries(dispatch, owner, endpoint_id, state=state, limit=limit)
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


@events.command("list")
@awaited
async def list_events(
    *,
    name: Principal,
    account: OnAccount = None,
    after: Annotated[int, typer.Option(help="Behind this position.", min=0)] = 0,
    limit: Annotated[int, typer.Option(help="How many.", min=1, max=1_000)] = 50,
    event_type: Annotated[str | None, typer.Option("--type", help="Only these, such as operation.*.")] = None,
    subject: Annotated[str | None, typer.Option(help="Only those about this, such as operation:op_….")] = None,
    as_json: Json = False,
) -> int:
    """List the events of a principal, oldest first."""
    from payrelay.flows.events.read_events import view

    settings = read_settings()
    pattern = pattern_of(event_type or "*")
    async with session(settings) as relay:
        try:
            reader = _owner(relay, name, account).reader
        except Refusal as refusal:
            return _refused(refusal)
        feed = relay.dispatch.feed
        if subject is not None:
            page = await feed.read_about(reader, subject, after=after, limit=limit)
        else:
            page = await feed.read_types(reader, pattern, after=after, limit=limit)
    rows = [view(event) for event in page.events if pattern.fits(event.type)]
    if as_json:
        _write_json(rows)
    else:
        body: list[tuple[str, ...]] = [
            (str(row.position), row.timestamp, row.type, row.subject, msgspec.json.encode(row.data).decode())
            for row in rows
        ]
        _print(("position", "time", "type", "subject", "data"), body)
    return DONE


def _owner(relay: "Relay", name: str, account: str | None) -> "Owner":
    from payrelay.flows.events.manage_endpoints import Owner

    if account is None:
        if len(relay.accounts) != 1:
            names = ", ".join(relay.accounts)
            raise SettingsError(f"--account is missing: name one of {names}" if names else "no gateway is configured")
        account = next(iter(relay.accounts))
    return Owner(account=account, merchant=relay.account(account).merchant, principal=name)


async def _owner_of(dispatch: "Dispatch", endpoint_id: str) -> "Owner | None":
    from payrelay.flows.events.manage_endpoints import Owner

    endpoint = await dispatch.endpoints.get(endpoint_id)
    if endpoint is None:
        return None
    return Owner(account=endpoint.account, merchant=endpoint.merchant, principal=endpoint.principal)


def _span(ids: list[str], since: str | None, until: str | None) -> "ReplayedEvents":
    from payrelay.flows.events.manage_endpoints import ReplayedEvents

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


def _list_page(rows: Sequence["EndpointView"]) -> RenderableType:
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
