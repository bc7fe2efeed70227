"""Pauses and resumes an account for an operator; processes notice it through ``runtime.paused_accounts``."""

from payrelay.core.gateways.pauses import Pause
from payrelay.core.moments import spoken
from payrelay.core.payments.explanations import printable
from payrelay.store.gateways.pauses import Pauses


async def pause_account(pauses: Pauses, pause: Pause) -> Pause | None:
    """Allows no new effects on an account; returns the earlier pause where it was paused already, else None.

    Raises StoreError.
    """
    if await pauses.add(pause):
        return None
    return next((each for each in await pauses.list() if each.account == pause.account), pause)


async def resume_account(pauses: Pauses, account: str) -> bool:
    """Resumes an account; False where it was not paused. Raises StoreError."""
    return await pauses.remove(account)


def in_words(pause: Pause) -> str:
    """Returns since when, by whom and why an account is paused, for an operator."""
    return f"since {spoken(pause.since_ms)} UTC by {printable(pause.operator)}, because “{printable(pause.reason)}”"
