"""The commands for stored customers: list them, show one, erase one on request."""

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Final

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
    Sure,
    awaited,
    complain,
    read_settings,
    say,
    session,
)
from payrelay.core.customers.customer import Customer, CustomerFilter, CustomerState
from payrelay.core.moments import rfc3339
from payrelay.core.payments.explanations import printable
from payrelay.core.payments.operation import OperationFilter

if TYPE_CHECKING:
    from payrelay.flows.relay import Relay

CUSTOMERS_MAX: Final = 1_000
"""Customers that are listed."""
OPERATIONS_SHOWN: Final = 10
"""The newest; a list of all of a customer's is at the API."""

app = typer.Typer(name="customers", help="Stored customers: who can be charged by a handle.", no_args_is_help=True)

CustomerId = Annotated[str, typer.Argument(metavar="ID", help="As `customers list` shows it.")]


@app.command("list")
@awaited
async def list_customers(
    *,
    principal: Annotated[str | None, typer.Option(help="Only those of this principal.")] = None,
    account: Annotated[str | None, typer.Option(help="Only those that were approved on this account.")] = None,
    reference: Annotated[str | None, typer.Option(help="Only those that their merchant calls so.")] = None,
    state: Annotated[CustomerState | None, typer.Option(help="Only those in this state.")] = None,
    limit: Annotated[int, typer.Option(help="How many, newest first.", min=1, max=CUSTOMERS_MAX)] = 50,
    as_json: Json = False,
) -> int:
    """List stored customers, newest first; never a token."""
    from payrelay.flows.customers.show_customer import view

    wanted = CustomerFilter(principal=principal, account=account, reference=reference, state=state)
    async with session(read_settings()) as relay:
        customers = await relay.customers.list(wanted, before=None, limit=limit)
    if as_json:
        _write_json({"customers": [view(customer) for customer in customers]})
    else:
        Console(highlight=False).print(_list_page(customers))
    return DONE


@app.command("show")
@awaited
async def show_customer(customer_id: CustomerId, *, as_json: Json = False) -> int:
    """Show what is known of a stored customer, and its newest operations."""
    from payrelay.flows.customers.show_customer import view

    async with session(read_settings()) as relay:
        customer = await _known(relay, customer_id)
        if customer is None:
            return UNKNOWN
        newest = await relay.journal.list(OperationFilter(customer_id=customer.id), before=None, limit=OPERATIONS_SHOWN)
    shown, operation_ids = view(customer), [operation.id for operation in newest]
    if as_json:
        _write_json({"customer": shown, "operation_ids": operation_ids})
        return DONE
    table = Table(box=None, pad_edge=False, show_header=False)
    for name, value in msgspec.structs.asdict(shown).items():
        table.add_row(name, _cell(value))
    table.add_row("newest operations", "\n".join(operation_ids) or "-")
    Console(highlight=False).print(table)
    return DONE


@app.command("erase")
@awaited
async def erase_customer(customer_id: CustomerId, *, yes: Sure = False) -> int:
    """Erase what is kept of a person, on request; amounts and ids stay."""
    from payrelay.flows.customers.erase_customer import erase

    async with session(read_settings()) as relay:
        customer = await _known(relay, customer_id)
        if customer is None:
            return UNKNOWN
        if not yes and sys.stdin.isatty() and not _is_confirmed(customer):
            complain("nothing was erased")
            return REFUSED
        await erase(relay, customer)
    say(f"Erased: {customer.id}. Its operations keep their amounts and ids.")
    return DONE


async def _known(relay: "Relay", customer_id: str) -> Customer | None:
    customer = await relay.customers.get(customer_id)
    if customer is None:
        complain(f"there is no customer {printable(customer_id)}")
    return customer


def _is_confirmed(customer: Customer) -> bool:
    """Says what would go, and asks."""
    called = f", called {printable(customer.reference)}" if customer.reference is not None else ""
    errors = Console(stderr=True, highlight=False)
    errors.print(f"{customer.id} of {printable(customer.principal)}{called}", markup=False)
    if customer.state is CustomerState.ACTIVE:
        errors.print("· it can't be charged any more", markup=False)
    return typer.confirm("Erase, for good, what is kept of this person?", err=True)


def _list_page(customers: Sequence[Customer]) -> RenderableType:
    if not customers:
        return Text("Nothing here: there is no such customer.")
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, leading=1)
    table.add_column("customer", overflow="fold", width=len("cus_") + 32)
    table.add_column("card", overflow="fold")
    table.add_column("state", overflow="fold")
    for customer in customers:
        named = [customer.reference, customer.label, f"on {customer.account}, by {customer.principal}"]
        lines = "\n".join(printable(line) for line in named if line is not None)
        card = [customer.method, customer.card_no_masked, customer.card_expiry]
        updated = rfc3339(customer.updated_at_ms)[: len("2026-11-21T10:00")].replace("T", " ")
        table.add_row(
            Text.assemble((customer.id, "bold"), "\n", lines),
            Text("\n".join(printable(fact) for fact in card if fact) or "-"),
            Text(f"{customer.state}\n{updated} UTC"),
        )
    return table


def _write_json(shown: object) -> None:
    sys.stdout.write(msgspec.json.format(msgspec.json.encode(shown)).decode() + "\n")


def _cell(value: object) -> Text:
    """Shows a value as it stands; what a terminal would obey, or rich take for markup, is shown and not done."""
    return Text("-" if value is None else printable(str(value)))
