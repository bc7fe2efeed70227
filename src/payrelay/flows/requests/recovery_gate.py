"""What the relay asks of the recovery from lost commits, where an effect may begin and where its outcome is concluded.

Whether the database is behind says ``runtime.database.lost_commits``. What else follows from a loss knows the part that
recovers from it; without that part nothing is sent, or proved, from a database that lost commits.
"""

from collections.abc import Sequence
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


class Recovery:
    """The recovery as it is without the part; ``Relay.find`` gives the part's where that is there."""

    async def clear(
        self,
        relay: Relay,
        request: Request,  # noqa: ARG002, the part asks whose it is
        intent: Intent,
        fingerprint: str,  # noqa: ARG002, by these the part stores an operation
        claim: str | None,  # noqa: ARG002
    ) -> Intent | Answer:
        """Returns the intent where its effect may begin, with what must hold when it is stored; else the answer.

        Raises Refusal (unavailable) where that can't be told now, and as ``answer_blocked`` where another operation
        holds the guard; nothing was sent then. Raises StoreError.
        """
        if await relay.database.lost_commits.require_effects_allowed() is not None:
            raise Refusal(Code.UNAVAILABLE, UNRECOVERED_SENTENCE, retry_after_s=RETRY_AFTER_S)
        return intent

    async def lost_sendings(
        self,
        relay: Relay,
        operation: Operation,  # noqa: ARG002, the part asks when it began
        *,
        sending_ms: int,  # noqa: ARG002
    ) -> Sequence[SendingWindow]:
        """Gives when operations that are lost can have been sent after this one began; none where nothing was lost.

        ``sending_ms`` is the longest time from the commit of an intent to the end of its call, in milliseconds. Raises
        StoreError.
        """
        incarnations = (await relay.database.lost_commits.identity()).incarnations
        return [SendingWindow(began_ms=0, ended_ms=NEVER_MS) for each in incarnations if each.lost is not None]
