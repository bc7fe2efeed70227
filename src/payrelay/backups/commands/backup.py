"""The command that backs the database up."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from payrelay.cli.session import read_settings
from payrelay.cli.terminal.declaring import Json, awaited, examples, group
from payrelay.cli.terminal.messages import DONE, CommandError, say, show_json
from payrelay.clock import Clock

if TYPE_CHECKING:
    from payrelay.core.database.backup_manifest import Manifest

app = group()


@app.command(epilog=examples("payrelay backup /backups/2026-11-22", "payrelay backup /backups/2026-11-22 --json"))
@awaited
async def backup(
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="A new folder for the backup.")],
    *,
    as_json: Json = False,
) -> int:
    """Back the database up, while the service runs.

    The encryption key is not in the backup: keep it apart, and as long as the backup.
    """
    from payrelay.backups.flows.back_up import back_up
    from payrelay.backups.opening import backup_source
    from payrelay.cli.terminal.pages import Page, progress_bar

    if folder.exists():
        raise CommandError(f"{folder}: there is something of this name already; a backup makes a new folder")
    source = backup_source(read_settings())
    with progress_bar(Page(stderr=True)) as bar:
        task = bar.add_task("copying (MB)", total=None)

        def move(done: int, total: int | None) -> None:
            text = "checking" if done == total else "copying (MB)"
            bar.update(task, completed=done, total=total, description=text)

        manifest = await back_up(source, folder, Clock(), move)
    if as_json:
        show_json(manifest)
    else:
        say(_in_words(manifest, folder))
    return DONE


def _in_words(manifest: "Manifest", folder: Path) -> str:
    return (
        f"{folder}: the database of {manifest.made_at}, {manifest.bytes:,} bytes, checked."
        f" It opens only with the encryption key {manifest.key_id}, which is not in it: keep that key elsewhere, and as"
        " long as the backup."
    )
