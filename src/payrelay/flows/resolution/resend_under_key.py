"""Resolves an operation by sending it once more under its own key, where the gateway keeps idempotency keys."""

from functools import partial
from typing import Final

from payrelay.core.outcomes import Outcome, OutcomeKind
from payrelay.core.payments.operation import Event, Kind, State
from payrelay.core.payments.proof import TOLERANCE_MS
from payrelay.flows.resolution.case import Case
from payrelay.flows.resolution.resend import (
    GRACE_S,
    SEND_WITHIN_S,
    conclude,
    may_resend_from_ms,
    resend,
    resending_until_ms,
)

CONCLUSIVE: Final = frozenset({OutcomeKind.SUCCEEDED, OutcomeKind.DECLINED, OutcomeKind.REFUSED, OutcomeKind.DIFFERED})
"""Outcomes of a resending under a known key that are the outcome of the first sending."""


async def resolve_under_key(case: Case) -> None:
    """Sends once more under the operation's id: a gateway that knows the id gives its first answer again.

    Where the first sending never arrived, this one takes effect. So nothing is sent while the account is paused.
    """
    under_way_ms, may_resend_ms = resending_until_ms(case), may_resend_from_ms(case)
    if under_way_ms is not None:
        await case.postpone(under_way_ms)
    elif case.now_ms < may_resend_ms:
        await case.postpone(may_resend_ms)
    elif not await _may_send(case):
        await case.no_observation()
    elif not case.is_urgent or not case.has_entry(Event.RESENT_TO_RESOLVE):
        await resend(case, _store_outcome, may_send=partial(_may_send, case))


def is_key_kept(case: Case) -> bool:
    """Tells whether the gateway surely still keeps the operation's key while a resending begun now is under way.

    False for a charge by a stored customer's handle: the call that was sent is stored nowhere, and another call must
    not use the key. False for an authorization: its token must be stored with the answer, and only the flow that began
    it does that. False for an operation that the gateway called pending.
    """
    kept_ms, operation = case.account.capabilities.keys_kept_ms, case.operation
    is_whole = operation.customer_id is None and operation.kind is not Kind.AUTHORIZATION
    if kept_ms is None or operation.state is not State.UNKNOWN or not is_whole:
        return False
    lasts_ms = int((SEND_WITHIN_S + case.account.timeout_s + GRACE_S) * 1000)
    return case.now_ms + lasts_ms < case.span.began_ms + kept_ms - TOLERANCE_MS


async def _may_send(case: Case) -> bool:
    return not await case.relay.paused.is_paused(case.operation.account)


async def _store_outcome(case: Case, outcome: Outcome) -> None:
    if outcome.kind in CONCLUSIVE:
        await conclude(case, outcome)
    else:
        await case.no_observation()
