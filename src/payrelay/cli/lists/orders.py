"""The command for orders: show what the money of one is. It asks no gateway."""

from typing import TYPE_CHECKING, Annotated

import typer

from payrelay.cli.lists.money import facts_of, told_lines
from payrelay.cli.lists.options import Account
from payrelay.cli.session import read_settings, session
from payrelay.cli.terminal.declaring import Json, awaited, examples, group
from payrelay.cli.terminal.messages import require_found
from payrelay.core.moments import rfc3339
from payrelay.core.orders.sentences import headline

if TYPE_CHECKING:
    from rich.console import RenderableType

    from payrelay.flows.orders.known_orders import KnownOrder

app = group("orders", "Orders: what was paid, and what is left.")

OrderId = Annotated[str, typer.Argument(metavar="ORDER", help="The order's id, as the client named it.")]


@app.command("show", epilog=examples("payrelay orders show A-1", "payrelay orders show A-1 --account shop --json"))
@awaited
async def show_order(order_id: OrderId, *, account: Account = None, as_json: Json = False) -> int:
    """Show the balance of an order, and of each of its payments."""
    from rich.console import Group

    from payrelay.cli.terminal.pages import show_result
    from payrelay.flows.orders.known_orders import find_known_orders

    async with session(read_settings()) as relay:
        found = require_found(await find_known_orders(relay, order_id, account=account), "order", order_id)
    page = Group(*(part for each in found for part in _page(each)))
    return show_result({"orders": [each.view for each in found]}, page, as_json=as_json)


def _page(order: "KnownOrder") -> "list[RenderableType]":
    from payrelay.cli.terminal.pages import cell, facts

    view, balance = order.view, order.money.balance
    parts: list[RenderableType] = [
        facts([("order", view.order_id), ("account", view.account)]),
        cell(["", headline(balance, lambda at_ms: rfc3339(at_ms, "seconds")), ""]),
    ]
    for each in order.money.payments:
        parts += [facts([("payment", each.balance.payment_id or "its number isn't known"), *facts_of(each)]), cell("")]
    of_payments = {doubt for each in balance.payments for doubt in each.doubts}
    rest = [told for doubt, told in zip(balance.doubts, order.money.doubts, strict=True) if doubt not in of_payments]
    return [*parts, *([cell(["What isn't certain:", *told_lines(rest), ""])] if rest else [])]
