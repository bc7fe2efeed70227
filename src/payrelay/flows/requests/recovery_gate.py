"""What the relay asks of the recovery from lost commits, where an effect may begin and where its outcome is concluded.

Whether the database is behind says ``runtime.database.lost_commits``. What else follows from a loss knows the part that
recovers from it; without that part nothing is sent, or proved, from a database that lost commits.
"""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Final

from payrelay.core.answers import Answer
from payrelay.core.payments.operation import Operation
from payrelay.core.payments.proof import SendingWindow
from payrelay.core.payments.schedules import NEVER_MS
from payrelay.errors import Code, Refusal
from payrelay.flows.relay import Relay, Request
from payrelay.flows.requests.intent import Intent
from payrelay.runtime.database.lost_commits import RETRY_AFTER_S

UNRECOVERED_SENTENCE: Final = (
    "the database lost commits, and this installation can't recover from that; this request was not sent"
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Recovery:
    """The recovery from lost commits; ``Relay.find`` gives it.

    Attributes:
        clear: returns the intent where its effect may begin in a recovery, with what must hold when it is stored; else
            the request's answer. Is given the request's fingerprint and claim. Raises Refusal (unavailable) where that
            can't be told now, and as ``answer_known`` where another operation has the guard; nothing was sent then.
            Raises StoreError.
        lost_sendings: gives when operations that are lost can have been sent after an operation began; none where
            nothing was lost. Is given the longest time from the commit of an intent to the end of its call, in ms.
            Raises StoreError.
    """

    clear: Callable[[Relay, Request, Intent, str, str | None], Awaitable[Intent | Answer]]
    lost_sendings: Callable[[Relay, Operation, int], Awaitable[Sequence[SendingWindow]]]


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


async def _any_time(relay: Relay, _operation: Operation, _sending_ms: int) -> Sequence[SendingWindow]:
    incarnations = (await relay.database.lost_commits.identity()).incarnations
    return [SendingWindow(began_ms=0, ended_ms=NEVER_MS) for each in incarnations if each.lost is not None]


WITHOUT_RECOVERY: Final = Recovery(clear=_refuse, lost_sendings=_any_time)
"""What there is without the part: nothing is sent in a recovery, and no payment proves anything later."""
