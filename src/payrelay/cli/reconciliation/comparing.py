"""The commands that ask the gateway for days, compare them, and show what they came to."""

from typing import TYPE_CHECKING, Annotated

import typer

from payrelay.cli.reconciliation.options import DAYS_HELP, Account, DaysOption, days_of, differences_in
from payrelay.cli.session import read_settings, session
from payrelay.cli.terminal.declaring import Json, awaited
from payrelay.cli.terminal.messages import DONE, FAULTY, NOT_FOUND, UNCOVERED, CommandError, say

if TYPE_CHECKING:
    from payrelay.core.reconciliation.days import DayReport


@awaited
async def run(*, days: DaysOption, account: Account = None, as_json: Json = False) -> int:
    """Compare days, and tell what they came to.

    It may be repeated, and finds the same while nothing else was read. Of several days the figures are shown. A day
    that was compared stays so where the command is interrupted. Exit codes: 0 where all agrees, 1 with differences, 3
    where none was found and not everything can be known.
    """
    from payrelay.cli.reconciliation.pages import day_page, days_page
    from payrelay.cli.terminal.pages import show_result
    from payrelay.core.reconciliation.entries import days_between
    from payrelay.flows.reconciliation.read_pages import read_days
    from payrelay.flows.reconciliation.run_day import run_day
    from payrelay.flows.reconciliation.scope import scope_of

    first, last = days_of(days)
    codes = []
    async with session(read_settings()) as relay:
        scope = scope_of(relay, account)
        for day in days_between(first, last):
            report = await run_day(relay, scope, day)
            codes.append(_code(report))
            if first == last:
                show_result(report, day_page(report, relay.clock.now_ms()), as_json=as_json)
                return codes[0]
            say(f"{day} is compared: {differences_in(report) or 'no'} differences.")
        view = await read_days(relay, scope, first, last)
    show_result(view, days_page(view), as_json=as_json)
    return FAULTY if FAULTY in codes else max(codes)


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
    """Show a day, the figures of several, or all open differences; compares nothing."""
    from rich.console import Group

    from payrelay.cli.reconciliation.pages import closed_line, day_page, days_page, differences_page
    from payrelay.cli.terminal.pages import show_result
    from payrelay.flows.reconciliation.read import open_differences, show_day
    from payrelay.flows.reconciliation.read_pages import read_days
    from payrelay.flows.reconciliation.scope import scope_of

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


@awaited
async def ask(*, days: DaysOption, account: Account = None) -> int:
    """Ask the gateway for orders and subscriptions of days.

    Each takes a search. Charges and refunds go first. It may be
    interrupted and begun again: it goes on where it was.
    """
    import asyncio

    from payrelay.core.reconciliation.entries import days_between
    from payrelay.flows.reconciliation.ask_gateway import ask_gateway
    from payrelay.flows.reconciliation.scope import scope_of

    first, last = days_of(days)
    is_whole = True
    async with session(read_settings()) as relay:
        scope = scope_of(relay, account)
        for day in days_between(first, last):
            asked = await ask_gateway(relay, scope, day, pause=asyncio.sleep)
            is_whole = is_whole and not (asked.failed or asked.unproved)
            of_day = "" if first == last else f"{day}: "
            say(f"{of_day}{asked.asked} were searched for, {asked.known} had been before, {asked.failed} could not be.")
            if asked.unproved:
                say(
                    f"{asked.unproved} had an empty search, which may be one that doesn't work: of these it can't be"
                    " known."
                )
            if asked.is_ended_early:
                say("The gateway, or its budget, gave no answer any more: begin again later.")
                break
    return DONE if is_whole else UNCOVERED


def _code(report: "DayReport") -> int:
    from payrelay.core.reconciliation.verdicts import BooksVerdict

    if differences_in(report):
        return FAULTY
    return (
        UNCOVERED if report.unseen or report.count(BooksVerdict.UNKNOWABLE) or report.count(BooksVerdict.OPEN) else DONE
    )
