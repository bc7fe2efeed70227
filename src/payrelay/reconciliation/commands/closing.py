"""The commands that close differences and days."""

from typing import Annotated

import typer

from payrelay.cli.session import read_settings, reason_from, session
from payrelay.cli.terminal.declaring import By, Reason, Sure, awaited
from payrelay.cli.terminal.messages import DONE, REFUSED, CommandError, is_confirmed, require_answerable, say
from payrelay.reconciliation.commands.options import Account, DaysOption, actor_from, days_of, differences_in


@awaited
async def close_difference(
    difference_id: Annotated[str, typer.Argument(metavar="ID", help="As `reconcile show` prints it.")],
    *,
    reason: Reason = "",
    account: Account = None,
    by: By = None,
) -> int:
    """Close a difference, in your name and with a reason. It is open again only where it says something else."""
    from payrelay.reconciliation.flows.close import close_difference as close
    from payrelay.reconciliation.flows.scope import scope_of

    why, actor = reason_from(reason), actor_from(by)
    async with session(read_settings()) as relay:
        closed = await close(relay, scope_of(relay, account), difference_id, actor, why)
    say(f"{closed.id} is closed: {closed.movement} {closed.identity} of {closed.day}.")
    return DONE


@awaited
async def close_day(
    *, days: DaysOption, reason: Reason = "", account: Account = None, by: By = None, yes: Sure = False
) -> int:
    """Close days for good that come to what was shown.

    One after the other is compared anew. Where one comes to something else, that is named, and it and those behind it
    stay open. A closed day can't be opened again: what comes later is a correction in a later day.
    """
    from payrelay.reconciliation.flows.close import close_days
    from payrelay.reconciliation.flows.scope import scope_of

    first, last = days_of(days)
    why, actor = reason_from(reason), actor_from(by)
    what, undone = (
        (f"{first}", "the day was not closed") if first == last else (f"{first} to {last}", "nothing was closed")
    )
    require_answerable(is_sure=yes, undone=undone)
    if not yes and not is_confirmed(f"Close {what} for good, in your name?"):
        raise CommandError(undone, REFUSED)
    async with session(read_settings()) as relay:
        async for day, report in close_days(relay, scope_of(relay, account), (first, last), actor, why):
            left = 0 if report is None else differences_in(report)
            state = "was closed before" if report is None else "is closed"
            say(f"{day} {state}" + (f", with {left} differences that it was closed with." if left else "."))
    return DONE
