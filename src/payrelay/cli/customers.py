"""The commands for stored customers: list them, show one, erase one on request."""

from typing import TYPE_CHECKING, Annotated, Final

import msgspec
import typer

from payrelay.cli.session import read_settings, session
from payrelay.cli.terminal.declaring import Json, Sure, awaited, examples, group, state_help
from payrelay.cli.terminal.messages import (
    DONE,
    REFUSED,
    CommandError,
    is_confirmed,
    require_answerable,
    require_found,
    say,
)
from payrelay.core.customers.customer import Customer, CustomerFilter, CustomerState
from payrelay.core.moments import spoken
from payrelay.core.payments.operation import OperationFilter

if TYPE_CHECKING:
    from payrelay.cli.terminal.pages import Cell

CUSTOMERS_MAX: Final = 1_000
"""Customers that are listed."""
OPERATIONS_SHOWN: Final = 10
"""The newest; the API lists all of a customer's operations."""

app = group("customers", "Stored customers: who can be charged by a handle.")

CustomerId = Annotated[str, typer.Argument(metavar="ID", help="As `customers list` shows it.")]


@app.command("list", epilog=examples("payrelay customers list", "payrelay customers list --reference person-7 --json"))
@awaited
async def list_customers(
    *,
    principal: Annotated[str | None, typer.Option(metavar="NAME", help="Only those of this principal.")] = None,
    account: Annotated[
        str | None, typer.Option(metavar="ACCOUNT", help="Only those that were approved on this account.")
    ] = None,
    reference: Annotated[
        str | None, typer.Option(metavar="TEXT", help="Only those with this reference of the merchant.")
    ] = None,
    state: Annotated[CustomerState | None, typer.Option(metavar="STATE", help=state_help(CustomerState))] = None,
    limit: Annotated[int, typer.Option(metavar="COUNT", help="How many, newest first.", min=1, max=CUSTOMERS_MAX)] = 50,
    as_json: Json = False,
) -> int:
    """List stored customers, newest first, without their tokens."""
    from payrelay.cli.terminal.pages import show_result, table
    from payrelay.flows.customers.show_customer import view

    async with session(read_settings()) as relay:
        stored = None if principal is None else await relay.access.principals.stored_name(principal)
        wanted = CustomerFilter(principal=stored, account=account, reference=reference, state=state)
        customers = await relay.customers.list(wanted, before=None, limit=limit)
    empty = "Nothing here: there is no such customer."
    page = table(("customer", "card", "state"), map(_row, customers), ids="customer", empty=empty, leading=1)
    return show_result({"customers": [*map(view, customers)]}, page, as_json=as_json)


@app.command("show", epilog=examples("payrelay customers show ID", "payrelay customers show ID --json"))
@awaited
async def show_customer(customer_id: CustomerId, *, as_json: Json = False) -> int:
    """Show what is known of a stored customer, and the newest operations."""
    from payrelay.cli.terminal.pages import facts, show_result
    from payrelay.flows.customers.show_customer import view

    async with session(read_settings()) as relay:
        customer = require_found(await relay.customers.get(customer_id), "customer", customer_id)
        newest = await relay.journal.list(OperationFilter(customer_id=customer.id), before=None, limit=OPERATIONS_SHOWN)
    shown, operation_ids = view(customer), [operation.id for operation in newest]
    known = [(name, "-" if value is None else str(value)) for name, value in msgspec.structs.asdict(shown).items()]
    page = facts([*known, ("newest operations", operation_ids or "-")])
    return show_result({"customer": shown, "operation_ids": operation_ids}, page, as_json=as_json)


@app.command("erase", epilog=examples("payrelay customers erase ID"))
@awaited
async def erase_customer(customer_id: CustomerId, *, yes: Sure = False) -> int:
    """Erase what is stored of a customer; amounts and ids stay."""
    from payrelay.flows.customers.erase_customer import erase

    require_answerable(is_sure=yes, undone="nothing was erased")
    async with session(read_settings()) as relay:
        customer = require_found(await relay.customers.left_of(customer_id), "customer", customer_id)
        customer = await relay.customers.get(customer_id) or customer
        if not yes and not _is_erasure_confirmed(customer):
            raise CommandError("nothing was erased", REFUSED)
        erasure = await erase(relay, customer)
    say(f"Erased: {customer.id}. Its operations keep their amounts and ids.")
    say("Destroyed: the keys of what was sealed of it, so that no copy of that can be opened.")
    if erasure.files_cleared:
        say("The database's tables are cleared of these keys. Backups still have them, and so has PostgreSQL's log.")
    else:
        say(
            "The database's tables are not cleared of these keys yet, because something else uses them. The server"
            " tries again every minute; so does this command, when it is repeated."
        )
    return DONE


def _is_erasure_confirmed(customer: Customer) -> bool:
    """Says what would be erased, and asks."""
    called = f", called {customer.reference}" if customer.reference is not None else ""
    say(f"{customer.id} of {customer.principal}{called}")
    if customer.state is CustomerState.ACTIVE:
        say("· it can't be charged any more")
    return is_confirmed("Erase, for good, what is stored of this customer?")


def _row(customer: Customer) -> "tuple[Cell, ...]":
    from payrelay.cli.terminal.pages import entry

    owner = f"on {customer.account}, by {customer.principal}"
    card = [fact for fact in (customer.method, customer.card_no_masked, customer.card_expiry) if fact]
    updated = f"{spoken(customer.updated_at_ms)[: len('2026-11-21 10:00')]} UTC"
    return entry(customer.id, customer.reference, customer.label, owner), card or "-", [customer.state, updated]
