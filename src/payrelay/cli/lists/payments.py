"""The commands for payments: list those that are known here, show one, refund one. Lists ask no gateway."""

from typing import TYPE_CHECKING, Annotated

import typer

from payrelay.cli.lists.money import facts_of, figures_of
from payrelay.cli.lists.options import Account, Limit, Order, amount_text
from payrelay.cli.refunds import refund_payment
from payrelay.cli.session import read_settings, session
from payrelay.cli.terminal.declaring import Json, awaited, examples, group, state_help
from payrelay.cli.terminal.messages import require_found
from payrelay.core.payments.payment import PaymentStatus

if TYPE_CHECKING:
    from payrelay.cli.terminal.pages import Cell
    from payrelay.flows.orders.known_payments import KnownPaymentView, ListedPayment

app = group("payments", "Payments: those that are known here.")

PaymentId = Annotated[str, typer.Argument(metavar="ID", help="The gateway's number, as the list shows it.")]


@app.command("list", epilog=examples("payrelay payments list", "payrelay payments list --order A-1 --json"))
@awaited
async def list_payments(
    *,
    state: Annotated[
        PaymentStatus | None,
        typer.Option(metavar="STATE", help=f"{state_help(PaymentStatus)[:-1]}, as last read at the gateway."),
    ] = None,
    account: Account = None,
    order: Order = None,
    limit: Limit = 50,
    as_json: Json = False,
) -> int:
    """List the payments that are known here, newest first."""
    from payrelay.cli.terminal.pages import show_result, table
    from payrelay.flows.orders.known_payments import list_known_payments

    async with session(read_settings()) as relay:
        found = await list_known_payments(relay, account=account, order_id=order, status=state, limit=limit)
    empty = "Nothing here: no such payment is known; GET payments/{order_id} of the API asks the gateway."
    page = table(("payment", "belongs to", "state"), map(_row, found), empty=empty, leading=1)
    return show_result({"payments": [each.view for each in found]}, page, as_json=as_json)


@app.command("show", epilog=examples("payrelay payments show ID", "payrelay payments show ID --json"))
@awaited
async def show_payment(payment_id: PaymentId, *, as_json: Json = False) -> int:
    """Show what is known here of one payment."""
    from rich.console import Group

    from payrelay.cli.terminal.pages import facts, show_result
    from payrelay.flows.orders.known_payments import list_known_payments

    async with session(read_settings()) as relay:
        found = require_found(await list_known_payments(relay, payment_id=payment_id, limit=50), "payment", payment_id)
    page = Group(*(facts(_facts(each)) for each in found))
    return show_result({"payments": [each.view for each in found]}, page, as_json=as_json)


app.command(
    "refund",
    epilog=examples(
        'payrelay payments refund ID --reason "sent back"',
        'payrelay payments refund ID --amount 250 --reason "a broken cup"',
        'payrelay payments refund ID --reason "the bank gave it to us again" --insist',
    ),
)(refund_payment)


def _row(payment: "ListedPayment") -> "tuple[Cell, ...]":
    from payrelay.cli.terminal.pages import entry

    view, money = payment.view, payment.money
    order = None if view.order_id is None else f"order {view.order_id}"
    account = None if view.account is None else f"on {view.account}"
    figures = [] if money is None else [" ".join(each) for each in figures_of(money)]
    return entry(view.payment_id, order, *figures, account), _owners(view) or "-", _state(view)


def _facts(payment: "ListedPayment") -> "list[tuple[str, Cell]]":
    view, money = payment.view, payment.money
    currency = None if money is None else money.balance.currency
    asked = [f"{each.operation_id}, {each.state}, {amount_text(currency, each.amount, 'all')}" for each in view.refunds]
    return [
        ("payment", view.payment_id),
        ("account", view.account or "-"),
        ("order", view.order_id or "-"),
        *facts_of(money),
        ("state", _state(view)),
        ("belongs to", _owners(view) or "not known"),
        ("refunds asked for here", asked or "-"),
    ]


def _owners(payment: "KnownPaymentView") -> list[str]:
    return [f"{each.kind} {each.id}" + (f", {each.state}" if each.state else "") for each in payment.belongs_to]


def _state(payment: "KnownPaymentView") -> list[str]:
    lines = ["not read at the gateway yet"] if payment.state is None else [payment.state, f"as of {payment.as_of}"]
    taken_back = payment.charged_back_at
    return lines if taken_back is None else [*lines, f"charged back, noted {taken_back}"]
