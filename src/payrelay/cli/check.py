"""The command that checks settings, database, encryption key and gateways, and tells the result in plain words."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from payrelay.cli.session import read_settings
from payrelay.cli.terminal.declaring import awaited, examples, group
from payrelay.cli.terminal.messages import DONE, FAULTY, CommandError
from payrelay.clock import Clock
from payrelay.errors import SettingsError

if TYPE_CHECKING:
    from payrelay.cli.terminal.pages import Page
    from payrelay.gateways.gateway import CheckResult

app = group()


@app.command(epilog=examples("payrelay check", "payrelay check --sandbox-trial"))
@awaited
async def check(
    *,
    sandbox_trial: Annotated[
        bool, typer.Option("--sandbox-trial", help="Try all that can be tried at a gateway's sandbox, with your help.")
    ] = False,
    account: Annotated[str | None, typer.Option(metavar="ACCOUNT", help="Of a trial: which account.")] = None,
    report: Annotated[Path, typer.Option(metavar="FILE", help="Of a trial: where its report goes.")] = Path(
        "payrelay-sandbox-trial.json"
    ),
    host: Annotated[str, typer.Option(metavar="HOST", help="Of a trial: where it listens.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(metavar="PORT", help="Of a trial: where it listens.", min=1, max=65_535)] = 8080,
    wait: Annotated[int, typer.Option(metavar="SECONDS", help="Of a trial: the longest wait at a form.", min=1)] = 600,
) -> int:
    """Check the settings, the database and the gateways."""
    from rich.text import Text

    from payrelay.cli.terminal.pages import Page, cell

    page = Page()
    if sandbox_trial:
        return await _trial(page, account, report, (host, port), wait)
    code = DONE
    async for result in _results(Clock()):
        mark = ("!", "yellow") if result.is_warning else ("✓", "green") if result.is_right else ("✗", "red")
        page.write_line(Text.assemble(mark, " ", cell(f"{result.subject}: {result.text}")))
        if not result.is_right:
            code = FAULTY
    return code


async def _trial(page: "Page", account: str | None, report: Path, listen: tuple[str, int], wait_s: int) -> int:
    """Tries a gateway's sandbox; raises CommandError where the account isn't named, or is live."""
    from rich.text import Text

    from payrelay_tools.sandbox_trial.command import TrialOptions, try_sandbox

    settings = read_settings()
    if account is None:
        if len(settings.gateways) != 1:
            raise CommandError("--account is missing: name the sandbox account that is to be tried")
        account = next(iter(settings.gateways))
    host, port = listen
    options = TrialOptions(account=account, report=report, host=host, port=port, wait_s=wait_s)
    return await try_sandbox(settings, options, lambda line, colour: page.write_line(Text(line, style=colour)))


async def _results(clock: Clock) -> "AsyncIterator[CheckResult]":
    """Checks one thing after the other, and goes on where it can; changes nothing at the gateway.

    It makes no database and upgrades none: it warns of one that is not there, or that is of an earlier version.
    """
    import msgspec

    from payrelay.app import opened_accounts
    from payrelay.cli.checks.of_database import of_database, of_files, of_notifications, of_way
    from payrelay.cli.checks.of_settings import of_settings
    from payrelay.flows.audit.check_signed_texts import check_signed_texts
    from payrelay.gateways.gateway import CheckResult

    try:
        settings = read_settings()
    except SettingsError as error:
        yield CheckResult(subject="settings", is_right=False, text=str(error))
        return
    for result in await of_settings(settings):
        yield result
    async with AsyncExitStack() as stack:
        results, shared = await of_database(settings, clock, stack)
        for result in (*of_way(settings), *results, *of_files(settings.embedded_path)):
            yield result
        # The calls count in the budget of a server that runs at the same time, where there is a store to count them in.
        # The server's access token is not used: it would hide that the secret was exchanged since.
        accounts = await stack.enter_async_context(opened_accounts(settings, clock, shared, shares_access_tokens=False))
        for name, account in accounts.items():
            for result in (*await account.check(), await of_notifications(account, shared)):
                yield msgspec.structs.replace(result, subject=f"{name}: {result.subject}")
        if shared is not None:
            for result in await check_signed_texts(shared.database, shared.seal, accounts):
                yield result
