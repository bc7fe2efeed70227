"""What a look asks the gateway, out of the caller's share of its budget."""

from functools import partial

from payrelay.core.calls import Charge, PaymentsOfOrder, PaymentsOfSubscription, Refund
from payrelay.core.payments.payment import Observation
from payrelay.core.payments.proof import ABSENT, Control, Match, MatchResult
from payrelay.flows.relay import Relay, Request
from payrelay.flows.resolution.control_query import control_query
from payrelay.gateways.pacing.rate_limiter import Priority
from payrelay.recovery.flows.lost_matches import LostTry


async def control_beside(relay: Relay, tried: LostTry, match: Match) -> Control | None:
    """Tells whether the search works; None where something was found. Makes a control query for a charge only."""
    call = tried.intent.call
    if match.seen not in ABSENT:
        return None
    if isinstance(call, Refund):  # the payment's own record is the control
        return Control.NOT_FOUND if match.seen is MatchResult.NOTHING else Control.FOUND
    if not isinstance(call, Charge):  # so are the subscription's earlier payments
        return Control.FOUND if match.payments_compared else Control.NONE_KNOWN
    operation = tried.operation
    ask = partial(inquire, relay, tried.request)
    make = partial(control_query, relay, operation.merchant, operation.order_id, ask)
    return await relay.control_queries.result(operation.merchant, relay.clock, make)


async def inquire(relay: Relay, request: Request, call: PaymentsOfOrder | PaymentsOfSubscription) -> Observation:
    """Asks the gateway, out of the caller's share of the budget."""
    account = relay.account(request.account)
    until_s = relay.clock.boot_s() + account.queue_s
    requester = request.credential.requester
    return await account.inquire(call, until_s=until_s, priority=Priority.READ, requester=requester)
