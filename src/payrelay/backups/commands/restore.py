"""The command that puts a backup back."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from payrelay.cli.session import operator_from, read_settings
from payrelay.cli.terminal.declaring import By, Json, Sure, awaited, examples, group
from payrelay.cli.terminal.messages import (
    DONE,
    FAULTY,
    REFUSED,
    CommandError,
    complain,
    is_confirmed,
    require_answerable,
    say,
    show_json,
)
from payrelay.clock import Clock
from payrelay.core.text.operator_text import WordsError, reason_of

if TYPE_CHECKING:
    from payrelay.backups.flows.restore import Restored

app = group()


@app.command(
    epilog=examples(
        'payrelay restore /backups/2026-11-22 --note "the disk is gone"',
        "payrelay restore /backups/today --replace payrelay.db --note damaged --yes",
    )
)
@awaited
async def restore(
    folder: Annotated[Path, typer.Argument(metavar="BACKUP", help="The folder that payrelay backup made.")],
    *,
    replace: Annotated[
        str | None,
        typer.Option(metavar="DATABASE", help="The database whose place the backup takes; it is kept beside."),
    ] = None,
    accept_findings: Annotated[
        bool, typer.Option("--accept-findings", help="Restore it also where the audit finds something in it.")
    ] = False,
    by: By = None,
    note: Annotated[str, typer.Option(metavar="TEXT", help="What happened; it is stored.")] = "",
    is_sure: Sure = False,
    as_json: Json = False,
) -> int:
    """Put a backup back as the database, and begin the recovery.

    Stop every process of Payrelay first. The encryption key of the backup must be configured.
    """
    from payrelay.backups.flows.restore import FoundWrong, RestoreOrder
    from payrelay.backups.flows.restore import restore as restore_backup
    from payrelay.backups.opening import restore_place
    from payrelay.cli.audit import ProgressBars
    from payrelay.cli.terminal.pages import Page, progress_bar

    order = RestoreOrder(folder, replace, accept_findings, operator_from(by), _checked(note))
    require_answerable(is_sure=is_sure, undone="nothing was restored")
    place = restore_place(read_settings())
    if not is_sure and not is_confirmed(f"Put {folder} in the place of the database, and begin the recovery?"):
        raise CommandError("nothing was restored", REFUSED)
    with progress_bar(Page(stderr=True)) as bar:
        task = bar.add_task("copying (MB)", total=None)
        try:
            restored = await restore_backup(
                place,
                order,
                Clock(),
                lambda done, total: bar.update(task, completed=done, total=total),
                ProgressBars(bar),
            )
        except FoundWrong as found:
            for finding in found.findings:
                complain(finding)
            raise CommandError(f"{found}; --accept-findings restores it as it is", FAULTY) from None
    if as_json:
        show_json(restored)
    else:
        for line in _in_words(restored):
            say(line)
    return DONE


def _checked(note: str) -> str:
    try:
        return reason_of(note) if note else ""
    except WordsError as error:
        raise CommandError(f"--note {error}") from None


def _in_words(restored: "Restored") -> list[str]:
    lines = [f"{restored.database}: restored from the backup of {restored.made_at}."]
    if restored.replaced is not None:
        lines.append(f"The database of before is kept: {restored.replaced}. Remove it once nobody needs it.")
    lines.append(
        f"What was stored after {restored.made_at} is lost to the service. A recovery has begun, incarnation"
        f" {restored.incarnation}: commits may be lost from {restored.lost_since} to {restored.lost_until}."
    )
    if restored.missing:
        lines.append(
            f"High-water marks name {len(restored.missing)} commits that it lacks. The oldest is {restored.missing[0]}."
        )
    if restored.needs_upgrade:
        lines.append("It is of an earlier version, and not audited: run payrelay db upgrade, payrelay audit verify.")
    else:
        found = f"{len(restored.findings)} findings were accepted" if restored.findings else "nothing wrong was found"
        lines.append(f"The audit compared {restored.operations} operations; {found}.")
    if restored.lost_anchors:
        lines.append(
            f"{restored.lost_anchors} anchors were noted outside after the backup, the newest being"
            f" {restored.newest_noted_anchor}: the entries under them are lost."
        )
        moved = restored.anchors_moved_to
        lines.append(
            "Move the file of anchors away: the service makes no anchor beside it."
            if moved is None
            else f"The file of anchors is now {moved}, and the service begins another."
        )
    lines.append("Next: start payrelay serve, and see payrelay recover for what clients and operators have to do.")
    return lines
