"""What the rows that were lost after an operation leave in doubt about it."""

from collections.abc import Sequence

from payrelay.core.payments.operation import sending_ms
from payrelay.core.payments.proof import Match, SendingWindow, doubted
from payrelay.flows.requests.recovery_gate import Recovery
from payrelay.flows.resolution.case import Case


async def lost_sendings(case: Case) -> Sequence[SendingWindow]:
    """Returns when lost operations can have been sent after this one; none where nothing was lost since it began.

    Raises StoreError.
    """
    longest_ms = sending_ms(case.account.timeout_s)
    return await case.relay.find(Recovery).lost_sendings(case.relay, case.operation, longest_ms)


async def doubted_by_loss(case: Case, match: Match) -> Match:
    """Returns a match, without its certainty where a lost operation may have made the payment. Raises StoreError."""
    return doubted(match, await lost_sendings(case))
