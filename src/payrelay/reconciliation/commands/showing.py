"""The command that shows what days came to, and what is open."""

from typing import Annotated

import typer

from payrelay.cli.session import read_settings, session
from payrelay.cli.terminal.declaring import Json, awaited
from payrelay.cli.terminal.messages import NOT_FOUND, CommandError
from payrelay.reconciliation.commands.options import DAYS_HELP, Account, days_of


@awaited
async def show(
    *,
    days: Annotated[
        str | None,
        typer.Option("--day", "--days", metavar="DAYS", help=f"{DAYS_HELP} All open differences without it."),
    ] = None,
    account: Account = None,
    limit: Annotated[int, typer.Option(min=1, max=1000, help="Differences that are shown.")] = 100,
    as_json: Json = False,
) -> int:
    """Show days, or all open differences. It compares nothing."""
    from rich.console import Group

    from payrelay.cli.terminal.pages import show_result
    from payrelay.reconciliation.commands.pages import closed_line, day_page, days_page, differences_page
    from payrelay.reconciliation.flows.read import open_differences, show_day
    from payrelay.reconciliation.flows.read_pages import read_days
    from payrelay.reconciliation.flows.scope import scope_of

    wanted = None if days is None else days_of(days)
    async with session(read_settings()) as relay:
        scope = scope_of(relay, account)
        if wanted is None:
            found = await open_differences(relay, scope, limit=limit)
            return show_result({"differences": found}, differences_page(found), as_json=as_json)
        first, last = wanted
        if first != last:
            listed = await read_days(relay, scope, first, last)
            return show_result(listed, days_page(listed), as_json=as_json)
        view = await show_day(relay, scope, first)
        now_ms = relay.clock.now_ms()
    if view is None:
        raise CommandError(f"{first} was not compared yet: payrelay reconcile run --day {first}", NOT_FOUND)
    page = Group(closed_line(view), day_page(view.report, now_ms), differences_page(view.differences))
    return show_result(view, page, as_json=as_json)
