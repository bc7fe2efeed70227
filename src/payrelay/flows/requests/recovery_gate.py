"""Asks, before an effect begins, what the recovery from lost commits has to say of it.

Whether the database is behind says ``runtime.database.lost_commits``. What else follows for a request while a recovery
is under way, the part that recovers knows; without that part nothing is sent then.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final

from payrelay.core.answers import Answer
from payrelay.errors import Code, Refusal, StoreUnusable
from payrelay.flows.relay import Relay, Request
from payrelay.flows.requests.intent import Intent
from payrelay.runtime.database.lost_commits import RETRY_AFTER_S

UNRECOVERED_SENTENCE: Final = (
    "a recovery from lost commits is under way, and this installation can't carry it out; this request was not sent"
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Recovery:
    """The recovery from lost commits; ``Relay.find`` gives it.

    Attributes:
        clear: returns the intent where its effect may begin in a recovery, with what must hold when it is stored; else
            the request's answer. Is given the request's fingerprint and claim. Raises Refusal (unavailable) where that
            can't be told now, and as ``answer_known`` where another operation has the guard; nothing was sent then.
            Raises StoreError.
    """

    clear: Callable[[Relay, Request, Intent, str, str | None], Awaitable[Intent | Answer]]


async def clear(relay: Relay, request: Request, intent: Intent, fingerprint: str, claim: str | None) -> Intent | Answer:
    """Returns the intent where its effect may begin; else as ``Recovery.clear``, which a recovery alone asks for.

    Raises Refusal (unavailable) while the database is behind.
    """
    if await relay.database.lost_commits.require_effects_allowed() is None:
        return intent
    return await relay.find(Recovery).clear(relay, request, intent, fingerprint, claim)


async def _refuse(
    _relay: Relay, _request: Request, _intent: Intent, _fingerprint: str, _claim: str | None
) -> Intent | Answer:
    raise Refusal(Code.UNAVAILABLE, UNRECOVERED_SENTENCE, retry_after_s=RETRY_AFTER_S)


WITHOUT_RECOVERY: Final = Recovery(clear=_refuse)
"""What there is without the part."""


async def require_recoverable(relay: Relay) -> None:
    """Raises StoreUnusable where the database lost commits, and no part can recover from that; every start asks.

    Raises StoreUnavailable.
    """
    if relay.find(Recovery) is not WITHOUT_RECOVERY:
        return
    lost_commits = relay.database.lost_commits
    is_recovering = (await lost_commits.identity()).current.is_recovering
    reason = lost_commits.behind or ("a recovery is under way" if is_recovering else None)
    if reason is not None:
        raise StoreUnusable(
            f"the database lost commits: {reason}. This installation can't recover from that, and serves nothing from"
            " it: start one that has payrelay.recovery"
        )
