"""What the rows that were lost after an operation leave in doubt about it."""

from payrelay.core.payments.operation import sending_ms
from payrelay.core.payments.proof import Match, SendingWindow
from payrelay.flows.resolution.case import Case
from payrelay.recovery.rules.lost_effects import began_before_loss, doubted, sendings_of


async def lost_sendings(case: Case) -> list[SendingWindow]:
    """Returns when lost operations can have been sent after this one; none where nothing was lost since it began.

    Raises StoreError.
    """
    incarnations = (await case.relay.database.lost_commits.identity()).incarnations
    lost_windows = began_before_loss(case.operation, incarnations)
    return [sendings_of(lost, sending_ms(case.account.timeout_s)) for lost in lost_windows]


async def doubted_by_loss(case: Case, match: Match) -> Match:
    """Returns a match, without its certainty where a lost operation may have made the payment. Raises StoreError."""
    return doubted(match, await lost_sendings(case))
