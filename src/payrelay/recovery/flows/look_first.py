"""Looks at the gateway for the effect of an earlier try, whose operation may be lost, and judges what is there.

A look costs one search of the caller's own share of the budget, and a control query that all callers share.
"""

from functools import partial
from typing import Final

import msgspec

from payrelay.core.calls import Charge, PaymentsOfOrder, PaymentsOfSubscription, Refund, RetrySubscription
from payrelay.core.lost_commits.lost_effects import LookResult, result_of
from payrelay.core.outcomes import Evidence
from payrelay.core.payments.operation import Operation
from payrelay.core.payments.payment import NoObservation, Observation, Payment, PaymentsSeen
from payrelay.core.payments.proof import ABSENT, Control, Match, MatchResult, evidence_of, with_plan
from payrelay.flows.relay import Relay
from payrelay.flows.resolution.control_query import inquire_for, shared_control
from payrelay.recovery.flows.lost_matches import LostTry, match_for_lost_try
from payrelay.recovery.flows.unchanged import unchanged_since
from payrelay.store.payments.journal import Condition
from payrelay.store.payments.resolution import Standing

NO_ORDER: Final = Match(seen=MatchResult.NOTHING_TO_SEE)
"""The order of the payment is not known, and no search shows a payment without it."""


class Look(msgspec.Struct, frozen=True, kw_only=True):
    """What a look showed, and what follows from it.

    Attributes:
        result: what follows.
        payment: the payment that shows the effect; None where none does.
        evidence: all that was seen, for the history.
        operation: the operation of the request, as it would be stored.
        standing: how the other operations on the same thing stood before the gateway was asked.
    """

    result: LookResult
    payment: Payment | None
    evidence: Evidence
    operation: Operation
    standing: Standing

    def unchanged(self, also: Condition | None) -> Condition:
        """Returns the condition that what the look rests on still holds when the operation is stored."""
        return unchanged_since(self.operation, self.standing, also)


async def look(relay: Relay, tried: LostTry) -> Look:
    """Asks the gateway what an earlier try did, and judges the answer.

    Raises StoreError.
    """
    operation, call = tried.operation, tried.intent.call
    # Whatever is stored after this may have been sent after the gateway answered.
    standing = await relay.resolution.standing(operation)
    seen: Observation | None = None
    if isinstance(call, RetrySubscription):
        seen = await inquire_for(relay, tried.request, PaymentsOfSubscription(subscription_id=call.subscription_id))
    elif operation.order_id is not None:
        seen = await inquire_for(relay, tried.request, PaymentsOfOrder(order_id=operation.order_id))
    result, match, control = LookResult.HOLD, NO_ORDER, None
    if isinstance(seen, NoObservation):
        result, match = LookResult.WAIT, Match(seen=MatchResult.UNSEEN)
    elif seen is not None:
        payments = seen if isinstance(seen, PaymentsSeen) else PaymentsSeen(payments=(), evidence=seen.evidence)
        match = await match_for_lost_try(relay, tried, payments)
        control = await _control_beside(relay, tried, match)
        result = result_of(match, control)
    evidence = evidence_of(match, control, None if seen is None else seen.evidence)
    if isinstance(call, RetrySubscription) and isinstance(seen, PaymentsSeen):
        # A lost reply to a retry is resolved by all payments that were there before.
        evidence = with_plan(evidence, seen.payments)
    return Look(result=result, payment=match.payment, evidence=evidence, operation=operation, standing=standing)


async def _control_beside(relay: Relay, tried: LostTry, match: Match) -> Control | None:
    """Tells whether the search works; None where something was found. Makes a control query for a charge only."""
    call = tried.intent.call
    if match.seen not in ABSENT:
        return None
    if isinstance(call, Refund):  # the payment's own record is the control
        return Control.NOT_FOUND if match.seen is MatchResult.NOTHING else Control.FOUND
    if not isinstance(call, Charge):  # so are the subscription's earlier payments
        return Control.FOUND if match.payments_compared else Control.NONE_KNOWN
    ask = partial(inquire_for, relay, tried.request)
    return await shared_control(relay, tried.operation.merchant, tried.operation.order_id, ask)
