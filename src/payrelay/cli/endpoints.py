"""The commands for endpoints and events: beside a running server, which does the sending, or without one."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import datetime
from typing import TYPE_CHECKING, Annotated

import msgspec
import typer

from payrelay.cli.session import read_settings, session
from payrelay.cli.terminal.declaring import Json, awaited, examples, group, state_help
from payrelay.cli.terminal.messages import DONE, NOT_FOUND, CommandError, require_found, say, show
from payrelay.core.events.delivery import DeliveryState, Pattern, PatternError, pattern_of

if TYPE_CHECKING:
    from payrelay.cli.terminal.pages import Cell
    from payrelay.flows.events.manage_endpoints import DeliveryView, EndpointView, Owner, ReplayedEvents
    from payrelay.flows.relay import Relay
    from payrelay.runtime.event_delivery import Dispatch

app = group()
endpoints = group("endpoints", "Endpoints: where events are sent.")
app.add_typer(endpoints)
events = group("events", "Events: what happened, in the order of the feed.")
app.add_typer(events)

EndpointId = Annotated[str, typer.Argument(metavar="ID", help="As `endpoints list` shows it.")]
Principal = Annotated[str, typer.Option("--name", metavar="NAME", help="The principal: the name of its keys.")]
OnAccount = Annotated[
    str | None, typer.Option("--account", metavar="ACCOUNT", help="Which account; needed where there are several.")
]

_SHOWN_ONCE = "The secret is shown this once; the receiver verifies the events with it."


@endpoints.command("list", epilog=examples("payrelay endpoints list", "payrelay endpoints list --json"))
@awaited
async def list_endpoints(*, as_json: Json = False) -> int:
    """List the endpoints of all principals, without their secrets."""
    from payrelay.cli.terminal.pages import show_result, table
    from payrelay.flows.events.manage_endpoints import view

    async with session(read_settings()) as relay:
        rows = [view(endpoint) for endpoint in await relay.dispatch.endpoints.list_all()]
    empty = "Nothing here: no endpoint is registered."
    page = table(("endpoint", "types", "state"), map(_endpoint_row, rows), ids="endpoint", empty=empty, leading=1)
    return show_result(rows, page, as_json=as_json)


@endpoints.command(
    "add",
    epilog=examples(
        "payrelay endpoints add https://shop.example/events --name shop",
        "payrelay endpoints add https://shop.example/events --name shop \\",
        "  --type 'operation.*' --type 'payment.*'",
    ),
)
@awaited
async def add_endpoint(
    url: Annotated[
        str, typer.Argument(metavar="URL", help="Where events are posted; https, unless its host is allowed.")
    ],
    *,
    name: Principal,
    account: OnAccount = None,
    types: Annotated[
        list[str] | None, typer.Option("--type", metavar="TYPE", help="Such as operation.*; repeatable.")
    ] = None,
    label: Annotated[str | None, typer.Option(metavar="TEXT", help="A name for people.")] = None,
) -> int:
    """Register an endpoint, and print its id and its secret."""
    from payrelay.flows.events.manage_endpoints import NewEndpoint, create_endpoint

    new = NewEndpoint(url=url, types=tuple(types or ("*",)), label=label)
    async with session(read_settings()) as relay:
        issued = await create_endpoint(relay.dispatch, await _owner(relay, name, account), new)
    show(f"{issued.id}\n{issued.secret}")
    say(_SHOWN_ONCE)
    return DONE


@endpoints.command("remove", epilog=examples("payrelay endpoints remove ID"))
@awaited
async def remove_endpoint(endpoint_id: EndpointId) -> int:
    """Remove an endpoint, and what is stored of its deliveries."""
    from payrelay.flows.events import manage_endpoints

    async with _registered(endpoint_id) as (dispatch, owner):
        await manage_endpoints.remove_endpoint(dispatch, owner, endpoint_id)
    say(f"{endpoint_id} is removed.")
    return DONE


@endpoints.command("rotate", epilog=examples("payrelay endpoints rotate ID"))
@awaited
async def rotate_endpoint(endpoint_id: EndpointId) -> int:
    """Give an endpoint a new secret, and print it.

    The previous secret stays valid for a day.
    """
    from payrelay.flows.events import manage_endpoints

    async with _registered(endpoint_id) as (dispatch, owner):
        issued = await manage_endpoints.rotate_endpoint(dispatch, owner, endpoint_id)
    show(str(issued.secret))
    say(f"{_SHOWN_ONCE} The previous one stays valid until {issued.older_secret_ends_at}.")
    return DONE


@endpoints.command("test", epilog=examples("payrelay endpoints test ID"))
@awaited
async def send_test_event(endpoint_id: EndpointId) -> int:
    """Send a test event to an endpoint."""
    from payrelay.flows.events import manage_endpoints

    async with _registered(endpoint_id) as (dispatch, owner):
        event_id = await manage_endpoints.send_test_event(dispatch, owner, endpoint_id)
    say(f"{event_id} is sent within a second by a running server; see payrelay endpoints deliveries {endpoint_id}")
    return DONE


@endpoints.command(
    "replay",
    epilog=examples(
        "payrelay endpoints replay ID --since 2026-11-21T10:00:00Z", "payrelay endpoints replay ID EVENT EVENT"
    ),
)
@awaited
async def replay_events(
    endpoint_id: EndpointId,
    event_ids: Annotated[list[str] | None, typer.Argument(metavar="EVENT", help="Only these.")] = None,
    *,
    since: Annotated[
        str | None, typer.Option(metavar="MOMENT", help="From this moment on, such as 2026-11-21T10:00:00Z.")
    ] = None,
    until: Annotated[str | None, typer.Option(metavar="MOMENT", help="Up to this moment.")] = None,
) -> int:
    """Send events to an endpoint again.

    The events are those that are named, or all of a span of time that the endpoint subscribes to.
    """
    from payrelay.flows.events import manage_endpoints

    span = _span(event_ids or [], since, until)
    async with _registered(endpoint_id) as (dispatch, owner):
        replayed = await manage_endpoints.replay_events(dispatch, owner, endpoint_id, span)
        count = replayed.events
        while replayed.after is not None:
            after = replayed.after
            replayed = await manage_endpoints.replay_events(dispatch, owner, endpoint_id, span, after=after)
            count += replayed.events
    say(f"{count} events are sent again by a running server.")
    return DONE


@endpoints.command(
    "deliveries",
    epilog=examples("payrelay endpoints deliveries ID", "payrelay endpoints deliveries ID --state given_up --json"),
)
@awaited
async def list_deliveries(
    endpoint_id: EndpointId,
    *,
    state: Annotated[DeliveryState | None, typer.Option(metavar="STATE", help=state_help(DeliveryState))] = None,
    limit: Annotated[int, typer.Option(metavar="COUNT", help="How many.", min=1, max=1_000)] = 20,
    as_json: Json = False,
) -> int:
    """List the deliveries of events to an endpoint, newest first."""
    from payrelay.cli.terminal.pages import show_result, table
    from payrelay.flows.events import manage_endpoints

    async with _registered(endpoint_id) as (dispatch, owner):
        rows = await manage_endpoints.list_deliveries(dispatch, owner, endpoint_id, state=state, limit=limit)
    titles = ("event", "type", "subject", "state", "tries", "last", "next")
    page = table(titles, map(_delivery_row, rows), empty="Nothing here: there is no such delivery.")
    return show_result(rows, page, as_json=as_json)


@events.command(
    "list",
    epilog=examples("payrelay events list --name shop", "payrelay events list --name shop --type 'operation.*' --json"),
)
@awaited
async def list_events(
    *,
    name: Principal,
    account: OnAccount = None,
    after: Annotated[int, typer.Option(metavar="POSITION", help="After this position.", min=0)] = 0,
    limit: Annotated[int, typer.Option(metavar="COUNT", help="How many.", min=1, max=1_000)] = 50,
    event_type: Annotated[
        str | None, typer.Option("--type", metavar="TYPE", help="Only these, such as operation.*.")
    ] = None,
    subject: Annotated[
        str | None, typer.Option(metavar="SUBJECT", help="Only those about this, such as operation:ID.")
    ] = None,
    as_json: Json = False,
) -> int:
    """List the events of a principal, oldest first."""
    from payrelay.cli.terminal.pages import show_result, table
    from payrelay.flows.events.event_views import view

    settings = read_settings()
    pattern = _pattern(event_type or "*")
    async with session(settings) as relay:
        reader = (await _owner(relay, name, account)).reader
        feed = relay.dispatch.feed
        if subject is not None:
            page = await feed.read_about(reader, subject, after=after, limit=limit)
        else:
            page = await feed.read_types(reader, pattern, after=after, limit=limit)
    shown = [view(event) for event in page.events if pattern.fits(event.type)]
    rows = ((str(row.position), row.timestamp, row.type, row.subject, _json_text(row.data)) for row in shown)
    titles = ("position", "time", "type", "subject", "data")
    shown_page = table(titles, rows, empty="Nothing here: there is no such event.")
    return show_result(shown, shown_page, as_json=as_json)


def _pattern(text: str) -> Pattern:
    try:
        return pattern_of(text)
    except PatternError as error:
        raise CommandError(f"--type {error}") from None


def _json_text(value: object) -> str:
    return msgspec.json.encode(value).decode()


async def _owner(relay: "Relay", name: str, account: str | None) -> "Owner":
    """Finds the owner of an endpoint or of events; raises CommandError for a name under which nothing is stored.

    An endpoint of a mistyped name would get no event, ever, and its list would say that there was none.
    """
    from payrelay.flows.events.manage_endpoints import Owner

    if account is None:
        if len(relay.accounts) != 1:
            names = ", ".join(relay.accounts)
            raise CommandError(f"--account is missing: name one of {names}" if names else "no gateway is configured")
        account = next(iter(relay.accounts))
    stored = await relay.access.principals.stored_name(name)
    if stored not in await relay.access.principals.known():
        raise CommandError(f"there is no principal {name}; payrelay principals list shows all", NOT_FOUND)
    return Owner(account=account, merchant=relay.account(account).merchant, principal=stored)


@asynccontextmanager
async def _registered(endpoint_id: str) -> "AsyncIterator[tuple[Dispatch, Owner]]":
    """Opens what sends events, with the owner of an endpoint. Raises CommandError where there is no such endpoint."""
    from payrelay.flows.events.manage_endpoints import Owner

    async with session(read_settings()) as relay:
        endpoint = require_found(await relay.dispatch.endpoints.get(endpoint_id), "endpoint", endpoint_id)
        yield relay.dispatch, Owner(account=endpoint.account, merchant=endpoint.merchant, principal=endpoint.principal)


def _span(ids: list[str], since: str | None, until: str | None) -> "ReplayedEvents":
    from payrelay.flows.events.manage_endpoints import ReplayedEvents

    if ids:
        return ReplayedEvents(ids=tuple(ids))
    if since is None:
        raise CommandError("name events by their ids, or a span by --since")
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
        raise CommandError(f"{option} must be a moment such as 2026-11-21T10:00:00Z") from None


def _endpoint_row(row: "EndpointView") -> "tuple[Cell, ...]":
    from payrelay.cli.terminal.pages import entry

    state = row.state if row.reason is None else f"{row.state}: {row.reason}"
    return entry(row.id, row.url, f"on {row.account}, by {row.principal}"), row.types, state


def _delivery_row(row: "DeliveryView") -> "tuple[Cell, ...]":
    last = row.last_failure or (f"HTTP {row.last_status}" if row.last_status is not None else "")
    return row.event_id, row.type, row.subject, row.state, str(row.attempts), last, row.next_try_at or ""
