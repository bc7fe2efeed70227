"""The command that checks settings, database, encryption key and gateways, and tells the result in plain words."""

import shutil
import stat
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Final

from payrelay.cli.session import read_settings
from payrelay.cli.terminal.declaring import awaited, examples, group
from payrelay.cli.terminal.messages import DONE, FAULTY
from payrelay.clock import Clock
from payrelay.errors import SettingsError, StoreError

if TYPE_CHECKING:
    from payrelay.app import SharedResources
    from payrelay.gateways.gateway import CheckResult
    from payrelay.settings import Settings

OTHERS: Final = stat.S_IRWXG | stat.S_IRWXO
"""The rights of all users but the owner of a file."""


app = group()


@app.command(epilog=examples("payrelay check"))
@awaited
async def check() -> int:
    """Check the settings, the database and the gateways."""
    from rich.text import Text

    from payrelay.cli.terminal.pages import Page, cell

    page = Page()
    code = DONE
    async for result in _results(Clock()):
        mark = ("!", "yellow") if result.is_warning else ("✓", "green") if result.is_right else ("✗", "red")
        page.write_line(Text.assemble(mark, " ", cell(f"{result.subject}: {result.text}")))
        if not result.is_right:
            code = FAULTY
    return code


async def _results(clock: Clock) -> "AsyncIterator[CheckResult]":
    """Checks one thing after the other, and goes on where it can; changes nothing at the gateway.

    A database that does not exist yet is made, as by every command.
    """
    from payrelay.app import opened_accounts
    from payrelay.flows.operators.check_signed_texts import check_signed_texts
    from payrelay.gateways.gateway import CheckResult

    try:
        settings = read_settings()
    except SettingsError as error:
        yield CheckResult(subject="settings", is_right=False, text=str(error))
        return
    yield _of_settings(settings)
    if settings.alert_command is not None:
        yield _of_alert_command(settings.alert_command[0])
    async with AsyncExitStack() as stack:
        of_database, shared = await _of_database(settings, clock, stack)
        for result in of_database:
            yield result
        for result in _of_files(settings.embedded_path):
            yield result
        # The calls count in the budget of a server that runs at the same time, where there is a store to count them in.
        accounts = await stack.enter_async_context(opened_accounts(settings, clock, shared))
        for name, account in accounts.items():
            for of_account in await account.check():
                subject = f"{name}: {of_account.subject}"
                yield CheckResult(subject=subject, is_right=of_account.is_right, text=of_account.text)
        if shared is not None:
            for result in await check_signed_texts(shared.database, shared.chain.secret, accounts):
                yield result


def _of_settings(settings: "Settings") -> "CheckResult":
    from payrelay.gateways.gateway import CheckResult
    from payrelay.settings import require_serving

    try:
        require_serving(settings)
    except SettingsError as error:
        return CheckResult(subject="settings", is_right=False, text=str(error))
    accounts = ", ".join(f"{name} ({gateway.environment})" for name, gateway in settings.gateways.items())
    return CheckResult(subject="settings", is_right=True, text=f"complete; gateway accounts: {accounts}")


def _of_files(path: Path | None) -> "Iterator[CheckResult]":
    """Checks who may read the embedded database and the key beside it; Payrelay makes both for their owner alone."""
    from payrelay.gateways.gateway import CheckResult

    for file in () if path is None else (path, path.with_name(f"{path.name}-wal"), path.with_name(f"{path.name}.key")):
        mode = stat.S_IMODE(file.stat().st_mode) if file.exists() else 0
        if mode & OTHERS:
            text = f"{file} may be read or changed by other users of this machine (mode {mode:04o}): chmod 600 {file}"
            yield CheckResult(subject="files", is_right=True, is_warning=True, text=text)


def _of_alert_command(program: str) -> "CheckResult":
    """Checks that the program exists, without running it. Its arguments are not shown: they may hold a secret."""
    from payrelay.gateways.gateway import CheckResult

    is_there = shutil.which(program) is not None
    text = f"{program} {'can be run' if is_there else 'is not a program that can be run'}"
    return CheckResult(subject="alert command", is_right=is_there, text=text)


async def _of_database(
    settings: "Settings", clock: Clock, stack: AsyncExitStack
) -> "tuple[list[CheckResult], SharedResources | None]":
    """Checks the database, and gives it where it can be used; it stays open as long as the stack."""
    from payrelay.app import opened_database, resources_of
    from payrelay.flows.operators.inspect_database import inspect_database, undecided_in_words
    from payrelay.flows.operators.pause_account import in_words
    from payrelay.gateways.gateway import CheckResult

    try:
        database = await stack.enter_async_context(opened_database(settings, clock, is_owner=False))
        state = await inspect_database(database)
    except (SettingsError, StoreError) as error:
        return [CheckResult(subject="database", is_right=False, text=str(error))], None
    text = f"{settings.shown_database} can be used; its schema has version {state.schema_version}"
    right = CheckResult(subject="database", is_right=True, text=text)
    paused = [
        CheckResult(subject=pause.account, is_right=True, text=f"paused {in_words(pause)}") for pause in state.pauses
    ]
    try:
        shared = await resources_of(settings, database, clock)
    except (SettingsError, StoreError) as error:
        return [right, *paused, CheckResult(subject="encryption key", is_right=False, text=str(error))], None
    key = CheckResult(subject="encryption key", is_right=True, text="it opens what this database holds")
    undecided = [
        CheckResult(subject="principals", is_right=True, is_warning=True, text=text)
        for text in await undecided_in_words(database, shared.chain.secret)
    ]
    return [right, *paused, key, *undecided], shared
