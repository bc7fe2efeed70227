"""The commands that ask the gateway for a day, and compare it."""

from typing import TYPE_CHECKING

from payrelay.cli.reconciliation.options import Account, DayOption, day_of, differences_in
from payrelay.cli.session import read_settings, session
from payrelay.cli.terminal.declaring import Json, awaited
from payrelay.cli.terminal.messages import DONE, FAULTY, UNCOVERED, say

if TYPE_CHECKING:
    from payrelay.core.reconciliation.days import DayReport


@awaited
async def run(*, day: DayOption, account: Account = None, as_json: Json = False) -> int:
    """Compare one day, and tell what it came to.

    It may be repeated, and finds the same while nothing else was read. Exit codes: 0 where all agrees, 1 with
    differences, 3 where none was found and not everything can be known.
    """
    from payrelay.cli.reconciliation.pages import day_page
    from payrelay.cli.terminal.pages import show_result
    from payrelay.flows.reconciliation.run_day import run_day
    from payrelay.flows.reconciliation.scope import scope_of

    wanted = day_of(day)
    async with session(read_settings()) as relay:
        report = await run_day(relay, scope_of(relay, account), wanted)
        now_ms = relay.clock.now_ms()
    show_result(report, day_page(report, now_ms), as_json=as_json)
    return _code(report)


@awaited
async def ask(*, day: DayOption, account: Account = None) -> int:
    """Ask the gateway for orders and subscriptions of a day.

    Each takes a search. Charges and refunds go first. It may be
    interrupted and begun again: it goes on where it was.
    """
    import asyncio

    from payrelay.flows.reconciliation.ask_gateway import ask_gateway
    from payrelay.flows.reconciliation.scope import scope_of

    wanted = day_of(day)
    async with session(read_settings()) as relay:
        asked = await ask_gateway(relay, scope_of(relay, account), wanted, pause=asyncio.sleep)
    say(f"{asked.asked} were searched for, {asked.known} had been before, {asked.failed} could not be.")
    if asked.unproved:
        say(f"{asked.unproved} had an empty search, which may be one that doesn't work: of these it can't be known.")
    if asked.is_ended_early:
        say("The gateway, or its budget, gave no answer any more: begin again later.")
    return UNCOVERED if asked.failed or asked.unproved else DONE


def _code(report: "DayReport") -> int:
    from payrelay.core.reconciliation.verdicts import BooksVerdict

    if differences_in(report):
        return FAULTY
    return (
        UNCOVERED if report.unseen or report.count(BooksVerdict.UNKNOWABLE) or report.count(BooksVerdict.OPEN) else DONE
    )
