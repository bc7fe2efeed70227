"""The command that settles: looks now for what is open, on its day or not, and tells what came of it."""

import asyncio
import sys
from collections import Counter
from collections.abc import MutableMapping
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from payrelay.cli.session import DONE, WRONG, awaited, read_settings, session
from payrelay.core.moments import spoken
from payrelay.core.payments.operation import INQUIRED, Operation, State

if TYPE_CHECKING:
    from payrelay.flows.relay import Relay

app = typer.Typer()

SHOWN_MAX: Final = 50
"""Operations that are listed one by one; of more, only their number is told."""
BAR_FROM: Final = 5
"""Operations from which on a progress bar is worth its line."""


@app.command()
@awaited
async def settle(
    operation_ids: Annotated[
        list[str] | None, typer.Argument(metavar="[ID]...", help="Only these; without one, all that are open.")
    ] = None,
) -> int:
    """Ask the gateway now what became of the operations that are open."""
    from payrelay.settings import require_serving

    settings = read_settings()
    require_serving(settings)
    console, errors = Console(highlight=False), Console(stderr=True, highlight=False)
    # The calls count in the budget of whoever serves at the same time.
    async with session(settings, level="warning", told=_told) as relay:
        wanted = await _named(relay, operation_ids, errors) if operation_ids else await _open(relay)
        if wanted:
            after = await _look(relay, wanted, errors)
            _tell(console, after, relay.clock.now_ms())
        elif not operation_ids:
            console.print("Nothing is open: there is nothing to ask for.")
    return DONE if len(wanted) == len(set(operation_ids or ())) or not operation_ids else WRONG


async def _open(relay: "Relay") -> list[Operation]:
    found: list[Operation] = []
    for state in sorted(INQUIRED):
        page = await relay.resolution.in_state(state)
        while page:
            found += page
            page = await relay.resolution.in_state(state, after=page[-1].id)
    return found


async def _named(relay: "Relay", operation_ids: list[str], errors: Console) -> list[Operation]:
    found = []
    for operation_id in dict.fromkeys(operation_ids):
        operation = await relay.journal.get(operation_id)
        if operation is None:
            errors.print(f"payrelay: there is no operation {operation_id}", markup=False)
        elif operation.state not in INQUIRED:
            errors.print(f"payrelay: {operation_id} is {operation.state}: there is nothing to ask for", markup=False)
        else:
            found.append(operation)
    return found


async def _look(relay: "Relay", wanted: list[Operation], errors: Console) -> list[Operation]:
    """Looks for each once, some at a time, and gives them as they are then."""
    from payrelay.flows.resolution.resolve import AT_ONCE_MAX, resolve_one

    gate = asyncio.Semaphore(AT_ONCE_MAX)
    columns = (TextColumn("Asking the gateway"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    is_shown = len(wanted) >= BAR_FROM and sys.stderr.isatty()
    with Progress(*columns, console=errors, disable=not is_shown, transient=True) as progress:
        task = progress.add_task("", total=len(wanted))

        async def look(operation: Operation) -> Operation:
            async with gate:
                await resolve_one(relay, operation)
            progress.advance(task)
            return await relay.journal.get(operation.id) or operation

        return await asyncio.gather(*(look(operation) for operation in wanted))


def _tell(console: Console, operations: list[Operation], now_ms: int) -> None:
    for operation in operations[:SHOWN_MAX]:
        console.print(_line(operation, now_ms), markup=False, soft_wrap=True)
    if len(operations) > SHOWN_MAX:
        console.print(f"… and {len(operations) - SHOWN_MAX} more")
    counts = Counter(operation.state for operation in operations)
    table = Table("came to", "operations", box=None)
    for state in State:
        if counts[state]:
            table.add_row(state.replace("_", " "), str(counts[state]))
    console.print(table)


def _line(operation: Operation, now_ms: int) -> str:
    words = f"{operation.id}  {operation.kind} of {operation.subject}: {operation.state.replace('_', ' ')}"
    if operation.state not in INQUIRED or operation.inquire_at_ms is None:
        return words
    if operation.inquire_at_ms <= now_ms:
        return f"{words}, asked for again at once"
    at = spoken(operation.inquire_at_ms)
    return f"{words}, asked for again at {at} UTC"


def _told(event: MutableMapping[str, Any]) -> str:
    """Gives an event with all that is known of it: whoever waits for the gateway wants to know what went wrong."""
    name = event.pop("event")
    details = " ".join(f"{key}={value}" for key, value in event.items() if key != "exc_info")
    return f"{name} {details}"
