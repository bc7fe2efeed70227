"""The commands that pause an account and let it go on."""

from typing import TYPE_CHECKING, Annotated

import typer

from payrelay.cli.session import (
    DONE,
    UNKNOWN,
    By,
    Reason,
    awaited,
    complain,
    operator_from,
    read_settings,
    reason_from,
    say,
)
from payrelay.clock import Clock
from payrelay.core.gateways.pauses import Pause
from payrelay.core.payments.explanations import printable

if TYPE_CHECKING:
    from payrelay.settings import Settings

app = typer.Typer()

AccountName = Annotated[str, typer.Argument(metavar="ACCOUNT", help="The name of a configured account.")]


@app.command()
@awaited
async def pause(account: AccountName, *, reason: Reason = "", by: By = None) -> int:
    """Allow no new operations on an account; reads and settling go on."""
    from payrelay.app import opened_pauses
    from payrelay.flows.operators.pause_account import in_words, pause_account

    settings = read_settings()
    wanted = Pause(account=account, since_ms=Clock().now_ms(), reason=reason_from(reason), operator=operator_from(by))
    if account not in settings.gateways:
        return _unknown(settings, account)
    async with opened_pauses(settings, Clock()) as pauses:
        standing = await pause_account(pauses, wanted)
    if standing is None:
        say(f"{account} is paused: within a second nothing new is done there; reads and settling go on.")
        say(f"To end it: payrelay resume {account}")
    else:
        say(f"{account} was paused already; that pause stands: {in_words(standing)}.")
    return DONE


@app.command()
@awaited
async def resume(account: AccountName) -> int:
    """Let a paused account go on."""
    from payrelay.app import opened_pauses
    from payrelay.flows.operators.pause_account import resume_account

    settings = read_settings()
    async with opened_pauses(settings, Clock()) as pauses:
        if await resume_account(pauses, account):
            say(f"{account} goes on, within a second.")
            return DONE
    if account not in settings.gateways:
        return _unknown(settings, account)
    say(f"{account} was not paused.")
    return DONE


def _unknown(settings: "Settings", account: str) -> int:
    names = ", ".join(sorted(settings.gateways)) or "none"
    complain(f"there is no gateway account called {printable(account)}; configured: {names}")
    return UNKNOWN
