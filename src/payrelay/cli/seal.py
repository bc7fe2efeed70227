"""The commands for what is sealed: which key seals how much, and sealing everything with the first key."""

import secrets
from typing import TYPE_CHECKING, Final

from payrelay.cli.session import read_settings
from payrelay.cli.terminal.declaring import Json, awaited, examples, group
from payrelay.cli.terminal.messages import DONE, REFUSED, CommandError, complain, say, show
from payrelay.clock import Clock
from payrelay.core.seal_keys import KEY_BYTES, key_text

if TYPE_CHECKING:
    from rich.console import RenderableType

    from payrelay.flows.operators.rotate_seal import SealStatus

NAMED_MAX: Final = 10
"""Values that can't be opened are named, up to this number; the operator must look at each."""

app = group("seal", "What is sealed at rest, and with which key.")


@app.command("status", epilog=examples("payrelay seal status", "payrelay seal status --json"))
@awaited
async def show_status(*, as_json: Json = False) -> int:
    """Tell how many values each key seals."""
    from payrelay.app_commands import opened_seals
    from payrelay.cli.terminal.pages import show_result
    from payrelay.flows.operators.rotate_seal import seal_status

    async with opened_seals(read_settings(), Clock()) as seals:
        status = await seal_status(seals)
    return show_result({"keys": status.key_ids, "sealed": status.counts}, _table(status), as_json=as_json)


@app.command(epilog=examples("payrelay seal rotate"))
@awaited
async def rotate() -> int:
    """Seal everything with the first key, while the service runs."""
    from payrelay.app_commands import opened_seals
    from payrelay.cli.terminal.pages import Page, progress_bar
    from payrelay.flows.operators.rotate_seal import rotate_seal

    # May be interrupted and started again.
    async with opened_seals(read_settings(), Clock()) as seals:
        with progress_bar(Page(stderr=True)) as bar:
            task = bar.add_task("sealing", total=None)

            def move(column: str, done: int, total: int) -> None:
                bar.update(task, completed=done, total=total, description=column)

            rotation = await rotate_seal(seals, move)
    for name in rotation.unopened[:NAMED_MAX]:
        complain(f"{name}: can't be opened with any of the keys; it stays as it is")
    if rotation.unopened:
        number = len(rotation.unopened)
        raise CommandError(f"{number} values could not be opened with any of the keys, older ones included", REFUSED)
    if rotation.left:
        raise CommandError(
            f"{rotation.left} values are sealed with other keys again: a server that was started with another first key"
            " is still running; restart it, and run this command once more",
            REFUSED,
        )
    say(
        f"All {rotation.total} values that other keys sealed are now sealed with key {rotation.key_id};"
        " older keys open nothing here."
    )
    return DONE


@app.command("new-key", epilog=examples("payrelay seal new-key"))
def new_key() -> None:
    """Print a new key, as PAYRELAY_ENCRYPTION_KEY takes it."""
    show(key_text(secrets.token_bytes(KEY_BYTES)))


def _table(status: "SealStatus") -> "RenderableType":
    """Draws a row for each column in which anything is sealed, and a column for each key, known here or not."""
    from payrelay.cli.terminal.pages import table

    unknown = sorted({key_id for counts in status.counts.values() for key_id in counts} - set(status.key_ids))
    known = [f"{key_id} {'opens' if number else 'seals'}" for number, key_id in enumerate(status.key_ids)]
    rows = [
        (name, *(str(counts[key_id]) for key_id in (*status.key_ids, *unknown)))
        for name, counts in status.counts.items()
        if counts
    ]
    return table(("what", *known, *(f"{key_id} unknown" for key_id in unknown)), rows, empty="Nothing is sealed yet.")
