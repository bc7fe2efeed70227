"""The command that reads statements of the gateway's or the bank's."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from payrelay.cli.session import read_settings, session
from payrelay.cli.terminal.declaring import By, awaited
from payrelay.cli.terminal.messages import DONE, FAULTY, UNUSABLE, CommandError, complain, say
from payrelay.reconciliation.commands.options import Account, actor_from, amount_of, days_of, profile_of

if TYPE_CHECKING:
    from payrelay.reconciliation.flows.import_statement import ImportedFile


@awaited
async def import_files(
    files: Annotated[list[Path], typer.Argument(metavar="FILE...", help="CSV files; several are one statement.")],
    *,
    profile: Annotated[
        str,
        typer.Option(metavar="NAME|FILE", help="How the files are read: a built-in profile, or a TOML or JSON file."),
    ],
    covers: Annotated[
        str | None,
        typer.Option(
            metavar="DAYS", help="The days, or the month, of which the files have everything; you vouch for it."
        ),
    ] = None,
    total: Annotated[
        str | None,
        typer.Option(
            metavar="AMOUNT",
            help="The sum that the statement itself says, of all lines or of those that took money; it is compared.",
        ),
    ] = None,
    count: Annotated[int | None, typer.Option(metavar="N", help="The number of lines that the statement says.")] = None,
    account: Account = None,
    by: By = None,
) -> int:
    """Read statements of the gateway's or the bank's.

    A line is stored once, however often it is fed. Refused lines are told by their numbers; the others are stored.
    """
    from payrelay.reconciliation.commands.files import file_to_import
    from payrelay.reconciliation.flows.import_statement import Completeness, import_file, say_complete
    from payrelay.reconciliation.flows.scope import scope_of
    from payrelay.reconciliation.rules.files.statement_files import StatementUnreadableError

    settings, read_by, actor = read_settings(), profile_of(profile), actor_from(by)
    said = None
    if covers is not None:
        first, last = days_of(covers)
        said = Completeness(first=first, last=last, total_minor=amount_of(total), count=count)
    elif total is not None or count is not None:
        raise CommandError("--total and --count are compared with what --covers says is complete: --covers is missing")
    imported: list[ImportedFile] = []
    rests_on = None
    async with session(settings) as relay:
        scope = scope_of(relay, account)
        for path in files:
            try:
                imported.append(await import_file(relay, scope, file_to_import(path, read_by), actor))
            except StatementUnreadableError as error:
                raise CommandError(f"{path}: {error}", UNUSABLE) from None
        _tell_imported(imported)
        if said is not None:
            rests_on = await say_complete(relay, scope, imported, said, actor)
            say(f"Complete for {said.first} to {said.last}: {rests_on}.")
    if read_by.is_guess:
        say(f"The profile {read_by.name} is a guess: nobody has tried it on a real file. Compare some lines by eye.")
    return FAULTY if any(each.summary.refused_count for each in imported) else DONE


def _tell_imported(imported: "list[ImportedFile]") -> None:
    for each in imported:
        summary = each.summary
        for refused in summary.refused:
            complain(f"{each.name}: line {refused.number}: {refused.reason}")
        if summary.refused_count > len(summary.refused):
            complain(f"{each.name}: {summary.refused_count - len(summary.refused)} more lines were refused")
        for word, number in sorted(summary.unknown_words.items()):
            told = f'"{word}"' if word else "nothing"
            complain(f"{each.name}: {number} lines have {told} as their state, which the profile doesn't know")
        parts = [f"{count} {what}" for what, count in sorted(summary.lines.counts.items())]
        days = "" if summary.first_day is None else f" of {summary.first_day} to {summary.last_day}"
        known = "; the file was fed before" if each.was_known else ""
        say(
            f"{each.name}: {', '.join(parts) or 'no line'}{days}; {each.new} new, {summary.refused_count} refused,"
            f" {summary.passed_over} passed over{known}."
        )
