"""Pauses and resumes an account for an operator; processes notice it through ``runtime.paused_accounts``."""

from typing import NamedTuple

from payrelay.core.access.revocations import Revocation, RevocationKind
from payrelay.core.gateways.pauses import Pause
from payrelay.core.moments import spoken
from payrelay.core.payments.explanations import printable
from payrelay.runtime.database.revocation_list import RevocationList
from payrelay.store.gateways.pauses import Pauses


class PauseChange(NamedTuple):
    """What a command found: the pause from before, None where there was none; and whether the list outside has it."""

    earlier: Pause | None
    is_listed: bool


async def pause_account(pauses: Pauses, revocations: RevocationList | None, pause: Pause) -> PauseChange:
    """Allows no new effects on an account. Where it was paused already, that pause stays. Raises StoreError.

    The pause is then added to the list outside the database; None as ``revocations`` where that can't be opened.
    """
    earlier = None
    if not await pauses.add(pause):
        earlier = next((each for each in await pauses.list() if each.account == pause.account), pause)
    listed = earlier or pause
    is_listed = await _list(revocations, RevocationKind.PAUSE, listed.account, listed.since_ms)
    return PauseChange(earlier, is_listed)


async def resume_account(
    pauses: Pauses, revocations: RevocationList | None, account: str, now_ms: int, *, seen_ms: int | None = None
) -> PauseChange:
    """Resumes an account, and adds that to the list outside the database. Raises StoreError.

    ``seen_ms`` is when the pause began that somebody decided to end, and None stands for the one that there is: a pause
    that began meanwhile stays.
    """
    earlier = next((each for each in await pauses.list() if each.account == account), None)
    if earlier is None or seen_ms not in {None, earlier.since_ms} or not await pauses.remove(account, earlier.since_ms):
        return PauseChange(None, is_listed=False)
    return PauseChange(earlier, await _list(revocations, RevocationKind.RESUME, account, now_ms))


async def _list(revocations: RevocationList | None, kind: RevocationKind, account: str, at_ms: int) -> bool:
    return revocations is not None and await revocations.add(Revocation(kind=kind, at_ms=at_ms, account=account))


def in_words(pause: Pause) -> str:
    """Returns since when, by whom and why an account is paused, for an operator."""
    return f"since {spoken(pause.since_ms)} UTC by {printable(pause.operator)}, because “{printable(pause.reason)}”"
