"""The commands for operations: list those that need attention, show all that is known of one, decide one."""

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Final

import typer

from payrelay.cli.session import operator_from, read_settings, reason_from, session
from payrelay.cli.terminal.declaring import By, Json, Reason, Sure, awaited, examples, group, state_help
from payrelay.cli.terminal.messages import (
    DONE,
    NOT_FOUND,
    REFUSED,
    CommandError,
    is_confirmed,
    require_answerable,
    require_found,
    say,
    show_json,
)
from payrelay.core.payments.operation import Operation, State
from payrelay.core.payments.payment import payment_number

if TYPE_CHECKING:
    from payrelay.flows.operators.decidable import Decision
    from payrelay.flows.relay import Relay

LISTED_MAX: Final = 10_000
"""Operations of one group that are listed; nobody reads a longer list."""

app = group("operations", "Operations: what needs attention, and decisions.")

OperationId = Annotated[str, typer.Argument(metavar="ID", help="As `operations list` shows it.")]


class DecidedState(StrEnum):
    """The outcomes that an operator can decide."""

    SUCCEEDED = "succeeded"
    FAILED = "failed"


@app.command("list", epilog=examples("payrelay operations list", "payrelay operations list --state unknown --json"))
@awaited
async def list_operations(
    *,
    state: Annotated[State | None, typer.Option(metavar="STATE", help=state_help(State))] = None,
    account: Annotated[str | None, typer.Option(metavar="ACCOUNT", help="Only those on this account.")] = None,
    order: Annotated[str | None, typer.Option(metavar="ORDER", help="Those of this order, final ones too.")] = None,
    show_all: Annotated[bool, typer.Option("--all", help="List final operations too, newest first.")] = False,
    limit: Annotated[int, typer.Option(metavar="COUNT", help="How many of each group.", min=1, max=LISTED_MAX)] = 50,
    as_json: Json = False,
) -> int:
    """List the operations that need attention, and those that are open."""
    from payrelay.cli.operation_pages import list_json, list_page
    from payrelay.cli.terminal.pages import show_result
    from payrelay.flows.operators.review import ReviewFilter, list_for_operator

    # Whoever names an order asks what became of it, and a final operation is an answer.
    is_all = show_all or order is not None
    wanted = ReviewFilter(state=state, account=account, order_id=order, is_all=is_all, limit=limit)
    async with session(read_settings()) as relay:
        groups = await list_for_operator(relay, wanted)
        now_ms = relay.clock.now_ms()
    page = list_page(groups, now_ms, is_narrowed=is_all or state is not None or account is not None)
    return show_result(list_json(groups, now_ms), page, as_json=as_json)


@app.command("show", epilog=examples("payrelay operations show ID", "payrelay operations show ID --json"))
@awaited
async def show_operation(operation_id: OperationId, *, as_json: Json = False) -> int:
    """Show an operation, and what each decision would do."""
    from payrelay.cli.operation_pages import hints_of, operation_json, show_page
    from payrelay.cli.terminal.pages import Page
    from payrelay.flows.operators.decide import preview_decisions
    from payrelay.flows.operators.review import study

    async with session(read_settings()) as relay:
        studied = require_found(await study(relay, operation_id), "operation", operation_id)
        previews = await preview_decisions(relay, studied.operation)
        now_ms = relay.clock.now_ms()
    if as_json:
        show_json(operation_json(studied, previews))
    else:
        page = Page()
        page.write(show_page(studied, previews, now_ms))
        for hint in ("", *hints_of(studied.operation, previews)) if previews else ():
            page.write_line(hint)
    return DONE


@app.command(
    "decide",
    epilog=examples(
        'payrelay operations decide ID failed --reason "no such payment"',
        "payrelay operations decide ID succeeded --reason paid --payment-id 3200250",
    ),
)
@awaited
async def decide_operation(
    operation_id: OperationId,
    outcome: Annotated[DecidedState, typer.Argument(metavar="OUTCOME", help="The outcome.")],
    *,
    reason: Reason = "",
    payment_id: Annotated[
        str | None, typer.Option(metavar="NUMBER", help="The number of the payment that it made, if known.")
    ] = None,
    by: By = None,
    yes: Sure = False,
) -> int:
    """Decide the outcome of an operation, for good.

    The operation must be unknown, pending or in need of attention.
    """
    from payrelay.errors import UndecidedError
    from payrelay.flows.operators.decidable import Decision, UnknownOperationError, require_decidable
    from payrelay.flows.operators.decide import decide

    settings = read_settings()
    require_answerable(is_sure=yes, undone="nothing was decided")
    who, why, paid = operator_from(by), reason_from(reason), _payment_id(payment_id)
    async with session(settings) as relay:
        operation = require_found(await relay.journal.get(operation_id), "operation", operation_id)
        decision = Decision(
            operation_id=operation.id,
            seen=operation.state,
            decided=State(outcome),
            operator=who,
            reason=why,
            payment_id=paid,
        )
        try:
            await require_decidable(relay, operation, decision)
            if not yes and not await _is_decision_confirmed(relay, operation, decision):
                raise CommandError("nothing was decided", REFUSED)
            await decide(relay, decision)
        except UndecidedError as error:
            code = NOT_FOUND if isinstance(error, UnknownOperationError) else REFUSED
            raise CommandError(str(error), code) from None
    say(f"Decided: {operation.id} {outcome}. By {who}: {why}")
    return DONE


async def _is_decision_confirmed(relay: "Relay", operation: Operation, decision: "Decision") -> bool:
    """Shows what the decision does, and asks."""
    from payrelay.cli.operation_pages import consequence_lines, heading_of
    from payrelay.flows.operators.decide import preview_decision

    consequence = await preview_decision(relay, operation, decision)
    say(heading_of(operation))
    for line in consequence_lines(consequence):
        say(f"· {line}")
    return is_confirmed(f"Decide, for good, that it {decision.decided}?")


def _payment_id(text: str | None) -> str | None:
    if text is None:
        return None
    number = payment_number(text)
    if number is None:
        raise CommandError("--payment-id must be 1 to 19 digits")
    return number
