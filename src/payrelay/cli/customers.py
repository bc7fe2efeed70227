"""The commands for stored customers: list them, show one, erase one on request."""

import sys
from collections.abc import Sequence
from typing import Final

import msgspec
import typer
from rich import box
from rich.console import Console, RenderableType
from rich.table import Table
from rich.text import Text

from payrelay.cli.session import DONE, REFUSED, UNKNOWN, complain, session
from payrelay.core.customers.customer import Customer, CustomerFilter, CustomerState
from payrelay.core.moments import rfc3339
from payrelay.core.payments.explanations import printable
from payrelay.core.payments.operation import OperationFilter
from payrelay.flows.customers.erase_customer import erase
from payrelay.flows.customers.show_customer import CustomerView, view
from payrelay.flows.relay import Relay
from payrelay.settings import Settings

OPERATIONS_SHOWN: Final = 10
"""The newest; a list of all of a customer's is at the API."""

_encode = msgspec.json.Encoder().encode


class _Listed(msgspec.Struct, frozen=True, kw_only=True):
    """What a list prints for programs."""

    customers: list[CustomerView]


class _Shown(msgspec.Struct, frozen=True, kw_only=True):
    """What one prints for programs."""

    customer: CustomerView
    operation_ids: list[str]


async def run_list(settings: Settings, wanted: CustomerFilter, *, limit: int, as_json: bool) -> int:
    """Lists customers of all principals, newest first; gives the exit code. Raises SettingsError, StoreError."""
    async with session(settings) as relay:
        customers = await relay.customers.list(wanted, before=None, limit=limit)
    if as_json:
        listed = _Listed(customers=[view(customer) for customer in customers])
        sys.stdout.write(msgspec.json.format(_encode(listed)).decode() + "\n")
        return DONE
    Console(highlight=False).print(_list_page(customers))
    return DONE


async def run_show(settings: Settings, customer_id: str, *, as_json: bool) -> int:
    """Shows one customer and its newest operations; gives the exit code. Raises SettingsError, StoreError."""
    async with session(settings) as relay:
        customer = await _known(relay, customer_id)
        if customer is None:
            return UNKNOWN
        newest = await relay.journal.list(OperationFilter(customer_id=customer.id), before=None, limit=OPERATIONS_SHOWN)
    shown = _Shown(customer=view(customer), operation_ids=[operation.id for operation in newest])
    if as_json:
        sys.stdout.write(msgspec.json.format(_encode(shown)).decode() + "\n")
        return DONE
    table = Table(box=None, pad_edge=False, show_header=False)
    for name, value in msgspec.structs.asdict(shown.customer).items():
        table.add_row(name, _cell(value))
    table.add_row("newest operations", "\n".join(shown.operation_ids) or "-")
    Console(highlight=False).print(table)
    return DONE


async def run_erase(settings: Settings, customer_id: str, *, is_sure: bool) -> int:
    """Erases a customer, whoever's it is, after asking back on a terminal; gives the exit code.

    Raises SettingsError, StoreError.
    """
    async with session(settings) as relay:
        customer = await _known(relay, customer_id)
        if customer is None:
            return UNKNOWN
        if not is_sure and sys.stdin.isatty() and not _is_confirmed(customer):
            complain("nothing was erased")
            return REFUSED
        await erase(relay, customer)
    sys.stderr.write(f"Erased: {customer.id}. Its operations keep their amounts and ids.\n")
    return DONE


async def _known(relay: Relay, customer_id: str) -> Customer | None:
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


def _cell(value: object) -> Text:
    """Shows a value as it stands; what a terminal would obey, or rich take for markup, is shown and not done."""
    return Text("-" if value is None else printable(str(value)))
