"""The commands for checkouts: list them, show one, close the page of one. Only the last one asks the gateway."""

from typing import TYPE_CHECKING, Annotated, Final

import msgspec
import typer

from payrelay.cli.lists.options import Account, Limit, Order, amount_text, named_facts
from payrelay.cli.session import operator_from, read_settings, reason_from, session
from payrelay.cli.terminal.declaring import By, Json, Reason, Sure, awaited, examples, group, state_help
from payrelay.cli.terminal.messages import (
    DONE,
    FAULTY,
    REFUSED,
    CommandError,
    is_confirmed,
    require_answerable,
    require_found,
    say,
    show,
)
from payrelay.core.checkouts.checkout import Checkout, CheckoutFilter, CheckoutState
from payrelay.core.moments import spoken
from payrelay.core.money import amount_json
from payrelay.errors import Refusal

if TYPE_CHECKING:
    from payrelay.cli.terminal.pages import Cell

app = group("checkouts", "Checkouts: what customers were asked for.")

UNCLOSED: Final = "nothing was closed"

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


@app.command("close", epilog=examples('payrelay checkouts close ID --reason "the cart was changed"'))
@awaited
async def close_checkout(checkout_id: CheckoutId, *, reason: Reason = "", by: By = None, yes: Sure = False) -> int:
    """Close the page of a checkout, so that its order is free.

    A form that is out can't be taken back: the command says whether the customer may still pay by it.
    """
    from payrelay.flows.checkouts.close_checkout import close_by_command

    settings = read_settings()
    require_answerable(is_sure=yes, undone=UNCLOSED)
    who, why = operator_from(by), reason_from(reason)
    async with session(settings) as relay:
        checkout = require_found(await relay.checkouts.get(checkout_id), "checkout", checkout_id)
        if not yes and not is_confirmed(f"Close the page of order {checkout.order_id}, for good?"):
            raise CommandError(UNCLOSED, REFUSED)
        try:
            closed = await close_by_command(relay, checkout, by=who, reason=why)
        except Refusal as error:
            raise CommandError(f"{checkout_id}: {error}", FAULTY) from None
    if closed.may_still_be_paid:
        say("A form of it is out, and can't be taken back: the customer may still pay by it.")
    show(" ".join(filter(None, (closed.id, closed.state, closed.reason))))
    return DONE


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
    state = [checkout.state, checkout.sentence, *made, updated]
    return entry(checkout.id, f"order {checkout.order_id}", owner), [checkout.kind, _amount(checkout)], state


def _amount(checkout: Checkout) -> str:
    return amount_text(checkout.currency, amount_json(checkout.amount_minor), "without an amount")
