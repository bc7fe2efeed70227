"""The commands that pause an account and let it go on."""

import sys

from payrelay.app import opened_pauses
from payrelay.cli.session import DONE, UNKNOWN, complain, operator, reason
from payrelay.clock import Clock
from payrelay.core.gateways.pauses import Pause
from payrelay.core.payments.explanations import printable
from payrelay.flows.operators.pause_account import in_words, pause_account, resume_account
from payrelay.settings import Settings


async def run_pause(settings: Settings, account: str, *, why: str, by: str | None) -> int:
    """Allows no new effects on an account; gives the exit code. Raises WordsError, StoreError."""
    pause = Pause(account=account, since_ms=Clock().now_ms(), reason=reason(why), operator=operator(by))
    if account not in settings.gateways:
        complain(_no_such_account(settings, account))
        return UNKNOWN
    async with opened_pauses(settings, Clock()) as pauses:
        standing = await pause_account(pauses, pause)
    if standing is None:
        _say(f"{account} is paused: within a second nothing new is done there; reads and settling go on.")
        _say(f"To end it: payrelay resume {account}")
    else:
        _say(f"{account} was paused already; that pause stands: {in_words(standing)}.")
    return DONE


async def run_resume(settings: Settings, account: str) -> int:
    """Lets an account go on; gives the exit code. Raises StoreError."""
    async with opened_pauses(settings, Clock()) as pauses:
        if await resume_account(pauses, account):
            _say(f"{account} goes on, within a second.")
            return DONE
    if account not in settings.gateways:
        complain(_no_such_account(settings, account))
        return UNKNOWN
    _say(f"{account} was not paused.")
    return DONE


def _no_such_account(settings: Settings, account: str) -> str:
    names = ", ".join(sorted(settings.gateways)) or "none"
    return f"there is no gateway account called {printable(account)}; configured: {names}"


def _say(line: str) -> None:
    sys.stderr.write(f"{line}\n")
