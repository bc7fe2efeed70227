"""Sends once more under the operation's own key, where the gateway keeps such keys."""

from functools import partial
from typing import Final

from payrelay.core.outcomes import Outcome, OutcomeKind
from payrelay.core.payments.operation import Event, Kind, State
from payrelay.core.payments.proof import TOLERANCE_MS
from payrelay.flows.resolution.case import Case
from payrelay.flows.resolution.resend import GRACE_S, SEND_WITHIN_S, conclude, send_again, sending_until_ms

TOLD_BY_KEY: Final = frozenset({OutcomeKind.SUCCEEDED, OutcomeKind.DECLINED, OutcomeKind.REFUSED, OutcomeKind.DIFFERED})
"""Replies to a sending under a known key that tell what the first one came to."""


async def resolve_under_key(case: Case) -> None:
    """Sends once more under the operation's id: a gateway that knows it answers as it did the first time.

    Where the first never arrived, this one is the first: so nothing is sent while an operator has paused the account.
    """
    may_send_from_ms = case.span.began_ms + int(case.account.timeout_s * 1000)
    under_way_ms = sending_until_ms(case)
    if under_way_ms is not None:
        await case.put_off(under_way_ms)
    elif case.now_ms < may_send_from_ms:
        await case.put_off(may_send_from_ms)
    elif await case.relay.paused.is_paused(case.operation.account):
        await case.could_not_inquire()
    elif not case.is_urgent or not case.has_entry(Event.RESENT_TO_RESOLVE):
        await send_again(case, _read_under_key, may_send=partial(_is_open, case))


def is_key_kept(case: Case) -> bool:
    """Tells whether the gateway surely still knows the operation by its key when that is sent again now.

    Not of a charge by a stored customer's handle: what was sent of it is stored nowhere, and another call under the
    key would be another one. Not of a hold: its token would have to be kept with the answer, which only the story that
    began it does. Nor of what the gateway has called pending.
    """
    kept_ms, operation = case.account.capabilities.keys_kept_ms, case.operation
    is_whole = operation.customer_id is None and operation.kind is not Kind.AUTHORIZATION
    if kept_ms is None or operation.state is not State.UNKNOWN or not is_whole:
        return False
    lasts_ms = int((SEND_WITHIN_S + case.account.timeout_s + GRACE_S) * 1000)
    return case.now_ms + lasts_ms < case.span.began_ms + kept_ms - TOLERANCE_MS


async def _is_open(case: Case) -> bool:
    return not await case.relay.paused.is_paused(case.operation.account)


async def _read_under_key(case: Case, outcome: Outcome) -> None:
    if outcome.kind in TOLD_BY_KEY:
        await conclude(case, outcome)
    else:
        await case.could_not_inquire()
