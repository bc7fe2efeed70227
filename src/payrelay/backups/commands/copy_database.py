"""The command that copies an embedded database into PostgreSQL."""

from typing import Annotated

import typer

from payrelay.cli.session import operator_from, read_settings
from payrelay.cli.terminal.declaring import By, Json, Sure, awaited, examples, group
from payrelay.cli.terminal.messages import (
    DONE,
    REFUSED,
    CommandError,
    is_confirmed,
    require_answerable,
    say,
    show_json,
)
from payrelay.clock import Clock

app = group()


@app.command(epilog=examples("payrelay db copy --to postgresql://payrelay@db.example/payrelay"))
@awaited
async def copy(
    *,
    to: Annotated[
        str, typer.Option(metavar="URL", help="An empty PostgreSQL database; PGPASSWORD may have the password.")
    ],
    by: By = None,
    is_sure: Sure = False,
    as_json: Json = False,
) -> int:
    """Copy the embedded database into PostgreSQL, once and whole.

    Stop the service first. The encryption key stays the same.
    """
    from payrelay.backups.flows.copy_database import copy_database
    from payrelay.backups.opening import copy_order
    from payrelay.cli.audit import ProgressBars
    from payrelay.cli.terminal.pages import Page, progress_bar

    require_answerable(is_sure=is_sure, undone="nothing was copied")
    order = copy_order(read_settings(), to, operator_from(by))
    if not is_sure and not is_confirmed(f"Copy {order.path}, and serve from it no more?"):
        raise CommandError("nothing was copied", REFUSED)
    with progress_bar(Page(stderr=True)) as bar:
        task = bar.add_task("copying (rows)", total=None)
        copied = await copy_database(
            order, Clock(), lambda done, total: bar.update(task, completed=done, total=total), ProgressBars(bar)
        )
    if as_json:
        show_json(copied)
        return DONE
    say(
        f"{copied.target}: {copied.rows} rows, each compared. The audit found nothing wrong with"
        f" {copied.operations} operations."
    )
    say(f"{order.path} is served from no more. Keep it with its key file until nobody needs it.")
    say(
        "Next: set PAYRELAY_DATABASE_URL to the new address, and PAYRELAY_ENCRYPTION_KEY to the key in"
        f" {order.path}.key unless it is set; then start payrelay serve."
    )
    return DONE
