"""The commands for checkouts: list them, show one. They ask no gateway."""

from typing import TYPE_CHECKING, Annotated

import msgspec
import typer

from payrelay.cli.lists.options import Account, Limit, Order, amount_text, named_facts
from payrelay.cli.session import read_settings, session
from payrelay.cli.terminal.declaring import Json, awaited, examples, group, state_help
from payrelay.cli.terminal.messages import require_found
from payrelay.core.checkouts.checkout import STATE_SENTENCES, Checkout, CheckoutFilter, CheckoutState
from payrelay.core.moments import spoken
from payrelay.core.money import amount_json

if TYPE_CHECKING:
    from payrelay.cli.terminal.pages import Cell

app = group("checkouts", "Checkouts: what customers were asked for.")

CheckoutId = Annotated[str, typer.Argument(metavar="ID", help="As `checkouts list` shows it.")]


@app.command("list", epilog=examples("payrelay checkouts list", "payrelay checkouts list --order A-1 --json"))
@awaited
async def list_checkouts(
    *,
    state: Annotated[CheckoutState | None, typer.Option(metavar="STATE", help=state_help(CheckoutState))] = None,
    account: Account = None,
    order: Order = None,
    limit: Limit = 50,
    as_json: Json = False,
) -> int:
    """List checkouts, newest first, as they are stored."""
    from payrelay.cli.terminal.pages import show_result, table
    from payrelay.flows.checkouts.show_checkout import view

    wanted = CheckoutFilter(account=account, order_id=order, state=state)
    async with session(read_settings()) as relay:
        checkouts = await relay.checkouts.list(wanted, before=None, limit=limit)
        shown = [await view(relay, each) for each in checkouts] if as_json else []
    empty = "Nothing here: there is no such checkout."
    titles = ("checkout", "asked for", "state")
    page = table(titles, map(_row, checkouts), ids="checkout", empty=empty, leading=1)
    return show_result({"checkouts": shown}, page, as_json=as_json)


@app.command("show", epilog=examples("payrelay checkouts show ID", "payrelay checkouts show ID --json"))
@awaited
async def show_checkout(checkout_id: CheckoutId, *, as_json: Json = False) -> int:
    """Show what is stored of a checkout, without the customer's data."""
    from payrelay.cli.terminal.pages import facts, show_result
    from payrelay.flows.checkouts.show_checkout import view

    async with session(read_settings()) as relay:
        checkout = require_found(await relay.checkouts.get(checkout_id), "checkout", checkout_id)
        shown = await view(relay, checkout)
    members = msgspec.structs.asdict(shown) | {"amount": _amount(checkout), "principal": checkout.principal}
    data = {"checkout": shown, "principal": checkout.principal}
    return show_result(data, facts(named_facts(members)), as_json=as_json)


def _row(checkout: Checkout) -> "tuple[Cell, ...]":
    from payrelay.cli.terminal.pages import entry

    made = [
        f"{noun} {id_}"
        for noun, id_ in (
            ("payment", checkout.payment_id),
            ("subscription", checkout.subscription_id),
            ("customer", checkout.customer_id),
        )
        if id_ is not None
    ]
    updated = f"{spoken(checkout.updated_at_ms)[: len('2026-11-21 10:00')]} UTC"
    owner = f"on {checkout.account}, by {checkout.principal}"
    state = [checkout.state, STATE_SENTENCES[checkout.state], *made, updated]
    return entry(checkout.id, f"order {checkout.order_id}", owner), [checkout.kind, _amount(checkout)], state


def _amount(checkout: Checkout) -> str:
    return amount_text(checkout.currency, amount_json(checkout.amount_minor), "without an amount")
