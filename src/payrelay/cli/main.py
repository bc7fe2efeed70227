"""The command line: reads the settings, does one thing, and says in one line why it couldn't.

What only the serving commands need is imported in them: the others should not wait for a web server to load.
"""

import asyncio
import sys
from collections.abc import Sequence
from enum import StrEnum
from importlib import metadata
from pathlib import Path
from typing import Annotated, Final

import typer
import uvloop
from rich.console import Console

from payrelay.cli.keys import keys
from payrelay.clock import Clock
from payrelay.core.customers.customer import CustomerFilter, CustomerState
from payrelay.core.events.delivery import DeliveryState, PatternError
from payrelay.core.notifications.notification import NotificationFilter, NotificationState
from payrelay.core.payments.operation import State
from payrelay.core.persons import WordsError
from payrelay.errors import SettingsError, StoreError
from payrelay.settings import read_settings

UNUSABLE: Final = 2
"""The exit code of a command that couldn't begin."""
WRONG: Final = 1
"""The exit code of ``check`` where something is wrong."""
CUSTOMERS_MAX: Final = 1_000
"""Customers that are listed."""
LISTED_MAX: Final = 10_000
"""Operations of one group that are listed; more are no list that anybody reads."""

app = typer.Typer(
    name="payrelay",
    help="Relays payments to a gateway: nobody is charged twice, no answer is lost.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
schema = typer.Typer(help="The database's schema.", no_args_is_help=True)
app.add_typer(keys, name="keys")
app.add_typer(schema, name="db")
audit = typer.Typer(help="Whether operations and their histories are as they were left.", no_args_is_help=True)
app.add_typer(audit, name="audit")
endpoints = typer.Typer(help="Endpoints: where events are sent.", no_args_is_help=True)
app.add_typer(endpoints, name="endpoints")
events = typer.Typer(help="Events: what was told.", no_args_is_help=True)
app.add_typer(events, name="events")
customers = typer.Typer(help="Stored customers: who can be charged by a handle.", no_args_is_help=True)
app.add_typer(customers, name="customers")
seal = typer.Typer(help="What is sealed at rest, and with which key.", no_args_is_help=True)
app.add_typer(seal, name="seal")
client_tokens = typer.Typer(help="Client tokens: what phones are given.", no_args_is_help=True)
app.add_typer(client_tokens, name="client-tokens")
operations = typer.Typer(help="Operations: what needs a person, what is known of it, a decision.", no_args_is_help=True)
app.add_typer(operations, name="operations")
notifications = typer.Typer(help="Notifications: what the gateway posted, and what became of it.", no_args_is_help=True)
app.add_typer(notifications, name="notifications")

Host = Annotated[str, typer.Option(help="The address to listen on.")]
Port = Annotated[int, typer.Option(help="The port to listen on; 0 takes any free one.", min=0, max=65_535)]

Json = Annotated[bool, typer.Option("--json", help="As JSON, for programs.")]
Reason = Annotated[str, typer.Option(help="Why; it is kept. Required.", show_default=False)]
By = Annotated[str | None, typer.Option(help="Who decides; without it, whoever is logged in.")]
OperationId = Annotated[str, typer.Argument(metavar="ID", help="As `operations list` shows it.")]
NotificationId = Annotated[str, typer.Argument(metavar="ID", help="As `notifications list` shows it.")]
EndpointId = Annotated[str, typer.Argument(metavar="ID", help="As `endpoints list` shows it.")]
Principal = Annotated[str, typer.Option("--name", help="Whose events: the name of its keys.")]
OnAccount = Annotated[str | None, typer.Option("--account", help="Which account; needed where there are several.")]
CustomerId = Annotated[str, typer.Argument(metavar="ID", help="As `customers list` shows it.")]
AccountName = Annotated[str, typer.Argument(metavar="ACCOUNT", help="The name of a configured account.")]


class DecidedState(StrEnum):
    """What can be decided."""

    SUCCEEDED = "succeeded"
    FAILED = "failed"


def main(arguments: Sequence[str] | None = None) -> None:
    """Runs one command and exits; an expected failure is one line on standard error."""
    try:
        app(args=arguments, prog_name="payrelay")
    except (SettingsError, StoreError, WordsError, PatternError) as error:
        fail(str(error))
    except OSError as error:
        fail(f"{error.strerror or error}" + (f": {error.filename}" if error.filename else ""))


def fail(line: str) -> None:
    """Says why and exits."""
    sys.stderr.write(f"payrelay: {line}\n")
    sys.exit(UNUSABLE)


@app.command()
def serve(host: Host = "127.0.0.1", port: Port = 8080) -> None:
    """Start the service."""
    from payrelay import server
    from payrelay.api.http.request_log import json_log

    uvloop.run(server.serve(read_settings(), host, port, json_log(sys.stdout.buffer, Clock())))


Shop = Annotated[Path | None, typer.Option(help="A program to run beside it, such as examples/shop/shop.py.")]


@app.command()
def demo(
    host: Host = "127.0.0.1",
    port: Port = 8080,
    shop: Shop = None,
) -> None:
    """Start the service with a gateway simulator, and print calls to copy."""
    from payrelay.cli.demo import run_demo

    if shop is not None and not shop.is_file():
        raise SettingsError(f"{shop}: there is no such program")
    uvloop.run(run_demo(host, port, shop))


@app.command()
def simulate(host: Host = "127.0.0.1", port: Port = 8600) -> None:
    """Start the gateway simulator alone, with the demo's customers, payments and subscriptions."""
    import payrelay_simulator

    try:
        payrelay_simulator.run(host, port, prepare=payrelay_simulator.demo_world)
    except OSError as error:
        raise SettingsError(f"can't listen on {host}:{port}: {error.strerror or error}") from error


@app.command()
def check() -> None:
    """Say what is right and wrong with settings, database and gateways."""
    from payrelay.cli.check import findings

    console = Console(highlight=False)

    async def print_all() -> bool:
        is_right = True
        async for finding in findings(read_settings, Clock()):
            mark = "[yellow]![/]" if finding.is_warning else "[green]✓[/]" if finding.is_right else "[red]✗[/]"
            console.print(mark, end=" ")
            console.print(f"{finding.subject}: {finding.text}", markup=False, soft_wrap=True)
            is_right = is_right and finding.is_right
        return is_right

    if not asyncio.run(print_all()):
        raise typer.Exit(WRONG)


@schema.command()
def upgrade() -> None:
    """Bring the database's schema up to date."""
    number = _schema_version()
    sys.stderr.write(f"The database is up to date, at version {number}.\n")


@schema.command("version")
def show_schema_version() -> None:
    """Tell which version the database's schema has; it is brought up to date by that."""
    sys.stdout.write(f"{_schema_version()}\n")


@app.command()
def settle(
    operation_ids: Annotated[
        list[str] | None, typer.Argument(metavar="[ID]...", help="Only these; without one, all that are open.")
    ] = None,
) -> None:
    """Ask the gateway now what became of the operations that are open."""
    from payrelay.cli.resolve import run_settle

    if not uvloop.run(run_settle(read_settings(), operation_ids or [])):
        raise typer.Exit(WRONG)


@operations.command("list")
def list_operations(
    *,
    state: Annotated[State | None, typer.Option(help="Only those in this state.")] = None,
    account: Annotated[str | None, typer.Option(help="Only those on this account.")] = None,
    order: Annotated[str | None, typer.Option(help="Only those of this order.")] = None,
    show_all: Annotated[bool, typer.Option("--all", help="The others too, newest first.")] = False,
    limit: Annotated[int, typer.Option(help="Of each group.", min=1, max=LISTED_MAX)] = 50,
    as_json: Json = False,
) -> None:
    """List the operations that need a person, and those that are open."""
    from payrelay.cli.operations import run_list
    from payrelay.flows.operators.review import ReviewFilter

    wanted = ReviewFilter(state=state, account=account, order_id=order, is_all=show_all, limit=limit)
    _exit_with(uvloop.run(run_list(read_settings(), wanted, as_json=as_json)))


@operations.command("show")
def show_operation(operation_id: OperationId, *, as_json: Json = False) -> None:
    """Show all that is known of an operation, and what each decision would do."""
    from payrelay.cli.operations import run_show

    _exit_with(uvloop.run(run_show(read_settings(), operation_id, as_json=as_json)))


@operations.command("decide")
def decide_operation(
    operation_id: OperationId,
    verdict: Annotated[DecidedState, typer.Argument(help="What became of it.")],
    *,
    reason: Reason = "",
    payment_id: Annotated[str | None, typer.Option(help="The number of the payment that it made, if known.")] = None,
    by: By = None,
    yes: Annotated[bool, typer.Option("--yes", help="Don't ask back.")] = False,
) -> None:
    """Decide what became of an operation that is unknown, pending or needs a person; for good."""
    from payrelay.cli.operations import Said, run_decide

    said = Said(
        operation_id=operation_id,
        verdict=State(verdict),
        reason=reason,
        by=by,
        payment_id=payment_id,
        is_sure=yes,
    )
    _exit_with(uvloop.run(run_decide(read_settings(), said)))


@notifications.command("list")
def list_notifications(
    *,
    state: Annotated[NotificationState | None, typer.Option(help="Only those in this state.")] = None,
    account: Annotated[str | None, typer.Option(help="Only those on this account.")] = None,
    order: Annotated[str | None, typer.Option(help="Only those of this order.")] = None,
    payment: Annotated[str | None, typer.Option(help="Only those of this payment.")] = None,
    limit: Annotated[int, typer.Option(help="At most so many.", min=1, max=1_000)] = 50,
    as_json: Json = False,
) -> None:
    """List what the gateway posted, newest first."""
    from payrelay.cli.notifications import run_list

    wanted = NotificationFilter(state=state, account=account, order_id=order, payment_id=payment)
    _exit_with(uvloop.run(run_list(read_settings(), wanted, limit=limit, as_json=as_json)))


@notifications.command("show")
def show_notification(notification_id: NotificationId, *, as_json: Json = False) -> None:
    """Show all that is known of a notification, but for what is secret."""
    from payrelay.cli.notifications import run_show

    _exit_with(uvloop.run(run_show(read_settings(), notification_id, as_json=as_json)))


@notifications.command("replay")
def replay_notifications(
    notification_ids: Annotated[list[str], typer.Argument(metavar="ID...", help="As `notifications list` shows them.")],
) -> None:
    """Have notifications worked on anew, once what kept them from their end is mended."""
    from payrelay.cli.notifications import run_replay

    _exit_with(uvloop.run(run_replay(read_settings(), notification_ids)))


@endpoints.command("list")
def list_endpoints(*, as_json: Json = False) -> None:
    """List everybody's endpoints, without their secrets."""
    from payrelay.cli.endpoints import run_list

    _exit_with(uvloop.run(run_list(read_settings(), as_json=as_json)))


@endpoints.command("add")
def add_endpoint(
    url: Annotated[str, typer.Argument(help="Where events are posted; https, unless its host is allowed.")],
    *,
    name: Principal,
    account: OnAccount = None,
    types: Annotated[list[str] | None, typer.Option("--type", help="Such as operation.*; repeatable.")] = None,
    label: Annotated[str | None, typer.Option(help="For people.")] = None,
) -> None:
    """Register an endpoint, and print its id and its secret on standard output."""
    from payrelay.cli.endpoints import run_add
    from payrelay.flows.events.manage_endpoints import NewEndpoint

    new = NewEndpoint(url=url, types=tuple(types or ("*",)), label=label)
    _exit_with(uvloop.run(run_add(read_settings(), name, account, new)))


@endpoints.command("remove")
def remove_endpoint(endpoint_id: EndpointId) -> None:
    """Remove an endpoint, and forget what became of its events."""
    from payrelay.cli.endpoints import run_remove

    _exit_with(uvloop.run(run_remove(read_settings(), endpoint_id)))


@endpoints.command("rotate")
def rotate_endpoint(endpoint_id: EndpointId) -> None:
    """Give an endpoint a new secret, and print it; the one before counts for a day."""
    from payrelay.cli.endpoints import run_rotate

    _exit_with(uvloop.run(run_rotate(read_settings(), endpoint_id)))


@endpoints.command("test")
def send_test_event(endpoint_id: EndpointId) -> None:
    """Send a test event to an endpoint."""
    from payrelay.cli.endpoints import run_test

    _exit_with(uvloop.run(run_test(read_settings(), endpoint_id)))


@endpoints.command("replay")
def replay_events(
    endpoint_id: EndpointId,
    event_ids: Annotated[list[str] | None, typer.Argument(metavar="[EVENT]...", help="Only these.")] = None,
    *,
    since: Annotated[str | None, typer.Option(help="From this moment on, such as 2026-11-21T10:00:00Z.")] = None,
    until: Annotated[str | None, typer.Option(help="Up to this moment.")] = None,
) -> None:
    """Send events to an endpoint again: some by their ids, or all that it wants of a span of time."""
    from payrelay.cli.endpoints import run_replay

    _exit_with(uvloop.run(run_replay(read_settings(), endpoint_id, event_ids or [], since, until)))


@endpoints.command("deliveries")
def list_deliveries(
    endpoint_id: EndpointId,
    *,
    state: Annotated[DeliveryState | None, typer.Option(help="Only those in this state.")] = None,
    limit: Annotated[int, typer.Option(help="How many.", min=1, max=1_000)] = 20,
    as_json: Json = False,
) -> None:
    """List what became of events for an endpoint, newest first."""
    from payrelay.cli.endpoints import run_deliveries

    _exit_with(uvloop.run(run_deliveries(read_settings(), endpoint_id, state=state, limit=limit, as_json=as_json)))


@events.command("list")
def list_events(
    *,
    name: Principal,
    account: OnAccount = None,
    after: Annotated[int, typer.Option(help="Behind this position.", min=0)] = 0,
    limit: Annotated[int, typer.Option(help="How many.", min=1, max=1_000)] = 50,
    event_type: Annotated[str | None, typer.Option("--type", help="Only these, such as operation.*.")] = None,
    subject: Annotated[str | None, typer.Option(help="Only those about this, such as operation:op_….")] = None,
    as_json: Json = False,
) -> None:
    """List the events of a principal, oldest first."""
    from payrelay.cli.endpoints import WantedEndpoint, run_events

    wanted = WantedEndpoint(name=name, account=account, after=after, limit=limit, type=event_type, subject=subject)
    _exit_with(uvloop.run(run_events(read_settings(), wanted, as_json=as_json)))


@customers.command("list")
def list_customers(
    *,
    principal: Annotated[str | None, typer.Option(help="Only those of this principal.")] = None,
    account: Annotated[str | None, typer.Option(help="Only those that were approved on this account.")] = None,
    reference: Annotated[str | None, typer.Option(help="Only those that their merchant calls so.")] = None,
    state: Annotated[CustomerState | None, typer.Option(help="Only those in this state.")] = None,
    limit: Annotated[int, typer.Option(help="How many, newest first.", min=1, max=CUSTOMERS_MAX)] = 50,
    as_json: Json = False,
) -> None:
    """List stored customers, newest first; never a token."""
    from payrelay.cli.customers import run_list

    wanted = CustomerFilter(principal=principal, account=account, reference=reference, state=state)
    _exit_with(uvloop.run(run_list(read_settings(), wanted, limit=limit, as_json=as_json)))


@customers.command("show")
def show_customer(customer_id: CustomerId, *, as_json: Json = False) -> None:
    """Show what is known of a stored customer, and its newest operations."""
    from payrelay.cli.customers import run_show

    _exit_with(uvloop.run(run_show(read_settings(), customer_id, as_json=as_json)))


@customers.command("erase")
def erase_customer(
    customer_id: CustomerId, *, yes: Annotated[bool, typer.Option("--yes", help="Don't ask back.")] = False
) -> None:
    """Erase what is kept of a person, on request; amounts and ids stay."""
    from payrelay.cli.customers import run_erase

    _exit_with(uvloop.run(run_erase(read_settings(), customer_id, is_sure=yes)))


@seal.command("status")
def seal_status(*, as_json: Json = False) -> None:
    """Tell how many values each key seals."""
    from payrelay.cli.seal import run_status

    _exit_with(asyncio.run(run_status(read_settings(), as_json=as_json)))


@seal.command("rotate")
def rotate_seal() -> None:
    """Bring everything that is sealed under the first key, while the service runs."""
    from payrelay.cli.seal import run_rotate

    _exit_with(asyncio.run(run_rotate(read_settings())))


@seal.command("new-key")
def new_seal_key() -> None:
    """Print a new key, as PAYRELAY_ENCRYPTION_KEY takes it."""
    from payrelay.cli.seal import run_new_key

    run_new_key()


@client_tokens.command("rotate-key")
def rotate_token_key() -> None:
    """Sign client tokens with a new key; those of the key before it stay good."""
    from payrelay.cli.client_tokens import run_rotate_key

    _exit_with(asyncio.run(run_rotate_key(read_settings())))


@app.command()
def pause(account: AccountName, *, reason: Reason = "", by: By = None) -> None:
    """Allow no new operations on an account; reads and settling go on."""
    from payrelay.cli.accounts import run_pause

    _exit_with(uvloop.run(run_pause(read_settings(), account, why=reason, by=by)))


@app.command()
def resume(account: AccountName) -> None:
    """Let a paused account go on."""
    from payrelay.cli.accounts import run_resume

    _exit_with(uvloop.run(run_resume(read_settings(), account)))


@audit.command()
def verify(
    *,
    anchor: Annotated[
        list[str] | None, typer.Option(metavar="NUMBER:DIGEST", help="An anchor as it was noted; repeatable.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Find every operation, line of history and kept answer that was changed or removed."""
    from payrelay.cli.audit import run_verify

    if not asyncio.run(run_verify(read_settings(), noted=anchor or [], as_json=as_json)):
        raise typer.Exit(WRONG)


@app.command()
def version() -> None:
    """Tell the program's version."""
    sys.stdout.write(f"payrelay {metadata.version('payrelay')}\n")


def _exit_with(code: int) -> None:
    if code:
        raise typer.Exit(code)


def _schema_version() -> int:
    from payrelay.app import upgraded_version

    return asyncio.run(upgraded_version(read_settings(), Clock()))
