"""The command that writes compared days as a journal, or as a table."""

import sys
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from payrelay.cli.session import read_settings, session
from payrelay.cli.terminal.declaring import awaited
from payrelay.cli.terminal.messages import DONE, UNCOVERED, complain
from payrelay.reconciliation.commands.options import Account, DaysOption, days_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from payrelay.reconciliation.rules.journal import JournalDay


class ExportFormat(StrEnum):
    """How days are written."""

    BEANCOUNT = "beancount"
    CSV = "csv"


@awaited
async def export(
    *,
    days: DaysOption,
    written_as: Annotated[ExportFormat, typer.Option("--format", help="How it is written.")] = ExportFormat.BEANCOUNT,
    continues: Annotated[
        bool, typer.Option("--continues", help="Open no accounts, as an earlier journal of the ledger did.")
    ] = False,
    account: Account = None,
) -> int:
    """Write days as a journal: what both sides agree on.

    It goes to standard output. What isn't agreed on is a comment. Closed days are always written alike.
    Exit codes: 0 where all days are closed, else 3.
    """
    from payrelay.reconciliation.flows.export import journal_days
    from payrelay.reconciliation.flows.scope import scope_of

    first, last = days_of(days)
    not_closed = 0
    async with session(read_settings()) as relay:
        scope = scope_of(relay, account)
        write, end = (_table if written_as is ExportFormat.CSV else _journal)(scope.account, continues=continues)
        async for each in journal_days(relay, scope, first, last):
            write(each)
            not_closed += not each.is_closed
        end()
    if not_closed:
        complain(f"days that are not closed, and may change: {not_closed}")
    return UNCOVERED if not_closed else DONE


def _journal(account: str, *, continues: bool) -> "tuple[Callable[[JournalDay], None], Callable[[], None]]":
    from payrelay.reconciliation.rules.journal import BooksJournal

    journal = BooksJournal(account, continues=continues)
    sys.stdout.writelines(f"{line}\n" for line in journal.begin())

    def write(each: "JournalDay") -> None:
        sys.stdout.writelines(f"{line}\n" for line in journal.day(each))

    def end() -> None:
        sys.stdout.writelines(f"{line}\n" for line in journal.end())

    return write, end


def _table(account: str, *, continues: bool) -> "tuple[Callable[[JournalDay], None], Callable[[], None]]":  # noqa: ARG001, as _journal
    from payrelay.core.text.csv_text import csv_line
    from payrelay.reconciliation.rules.journal import COLUMNS, table_rows

    sys.stdout.write(f"{csv_line(COLUMNS)}\n")

    def write(each: "JournalDay") -> None:
        sys.stdout.writelines(f"{csv_line(row)}\n" for row in table_rows(each))

    return write, lambda: None
