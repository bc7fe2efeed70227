"""The commands that ask the gateway for days, and compare them."""

from payrelay.cli.session import read_settings, session
from payrelay.cli.terminal.declaring import Json, awaited
from payrelay.cli.terminal.messages import DONE, FAULTY, UNCOVERED, say
from payrelay.reconciliation.commands.options import Account, DaysOption, code_of, days_of, differences_in


@awaited
async def run(*, days: DaysOption, account: Account = None, as_json: Json = False) -> int:
    """Compare days, and tell what they came to.

    It may be repeated, and finds the same while nothing else was read. Of several days the figures are shown, up to
    today. Each day is stored when it is compared, also where the command is interrupted then. Exit codes: 0 where all
    agrees, 1 with differences, 3 where none was found and not everything can be known.
    """
    from payrelay.cli.terminal.pages import show_result
    from payrelay.reconciliation.commands.pages import day_page, days_page
    from payrelay.reconciliation.flows.read_pages import read_days
    from payrelay.reconciliation.flows.run_day import run_day
    from payrelay.reconciliation.flows.scope import scope_of
    from payrelay.reconciliation.rules.entries import days_between

    first, last = days_of(days)
    codes = []
    async with session(read_settings()) as relay:
        scope = scope_of(relay, account)
        today = scope.zone.day(relay.clock.now_ms())
        if first <= today < last:
            say(f"{today} is today, in {scope.zone.name}; the days behind it have not begun.")
            codes.append(UNCOVERED)
        for day in days_between(first, min(last, max(first, today))):
            report = await run_day(relay, scope, day)
            codes.append(code_of(report))
            if first == last:
                show_result(report, day_page(report, relay.clock.now_ms()), as_json=as_json)
                return codes[0]
            say(f"{day} is compared: {differences_in(report) or 'no'} differences.")
        view = await read_days(relay, scope, first, last)
    show_result(view, days_page(view), as_json=as_json)
    return FAULTY if FAULTY in codes else max(codes)


@awaited
async def ask(*, days: DaysOption, account: Account = None) -> int:
    """Ask the gateway for orders and subscriptions of days.

    Each takes a search. Charges and refunds go first. It may be
    interrupted and begun again: it goes on where it was.
    """
    import asyncio

    from payrelay.reconciliation.flows.ask_gateway import ask_gateway
    from payrelay.reconciliation.flows.scope import scope_of
    from payrelay.reconciliation.rules.entries import days_between

    first, last = days_of(days)
    is_whole = True
    async with session(read_settings()) as relay:
        scope = scope_of(relay, account)
        for day in days_between(first, last):
            asked = await ask_gateway(relay, scope, day, pause=asyncio.sleep)
            is_whole = is_whole and not (asked.failed or asked.unproved or asked.unreadable)
            of_day = "" if first == last else f"{day}: "
            say(f"{of_day}{asked.asked} were searched for, {asked.known} had been before, {asked.failed} could not be.")
            if asked.unproved:
                say(
                    f"{asked.unproved} had an empty search, which may be one that doesn't work: of these it can't be"
                    " known."
                )
            if asked.unreadable:
                say(
                    f"{asked.unreadable} showed a payment whose amount or date can't be read: of these it can't be"
                    " known what isn't there."
                )
            if asked.is_ended_early:
                say("The gateway, or its budget, gave no answer any more: begin again later.")
                break
    return DONE if is_whole else UNCOVERED
