"""The commands for a recovery: begin it, see where it stands, decide about what is held, end it."""

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Final

import typer

from payrelay.cli.recovery.pages import held_in_words, status_json, status_lines
from payrelay.cli.session import operator_from, read_settings, reason_from, session
from payrelay.cli.terminal.declaring import By, Json, Reason, Sure, awaited, examples, group
from payrelay.cli.terminal.messages import (
    DONE,
    FAULTY,
    NOT_FOUND,
    REFUSED,
    CommandError,
    complain,
    is_confirmed,
    require_answerable,
    say,
    show,
    show_json,
)
from payrelay.clock import Clock
from payrelay.core.moments import moment_ms, spoken
from payrelay.core.payments.operation import Kind, Operation
from payrelay.core.payments.payment import payment_number
from payrelay.core.recovery.held_decisions import MEANINGS_OF_DECISIONS, HeldDecision
from payrelay.errors import Refusal, StoreError

if TYPE_CHECKING:
    from payrelay.flows.recovery.decisions.decide_held import HeldFilter
    from payrelay.flows.relay import Relay

app = group("recover", "Recover from commits that the database has lost.")

UNDONE: Final = "no recovery was begun"
UNDECIDED: Final = "nothing was decided"
NO_MARK: Final = (
    "no mark tells since when commits may be lost: give --lost-since, the time of the backup or of the last commit that"
    " the database surely has"
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
    epilog=examples('payrelay recover --lost-since 2026-11-22T09:30Z --note "restored the backup of 9:30"'),
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
    """Begin a recovery, after a backup was restored or a standby without the newest commits was promoted.

    Without --lost-since, the marks outside the database say since when.
    """
    if context.invoked_subcommand is not None:
        return DONE
    return _begin(lost_since, note, by, is_sure=yes)


@awaited
async def _begin(lost_since: str | None, note: str, by: str | None, *, is_sure: bool) -> int:
    from payrelay.flows.recovery.begin_recovery import begin_recovery
    from payrelay.flows.recovery.lost_since_of_marks import lost_since_of_marks

    settings = read_settings()
    require_answerable(is_sure=is_sure, undone=UNDONE)
    who, now_ms = operator_from(by), Clock().now_ms()
    since_ms = lost_since_of_marks(settings) if lost_since is None else _time_from(lost_since, "--lost-since")
    if since_ms is None:
        raise CommandError(NO_MARK)
    if since_ms > now_ms:
        raise CommandError("--lost-since is in the future")
    async with session(settings) as relay:
        say(f"Commits from {spoken(since_ms)} to {spoken(now_ms)} UTC count as lost.")
        for line in CONSEQUENCES:
            say(f"· {line}")
        if not is_sure and not is_confirmed("Begin the recovery?"):
            raise CommandError(UNDONE, REFUSED)
        begun = await begin_recovery(relay.identities, relay.clock, lost_since_ms=since_ms, operator=who, note=note)
    say(f"The recovery has begun: incarnation {begun.number}. `payrelay recover status` shows where it stands.")
    return DONE


@app.command("status", epilog=examples("payrelay recover status", "payrelay recover status --json"))
@awaited
async def show_status(*, as_json: Json = False) -> int:
    """Show where the recovery stands: who acknowledged, what is held, and when it ends."""
    from payrelay.flows.recovery.decisions.show_status import recovery_status

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
    """Acknowledge for a principal: it has repeated all that it sent in the lost time and got no answer to.

    From a second later on, none of its requests counts as a repeat of a lost one.
    """
    from payrelay.flows.recovery.acknowledge import acknowledge

    require_answerable(is_sure=yes, undone="nothing was acknowledged")
    async with session(read_settings()) as relay:
        stored = await relay.principals.stored_name(principal)
        if stored not in await relay.principals.known():
            raise CommandError(f"there is no principal {principal!r}; `payrelay principals list` shows all", NOT_FOUND)
        current = (await relay.identities.read()).current
        question = f"Has {principal} repeated all requests of the lost time? Later ones are carried out as new."
        if not yes and not is_confirmed(question):
            raise CommandError("nothing was acknowledged", REFUSED)
        await acknowledge(relay.identities, relay.clock, stored, current.number)
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
    from payrelay.flows.recovery.decisions.show_status import recovery_status
    from payrelay.flows.recovery.end_recovery import end_recovery

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


@app.command(
    "decide",
    epilog=examples(
        'payrelay recover decide done ID --payment-id 3200250 --reason "in the portal"',
        'payrelay recover decide send --kind void --account gateway --reason "none in the portal"',
    ),
)
@awaited
async def decide_many(
    decision: Annotated[HeldDecision, typer.Argument(metavar="DECISION", help="One of done, send, refuse.")],
    operation_ids: Annotated[list[str] | None, typer.Argument(metavar="ID", help="These; or name a filter.")] = None,
    *,
    account: Annotated[str | None, typer.Option(metavar="ACCOUNT", help="Those on this account.")] = None,
    kind: Annotated[Kind | None, typer.Option(metavar="KIND", help="Those of this kind.")] = None,
    order: Annotated[str | None, typer.Option(metavar="ORDER", help="Those of this order.")] = None,
    since: Annotated[str | None, typer.Option(metavar="TIME", help="Those held at this time or later.")] = None,
    until: Annotated[str | None, typer.Option(metavar="TIME", help="Those held at this time or before.")] = None,
    payment_id: Annotated[
        str | None, typer.Option(metavar="NUMBER", help="With done: the payment that one operation made.")
    ] = None,
    reason: Reason = "",
    by: By = None,
    yes: Sure = False,
) -> int:
    """Decide about held operations, for good.

    done: an earlier try was carried out. send: none was, it is sent now. refuse: it isn't sent.
    """
    from payrelay.flows.recovery.decisions.decide_held import HeldFilter, held_operations

    settings = read_settings()
    require_answerable(is_sure=yes, undone=UNDECIDED)
    who, why, paid = operator_from(by), reason_from(reason), _payment_id(payment_id)
    wanted = HeldFilter(
        ids=frozenset(operation_ids or ()),
        account=account,
        kind=kind,
        order_id=order,
        since_ms=None if since is None else _time_from(since, "--since"),
        until_ms=None if until is None else _time_from(until, "--until"),
    )
    if wanted == HeldFilter():
        raise CommandError("name operations by their ids, or by a filter such as --kind")
    async with session(settings) as relay:
        held = [each async for each in held_operations(relay, wanted)]
        _require_found(held, wanted)
        if paid is not None and (decision is not HeldDecision.DONE or len(held) != 1):
            raise CommandError("--payment-id belongs to one operation that was done")
        say(f"{held_in_words(Counter(each.kind for each in held))}. {MEANINGS_OF_DECISIONS[decision]}")
        if not yes and not is_confirmed(f"Decide {decision}, for good?"):
            raise CommandError(UNDECIDED, REFUSED)
        return await _decided(relay, held, decision, operator=who, reason=why, payment_id=paid)


async def _decided(
    relay: "Relay",
    held: Sequence[Operation],
    decision: HeldDecision,
    *,
    operator: str,
    reason: str,
    payment_id: str | None,
) -> int:
    """Decides about one operation after the other, and tells what each came to; one that fails leaves the others."""
    from payrelay.flows.operators.decidable import UndecidedError
    from payrelay.flows.recovery.decisions.decide_held import decide_held

    code = DONE
    for each in held:
        try:
            after = await decide_held(relay, each, decision, operator=operator, reason=reason, payment_id=payment_id)
        except (Refusal, UndecidedError, StoreError) as error:
            complain(f"{each.id}: {error}")
            code = FAULTY
        else:
            show(f"{each.id} {after.state}")
    return code


def _require_found(held: Sequence[Operation], wanted: "HeldFilter") -> None:
    missing = sorted(wanted.ids - {each.id for each in held})
    if missing:
        raise CommandError(f"not held, or not of this filter: {', '.join(missing)}", NOT_FOUND)
    if not held:
        raise CommandError("no held operation is of this filter", NOT_FOUND)


def _time_from(text: str, option: str) -> int:
    at_ms = moment_ms(text)
    if at_ms is None:
        raise CommandError(f"{option} must be a time in ISO 8601 with its zone, such as 2026-11-22T09:30Z")
    return at_ms


def _payment_id(text: str | None) -> str | None:
    number = None if text is None else payment_number(text)
    if text is not None and number is None:
        raise CommandError("--payment-id must be 1 to 19 digits")
    return number
