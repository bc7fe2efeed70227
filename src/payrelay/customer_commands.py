"""The commands for stored customers: list them, show one, erase one on request."""

import sys
from typing import Final

import msgspec
import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from payrelay.core.customers import Customer, State
from payrelay.core.explanations import printable
from payrelay.operations.approve_customer import customers_of
from payrelay.operations.erase_customer import erase
from payrelay.operations.find_operations import utc
from payrelay.operations.relay import Relay
from payrelay.operations.show_customer import CustomerView, view
from payrelay.operator_session import DONE, REFUSED, UNKNOWN, complain, session
from payrelay.settings import Settings
from payrelay.store.customers import Wanted
from payrelay.store.journal import Filter

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


async def run_list(settings: Settings, wanted: Wanted, *, limit: int, as_json: bool) -> int:
    """Lists customers of all principals, newest first; gives the exit code. Raises SettingsError, StoreError."""
    async with session(settings) as relay:
        customers = await customers_of(relay).list(wanted, before=None, limit=limit)
    if as_json:
        listed = _Listed(customers=[view(customer) for customer in customers])
        sys.stdout.write(msgspec.json.format(_encode(listed)).decode() + "\n")
        return DONE
    table = Table(box=None, pad_edge=False)
    for title in ("id", "state", "account", "principal", "reference", "card", "label", "updated"):
        table.add_column(title, overflow="fold")
    for customer in customers:
        table.add_row(*map(_cell, _line(customer)))
    Console(highlight=False).print(table)
    return DONE


async def run_show(settings: Settings, customer_id: str, *, as_json: bool) -> int:
    """Shows one customer and its newest operations; gives the exit code. Raises SettingsError, StoreError."""
    async with session(settings) as relay:
        customer = await _known(relay, customer_id)
        if customer is None:
            return UNKNOWN
        newest = await relay.journal.list(Filter(customer_id=customer.id), before=None, limit=OPERATIONS_SHOWN)
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
    customer = await customers_of(relay).get(customer_id)
    if customer is None:
        complain(f"there is no customer {printable(customer_id)}")
    return customer


def _is_confirmed(customer: Customer) -> bool:
    """Says what would go, and asks."""
    called = f", called {printable(customer.reference)}" if customer.reference is not None else ""
    errors = Console(stderr=True, highlight=False)
    errors.print(f"{customer.id} of {printable(customer.principal)}{called}", markup=False)
    if customer.state is State.ACTIVE:
        errors.print("· it can't be charged any more", markup=False)
    return typer.confirm("Erase, for good, what is kept of this person?", err=True)


def _line(customer: Customer) -> tuple[object, ...]:
    card = " ".join(fact for fact in (customer.method, customer.card_no_masked, customer.card_expiry) if fact)
    return (
        customer.id,
        customer.state,
        customer.account,
        customer.principal,
        customer.reference,
        card or None,
        customer.label,
        utc(customer.updated_at_ms),
    )


def _cell(value: object) -> Text:
    """Shows a value as it stands; what a terminal would obey, or rich take for markup, is shown and not done."""
    return Text("-" if value is None else printable(str(value)))
