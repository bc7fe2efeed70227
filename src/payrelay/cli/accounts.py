"""The commands that pause a gateway account and let it go on."""

from typing import TYPE_CHECKING, Annotated

import typer

from payrelay.cli.session import operator_from, read_settings, reason_from
from payrelay.cli.terminal.declaring import By, Reason, awaited, examples, group
from payrelay.cli.terminal.messages import DONE, NOT_FOUND, CommandError, complain, say
from payrelay.clock import Clock
from payrelay.core.gateways.pauses import Pause

if TYPE_CHECKING:
    from payrelay.settings import Settings

app = group()

AccountName = Annotated[str, typer.Argument(metavar="ACCOUNT", help="The name of a configured account.")]


@app.command(epilog=examples('payrelay pause gateway --reason "wrong prices in the shop"'))
@awaited
async def pause(account: AccountName, *, reason: Reason = "", by: By = None) -> int:
    """Allow no new operations on an account.

    Reads and the resolution of open operations go on.
    """
    from payrelay.app_commands import opened_pauses
    from payrelay.flows.operators.pause_account import in_words, pause_account

    settings = read_settings()
    wanted = Pause(account=account, since_ms=Clock().now_ms(), reason=reason_from(reason), operator=operator_from(by))
    if account not in settings.gateways:
        raise _no_account(settings, account)
    async with opened_pauses(settings, Clock()) as stores:
        earlier, is_listed = await pause_account(stores.pauses, stores.revocations, wanted)
    if earlier is None:
        say(f"{account} is paused: within a second no new operation begins there; reads and resolution go on.")
        say(f"To end the pause: payrelay resume {account}")
    else:
        say(f"{account} was paused already; that pause stays: {in_words(earlier)}.")
    if not is_listed:
        complain(f"The pause is not in the list outside the database: {_reason(settings)}. A backup has no pause.")
    return DONE


@app.command(epilog=examples("payrelay resume gateway"))
@awaited
async def resume(account: AccountName) -> int:
    """Let a paused account go on."""
    from payrelay.app_commands import opened_pauses
    from payrelay.flows.operators.pause_account import resume_account

    settings = read_settings()
    async with opened_pauses(settings, Clock()) as stores:
        earlier, is_listed = await resume_account(stores.pauses, stores.revocations, account, Clock().now_ms())
    if earlier is not None:
        say(f"{account} goes on, within a second.")
        if not is_listed:
            complain(
                f"That is not in the list outside the database: {_reason(settings)}. A recovery may pause it again."
            )
        return DONE
    if account not in settings.gateways:
        raise _no_account(settings, account)
    say(f"{account} was not paused.")
    return DONE


def _reason(settings: "Settings") -> str:
    return f"{settings.marks_folder} can't be written, or the encryption key isn't known here"


def _no_account(settings: "Settings", account: str) -> CommandError:
    names = ", ".join(sorted(settings.gateways)) or "none"
    return CommandError(f"there is no gateway account called {account}; configured: {names}", NOT_FOUND)
