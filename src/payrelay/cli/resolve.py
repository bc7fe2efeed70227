"""The command that resolves open operations now, without waiting for the schedule, and tells what each came to."""

from collections import Counter
from collections.abc import MutableMapping
from contextlib import ExitStack
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from payrelay.cli.session import read_settings, session
from payrelay.cli.terminal.declaring import awaited, examples, group
from payrelay.cli.terminal.messages import DONE, FAULTY, complain, show
from payrelay.core.moments import spoken
from payrelay.core.payments.operation import INQUIRED, Operation, State

if TYPE_CHECKING:
    from payrelay.flows.relay import Relay

app = group()

SHOWN_MAX: Final = 50
"""Operations that are listed one by one; of more, only the number is told."""
BAR_FROM: Final = 5
"""Operations from which on a progress bar is worth its line."""


@app.command(epilog=examples("payrelay resolve", "payrelay resolve ID ID"))
@awaited
async def resolve(
    operation_ids: Annotated[
        list[str] | None, typer.Argument(metavar="ID", help="Only these; without an id, all that are open.")
    ] = None,
) -> int:
    """Inquire at the gateway now, and resolve open operations."""
    from payrelay.settings import require_serving

    settings = read_settings()
    require_serving(settings)
    # The calls count in the budget of a server that runs at the same time.
    async with session(settings, takes_effect=True, level="warning", in_words=_in_words) as relay:
        wanted = await _named(relay, operation_ids) if operation_ids else await _open(relay)
        if wanted:
            _show_results(await _resolved(relay, wanted), relay.clock.now_ms())
        elif not operation_ids:
            show("No operation is unknown or pending: there is nothing to inquire about.")
    return DONE if len(wanted) == len(set(operation_ids or ())) or not operation_ids else FAULTY


async def _open(relay: "Relay") -> list[Operation]:
    found: list[Operation] = []
    for state in sorted(INQUIRED):
        page = await relay.resolution.in_state(state)
        while page:
            found += page
            page = await relay.resolution.in_state(state, after=page[-1].id)
    return found


async def _named(relay: "Relay", operation_ids: list[str]) -> list[Operation]:
    found = []
    for operation_id in dict.fromkeys(operation_ids):
        operation = await relay.journal.get(operation_id)
        if operation is None:
            complain(f"there is no operation {operation_id}")
        elif operation.state not in INQUIRED:
            complain(f"{operation_id} is {_word(operation.state)}: there is nothing to inquire about")
        else:
            found.append(operation)
    return found


async def _resolved(relay: "Relay", wanted: list[Operation]) -> list[Operation]:
    """Inquires once about each, several at a time, and gives them as they are afterwards."""
    import asyncio

    from payrelay.cli.terminal.pages import Page, progress_bar
    from payrelay.flows.resolution.resolve import AT_ONCE_MAX, resolve_one

    gate = asyncio.Semaphore(AT_ONCE_MAX)
    with ExitStack() as stack:
        bar = progress_bar(Page(stderr=True))
        if len(wanted) >= BAR_FROM:
            stack.enter_context(bar)
        task = bar.add_task("inquiring at the gateway", total=len(wanted))

        async def inquire(operation: Operation) -> Operation:
            async with gate:
                await resolve_one(relay, operation)
            bar.advance(task)
            return await relay.journal.get(operation.id) or operation

        return await asyncio.gather(*(inquire(operation) for operation in wanted))


def _show_results(operations: list[Operation], now_ms: int) -> None:
    from payrelay.cli.terminal.pages import Page, table

    page = Page()
    for operation in operations[:SHOWN_MAX]:
        page.write_line(_result(operation, now_ms))
    if len(operations) > SHOWN_MAX:
        page.write_line(f"… and {len(operations) - SHOWN_MAX} more")
    counts = Counter(operation.state for operation in operations)
    rows = ((_word(state), str(counts[state])) for state in State if counts[state])
    page.write_line("")
    page.write(table(("state", "operations"), rows, empty=""))


def _result(operation: Operation, now_ms: int) -> str:
    words = f"{operation.id}  {operation.kind} of {operation.subject}: {_word(operation.state)}"
    if operation.state not in INQUIRED or operation.inquire_at_ms is None:
        return words
    if operation.inquire_at_ms <= now_ms:
        return f"{words}, next inquiry at once"
    return f"{words}, next inquiry at {spoken(operation.inquire_at_ms)} UTC"


def _word(state: State) -> str:
    return state.replace("_", " ")


def _in_words(event: MutableMapping[str, Any]) -> str:
    """Gives an event of the log with all its members: the operator waits, and wants to know what went wrong."""
    name = event.pop("event")
    members = " ".join(f"{key}={value}" for key, value in event.items() if key != "exc_info")
    return f"{name} {members}"
