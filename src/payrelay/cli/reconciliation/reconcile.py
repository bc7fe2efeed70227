"""The commands of the reconciliation: read statements, compare a day, close differences and days."""

from typing import Annotated

import typer

from payrelay.cli.reconciliation.closing import close_day, close_difference
from payrelay.cli.reconciliation.comparing import ask, run
from payrelay.cli.reconciliation.exporting import export
from payrelay.cli.reconciliation.importing import import_files
from payrelay.cli.reconciliation.options import Account, day_of
from payrelay.cli.session import read_settings, session
from payrelay.cli.terminal.declaring import Json, awaited, examples, group
from payrelay.cli.terminal.messages import NOT_FOUND, CommandError

app = group("reconcile", "Our books of a day beside the gateway's and the bank's.")

app.command(
    "import",
    epilog=examples(
        "payrelay reconcile import day.csv --profile payments --covers 2026-11-22",
        "payrelay reconcile import account.csv --profile bank",
    ),
)(import_files)
app.command(epilog=examples("payrelay reconcile ask --day 2026-11-22"))(ask)
app.command(epilog=examples("payrelay reconcile run --day 2026-11-22"))(run)


@app.command(epilog=examples("payrelay reconcile show", "payrelay reconcile show --day 2026-11-22"))
@awaited
async def show(
    *,
    day: Annotated[str | None, typer.Option(metavar="DAY", help="One day; all open differences without it.")] = None,
    account: Account = None,
    limit: Annotated[int, typer.Option(min=1, max=1000, help="Differences that are shown.")] = 100,
    as_json: Json = False,
) -> int:
    """Show a day, or all open differences; compares nothing."""
    from rich.console import Group

    from payrelay.cli.reconciliation.pages import closed_line, day_page, differences_page
    from payrelay.cli.terminal.pages import show_result
    from payrelay.flows.reconciliation.read import open_differences, show_day
    from payrelay.flows.reconciliation.scope import scope_of

    wanted = None if day is None else day_of(day)
    async with session(read_settings()) as relay:
        scope = scope_of(relay, account)
        if wanted is None:
            found = await open_differences(relay, scope, limit=limit)
            return show_result({"differences": found}, differences_page(found), as_json=as_json)
        view = await show_day(relay, scope, wanted)
        now_ms = relay.clock.now_ms()
    if view is None:
        raise CommandError(f"{wanted} was not compared yet: payrelay reconcile run --day {wanted}", NOT_FOUND)
    page = Group(closed_line(view), day_page(view.report, now_ms), differences_page(view.differences))
    return show_result(view, page, as_json=as_json)


app.command(
    epilog=examples(
        "payrelay reconcile export --days 2026-11-01..2026-11-30 > november.beancount",
        "payrelay reconcile export --days 2026-11-22 --format csv",
    )
)(export)
app.command("close-difference", epilog=examples('payrelay reconcile close-difference ID --reason "refunded by hand"'))(
    close_difference
)
app.command("close-day", epilog=examples('payrelay reconcile close-day --day 2026-11-22 --reason "month end" --yes'))(
    close_day
)
