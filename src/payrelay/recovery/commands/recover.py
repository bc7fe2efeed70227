"""The commands for a recovery: begin it, see where it stands, decide about what is held, end it."""

from typing import Annotated, Final

import typer

from payrelay.cli.session import operator_from, read_settings, session
from payrelay.cli.terminal.declaring import By, Json, Sure, awaited, examples, group
from payrelay.cli.terminal.messages import (
    DONE,
    NOT_FOUND,
    REFUSED,
    CommandError,
    is_confirmed,
    require_answerable,
    say,
    show,
    show_json,
)
from payrelay.clock import Clock
from payrelay.core.moments import moment_of, spoken
from payrelay.recovery.commands.decisions import add_decisions
from payrelay.recovery.commands.pages import held_in_words, status_json, status_lines

app = group("recover", "Recover from commits that the database has lost.")

UNDONE: Final = "no recovery was begun"
NO_MARK: Final = (
    "no mark tells since when commits may be lost: give --lost-since, the time of the last commit that the database"
    " surely has"
)
LATER: Final = (
    "The newest entry of this copy tells of an earlier time, {} UTC. Where anything was committed since then, a repeat"
    " of it is carried out twice."
)
CONSEQUENCES: Final = (
    "A request that comes again from then on may have been carried out before, in a commit that is lost.",
    "Charges, whole refunds and retries are therefore looked for at the gateway first.",
    "Authorizations, voids and partial refunds are held until you decide: `payrelay recover decide`.",
    "That ends for a principal that acknowledges it, and for all after 30 days or by `payrelay recover end`.",
)


@app.callback(
    invoke_without_command=True,
    no_args_is_help=False,
    epilog=examples("payrelay recover --lost-since 2026-11-22T09:30Z --note restored"),
)
def recover(
    context: typer.Context,
    *,
    lost_since: Annotated[
        str | None,
        typer.Option(metavar="TIME", help="Since when commits may be lost, in ISO 8601 with its zone."),
    ] = None,
    note: Annotated[str, typer.Option(metavar="TEXT", help="What happened; it is stored.")] = "",
    by: By = None,
    yes: Sure = False,
) -> int:
    """Begin a recovery, after a copy was restored or a standby without the newest commits was promoted.

    Without --lost-since, the newest entry of a restored copy and the marks outside the database say since when.
    """
    if context.invoked_subcommand is not None:
        return DONE
    return _begin(lost_since, note, by, is_sure=yes)


@awaited
async def _begin(lost_since: str | None, note: str, by: str | None, *, is_sure: bool) -> int:
    from payrelay.flows.database.begin_recovery import begin_recovery

    settings = read_settings()
    require_answerable(is_sure=is_sure, undone=UNDONE)
    who, now_ms = operator_from(by), Clock().now_ms()
    since_ms = None if lost_since is None else _time_from(lost_since)
    if since_ms is not None and since_ms > now_ms:
        raise CommandError("--lost-since is in the future")
    async with session(settings) as relay:
        number_above, copied_ms = 0, None
        try:
            marks = await relay.database.marks.shown()
            since_ms, number_above, copied_ms = marks.since_ms(since_ms), marks.incarnation, marks.copied_since_ms
        except OSError as error:
            if since_ms is None:
                raise CommandError(f"the marks can't be read ({error.strerror}): give --lost-since") from None
        if since_ms is None:
            raise CommandError(NO_MARK)
        if copied_ms is not None and since_ms > copied_ms:
            say(LATER.format(spoken(copied_ms)))
        say(f"Commits from {spoken(since_ms)} to {spoken(now_ms)} UTC count as lost.")
        for line in CONSEQUENCES:
            say(f"· {line}")
        if not is_sure and not is_confirmed("Begin the recovery?"):
            raise CommandError(UNDONE, REFUSED)
        begun = await begin_recovery(
            relay.database.identities,
            relay.clock,
            lost_since_ms=since_ms,
            operator=who,
            note=note,
            number_above=max(number_above, await relay.database.identities.newest_elsewhere()),
            merchants={account.merchant for account in relay.accounts.values()},
        )
    say(f"The recovery has begun: incarnation {begun.number}. `payrelay recover status` shows where it stands.")
    return DONE


@app.command("status", epilog=examples("payrelay recover status", "payrelay recover status --json"))
@awaited
async def show_status(*, as_json: Json = False) -> int:
    """Show where the recovery stands."""
    from payrelay.recovery.flows.reports.show_status import recovery_status

    async with session(read_settings()) as relay:
        status = await recovery_status(relay)
    if as_json:
        show_json(status_json(status))
    else:
        for line in status_lines(status):
            show(line)
    return DONE


@app.command("acknowledge", epilog=examples("payrelay recover acknowledge --principal shop"))
@awaited
async def acknowledge_for(
    *,
    principal: Annotated[str, typer.Option(metavar="NAME", help="Whose requests are new from now on.")],
    yes: Sure = False,
) -> int:
    """Acknowledge a recovery for a principal.

    It has repeated all that it sent in the lost window and got no answer to.
    From a second later on, none of its requests counts as a repeat of a lost one.
    """
    from payrelay.flows.database.acknowledge import acknowledge

    require_answerable(is_sure=yes, undone="nothing was acknowledged")
    async with session(read_settings()) as relay:
        stored = await relay.access.principals.stored_name(principal)
        if stored not in await relay.access.principals.known():
            raise CommandError(f"there is no principal {principal!r}; `payrelay principals list` shows all", NOT_FOUND)
        current = (await relay.database.identities.read()).current
        question = f"Has {principal} repeated all requests of the lost time? Later ones are carried out as new."
        if not yes and not is_confirmed(question):
            raise CommandError("nothing was acknowledged", REFUSED)
        await acknowledge(relay.database.identities, relay.clock, stored, current.number)
    say(f"{principal} has acknowledged: within a second its requests are new.")
    return DONE


@app.command("end", epilog=examples("payrelay recover end"))
@awaited
async def end(
    *,
    leave_held: Annotated[
        bool, typer.Option("--leave-held", help="Also while operations are held; they stay so.")
    ] = False,
    yes: Sure = False,
) -> int:
    """End the recovery: from then on every request is new."""
    from payrelay.recovery.flows.end_recovery import end_recovery
    from payrelay.recovery.flows.reports.show_status import recovery_status

    undone = "the recovery was not ended"
    require_answerable(is_sure=yes, undone=undone)
    async with session(read_settings()) as relay:
        status = await recovery_status(relay)
        if status.held and not leave_held:
            raise CommandError(
                f"held: {held_in_words(status.held)}; decide about them, or end it with --leave-held", REFUSED
            )
        for name in status.waiting_for:
            say(f"· {name} has not acknowledged: what it repeats from then on is carried out as new.")
        if not yes and not is_confirmed("End the recovery?"):
            raise CommandError(undone, REFUSED)
        ended = await end_recovery(relay)
    say(f"The recovery of incarnation {ended.number} has ended.")
    return DONE


add_decisions(app)


def _time_from(text: str) -> int:
    try:
        return moment_of(text)
    except ValueError:
        wanted = "a time in ISO 8601 with its zone, such as 2026-11-22T09:30Z"
        raise CommandError(f"--lost-since must be {wanted}") from None
