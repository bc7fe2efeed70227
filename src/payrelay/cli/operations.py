"""The commands for operations: list those that need somebody, show all that is known of one, decide."""

import sys
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Final

import typer
from rich.console import Console

from payrelay.cli.session import (
    DONE,
    REFUSED,
    UNKNOWN,
    By,
    Json,
    Reason,
    Sure,
    awaited,
    complain,
    operator_from,
    read_settings,
    reason_from,
    say,
    session,
)
from payrelay.core.payments.explanations import printable, request_phrase
from payrelay.core.payments.operation import Operation, State
from payrelay.core.payments.payment import payment_number
from payrelay.core.persons import WordsError

if TYPE_CHECKING:
    from payrelay.flows.operators.decidable import Decision
    from payrelay.flows.relay import Relay

LISTED_MAX: Final = 10_000
"""Operations of one group that are listed; more are no list that anybody reads."""

app = typer.Typer(
    name="operations",
    help="Operations: what needs a person, what is known of it, a decision.",
    no_args_is_help=True,
)

OperationId = Annotated[str, typer.Argument(metavar="ID", help="As `operations list` shows it.")]


class DecidedState(StrEnum):
    """What can be decided."""

    SUCCEEDED = "succeeded"
    FAILED = "failed"


@app.command("list")
@awaited
async def list_operations(
    *,
    state: Annotated[State | None, typer.Option(help="Only those in this state.")] = None,
    account: Annotated[str | None, typer.Option(help="Only those on this account.")] = None,
    order: Annotated[str | None, typer.Option(help="Only those of this order.")] = None,
    show_all: Annotated[bool, typer.Option("--all", help="The others too, newest first.")] = False,
    limit: Annotated[int, typer.Option(help="Of each group.", min=1, max=LISTED_MAX)] = 50,
    as_json: Json = False,
) -> int:
    """List the operations that need a person, and those that are open."""
    from payrelay.cli.operation_pages import list_json, list_page
    from payrelay.flows.operators.review import ReviewFilter, list_for_operator

    wanted = ReviewFilter(state=state, account=account, order_id=order, is_all=show_all, limit=limit)
    async with session(read_settings()) as relay:
        groups = await list_for_operator(relay, wanted)
        now_ms = relay.clock.now_ms()
    if as_json:
        sys.stdout.write(list_json(groups, now_ms).decode())
    else:
        Console(highlight=False).print(list_page(groups, now_ms))
    return DONE


@app.command("show")
@awaited
async def show_operation(operation_id: OperationId, *, as_json: Json = False) -> int:
    """Show all that is known of an operation, and what each decision would do."""
    from payrelay.cli.operation_pages import hints_of, show_json, show_page
    from payrelay.flows.operators.decide import prospects
    from payrelay.flows.operators.review import study

    async with session(read_settings()) as relay:
        studied = await study(relay, operation_id)
        if studied is None:
            complain(f"there is no operation {printable(operation_id)}")
            return UNKNOWN
        prospect = await prospects(relay, studied.operation)
        now_ms = relay.clock.now_ms()
    if as_json:
        sys.stdout.write(show_json(studied, prospect).decode())
    else:
        console = Console(highlight=False)
        console.print(show_page(studied, prospect, now_ms))
        for number, hint in enumerate(hints_of(studied.operation) if prospect else ()):
            console.print(("" if number else "\n") + hint, style="dim", markup=False, soft_wrap=True)
    return DONE


@app.command("decide")
@awaited
async def decide_operation(
    operation_id: OperationId,
    verdict: Annotated[DecidedState, typer.Argument(help="What became of it.")],
    *,
    reason: Reason = "",
    payment_id: Annotated[str | None, typer.Option(help="The number of the payment that it made, if known.")] = None,
    by: By = None,
    yes: Sure = False,
) -> int:
    """Decide what became of an operation that is unknown, pending or needs a person; for good."""
    from payrelay.flows.operators.decidable import Decision, UndecidedError, UnknownOperationError, require_decidable
    from payrelay.flows.operators.decide import decide

    settings = read_settings()
    who, why, paid = operator_from(by), reason_from(reason), _payment_id(payment_id)
    async with session(settings) as relay:
        operation = await relay.journal.get(operation_id)
        if operation is None:
            complain(f"there is no operation {printable(operation_id)}")
            return UNKNOWN
        decision = Decision(
            operation_id=operation.id,
            seen=operation.state,
            decided=State(verdict),
            operator=who,
            reason=why,
            payment_id=paid,
        )
        try:
            await require_decidable(relay, operation, decision)
            if not yes and sys.stdin.isatty() and not await _is_confirmed(relay, operation, decision):
                complain("nothing was decided")
                return REFUSED
            await decide(relay, decision)
        except UndecidedError as error:
            complain(str(error))
            return UNKNOWN if isinstance(error, UnknownOperationError) else REFUSED
    say(f"Decided: {operation.id} {verdict}. By {who}: {why}")
    return DONE


async def _is_confirmed(relay: "Relay", operation: Operation, decision: "Decision") -> bool:
    """Shows what the decision does, and asks."""
    from payrelay.cli.operation_pages import consequence_lines
    from payrelay.flows.operators.decide import consequence_of

    consequence = await consequence_of(relay, operation, decision)
    errors = Console(stderr=True, highlight=False)
    errors.print(f"{operation.id}, {printable(request_phrase(operation))}", markup=False)
    for line in consequence_lines(consequence):
        errors.print(f"· {printable(line)}", markup=False)
    return typer.confirm(f"Decide, for good, that it {decision.decided}?", err=True)


def _payment_id(text: str | None) -> str | None:
    if text is None:
        return None
    number = payment_number(text)
    if number is None:
        raise WordsError("--payment-id must be 1 to 19 digits")
    return number
