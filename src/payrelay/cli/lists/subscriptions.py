"""The commands for subscriptions: list them, show one, as they were last notified or read. They ask no gateway."""

from typing import TYPE_CHECKING, Annotated

import msgspec
import typer

from payrelay.cli.lists.options import Account, Limit, Order, amount_text, named_facts
from payrelay.cli.session import read_settings, session
from payrelay.cli.terminal.declaring import Json, awaited, examples, group, state_help
from payrelay.cli.terminal.messages import require_found
from payrelay.core.subscriptions.subscription import SubscriptionState

if TYPE_CHECKING:
    from payrelay.cli.terminal.pages import Cell
    from payrelay.flows.subscriptions.list_for_operator import StoredSubscription
    from payrelay.flows.subscriptions.show_subscription_states import InstallmentView

app = group("subscriptions", "Subscriptions: what is stored of them.")

SubscriptionId = Annotated[str, typer.Argument(metavar="ID", help="The gateway's number, as the list shows it.")]


@app.command("list", epilog=examples("payrelay subscriptions list", "payrelay subscriptions list --order A-1 --json"))
@awaited
async def list_subscriptions(
    *,
    state: Annotated[
        SubscriptionState | None, typer.Option(metavar="STATE", help=state_help(SubscriptionState))
    ] = None,
    account: Account = None,
    order: Order = None,
    limit: Limit = 50,
    as_json: Json = False,
) -> int:
    """List the subscriptions that are known here, by their numbers."""
    from payrelay.cli.terminal.pages import show_result, table
    from payrelay.flows.subscriptions.list_for_operator import list_stored

    async with session(read_settings()) as relay:
        found = await list_stored(relay, account=account, order_id=order, state=state, limit=limit)
    empty = "Nothing here: no such subscription is known; GET subscriptions of the API asks the gateway."
    page = table(("subscription", "installments", "state"), map(_row, found), empty=empty, leading=1)
    return show_result({"subscriptions": found}, page, as_json=as_json)


@app.command("show", epilog=examples("payrelay subscriptions show ID", "payrelay subscriptions show ID --json"))
@awaited
async def show_subscription(subscription_id: SubscriptionId, *, as_json: Json = False) -> int:
    """Show what is stored of a subscription."""
    from rich.console import Group

    from payrelay.cli.terminal.pages import facts, show_result
    from payrelay.flows.subscriptions.list_for_operator import stored_of_id

    async with session(read_settings()) as relay:
        found = require_found(await stored_of_id(relay, subscription_id), "subscription", subscription_id)
    return show_result({"subscriptions": found}, Group(*(facts(_facts(each)) for each in found)), as_json=as_json)


def _row(subscription: "StoredSubscription") -> "tuple[Cell, ...]":
    from payrelay.cli.terminal.pages import entry

    order = None if subscription.order_id is None else f"order {subscription.order_id}"
    by = "" if subscription.principal is None else f", by {subscription.principal}"
    installments = [
        f"{subscription.installments_paid} paid of {amount_text(subscription.currency, subscription.amount)}"
    ]
    installments += [] if subscription.next_on is None else [f"next on {subscription.next_on}"]
    state = [subscription.state, subscription.explanation, f"as of {subscription.as_of}"]
    return entry(subscription.subscription_id, order, f"on {subscription.account}{by}"), installments, state


def _facts(subscription: "StoredSubscription") -> list[tuple[str, str]]:
    members = msgspec.structs.asdict(subscription) | {
        "amount": amount_text(subscription.currency, subscription.amount),
        "last_paid": _installment(subscription, subscription.last_paid),
        "last_failure": _installment(subscription, subscription.last_failure),
    }
    return named_facts(members)


def _installment(subscription: "StoredSubscription", installment: "InstallmentView | None") -> str | None:
    if installment is None:
        return None
    amount = amount_text(subscription.currency, installment.amount)
    return f"{amount}, payment {installment.payment_id or 'not named'}, {installment.at}"
