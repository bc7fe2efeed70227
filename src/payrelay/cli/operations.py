"""The commands for operations: list those that need somebody, show all that is known of one, decide."""

import sys

import msgspec
import typer
from rich.console import Console

from payrelay.cli.operation_pages import consequence_lines, hints_of, list_json, list_page, show_json, show_page
from payrelay.cli.session import DONE, REFUSED, UNKNOWN, complain, operator, reason, session
from payrelay.core.payments.explanations import printable, what
from payrelay.core.payments.operation import Operation, State
from payrelay.core.payments.payment import payment_number
from payrelay.core.persons import WordsError
from payrelay.flows.operators.decidable import Decision, UndecidedError, UnknownOperationError, require_decidable
from payrelay.flows.operators.decide import consequence_of, decide, prospects
from payrelay.flows.operators.review import ReviewFilter, list_for_operator, study
from payrelay.flows.relay import Relay
from payrelay.settings import Settings


class Said(msgspec.Struct, frozen=True, kw_only=True):
    """A decision as it was typed.

    Attributes:
        operation_id: of what.
        verdict: SUCCEEDED or FAILED.
        reason: why.
        by: who; None for whoever is logged in.
        payment_id: the payment that it made; None where that isn't known.
        is_sure: nothing is asked back.
    """

    operation_id: str
    verdict: State
    reason: str
    by: str | None
    payment_id: str | None
    is_sure: bool


async def run_list(settings: Settings, wanted: ReviewFilter, *, as_json: bool) -> int:
    """Lists operations; gives the exit code. Raises SettingsError, StoreError."""
    async with session(settings) as relay:
        groups = await list_for_operator(relay, wanted)
        now_ms = relay.clock.now_ms()
    if as_json:
        sys.stdout.write(list_json(groups, now_ms).decode())
    else:
        Console(highlight=False).print(list_page(groups, now_ms))
    return DONE


async def run_show(settings: Settings, operation_id: str, *, as_json: bool) -> int:
    """Shows one operation; gives the exit code. Raises SettingsError, StoreError."""
    async with session(settings) as relay:
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


async def run_decide(settings: Settings, said: Said) -> int:
    """Makes a decision, after asking back on a terminal; gives the exit code.

    Raises WordsError, SettingsError, StoreError.
    """
    who, why, paid = operator(said.by), reason(said.reason), _payment_id(said.payment_id)
    async with session(settings) as relay:
        try:
            operation = await _known(relay, said.operation_id)
            decision = Decision(
                operation_id=operation.id,
                seen=operation.state,
                verdict=said.verdict,
                operator=who,
                reason=why,
                payment_id=paid,
            )
            await require_decidable(relay, operation, decision)
            if not said.is_sure and sys.stdin.isatty() and not await _is_confirmed(relay, operation, decision):
                complain("nothing was decided")
                return REFUSED
            await decide(relay, decision)
        except UnknownOperationError as error:
            complain(str(error))
            return UNKNOWN
        except UndecidedError as error:
            complain(str(error))
            return REFUSED
    sys.stderr.write(f"Decided: {operation.id} {said.verdict}. By {who}: {why}\n")
    return DONE


async def _known(relay: Relay, operation_id: str) -> Operation:
    operation = await relay.journal.get(operation_id)
    if operation is None:
        raise UnknownOperationError(f"there is no operation {printable(operation_id)}")
    return operation


async def _is_confirmed(relay: Relay, operation: Operation, decision: Decision) -> bool:
    """Shows what the decision does, and asks."""
    consequence = await consequence_of(relay, operation, decision)
    errors = Console(stderr=True, highlight=False)
    errors.print(f"{operation.id}, {printable(what(operation))}", markup=False)
    for line in consequence_lines(consequence):
        errors.print(f"· {printable(line)}", markup=False)
    return typer.confirm(f"Decide, for good, that it {decision.verdict}?", err=True)


def _payment_id(text: str | None) -> str | None:
    if text is None:
        return None
    number = payment_number(text)
    if number is None:
        raise WordsError("--payment-id must be 1 to 19 digits")
    return number
