"""Charges the installment of a subscription that failed."""

from payrelay.core.answers import Answer
from payrelay.core.calls import RetrySubscription
from payrelay.core.credentials import require_amount
from payrelay.core.operations import Kind
from payrelay.operations.effect import Intent, carry_out
from payrelay.operations.relay import Relay, Request


async def retry_subscription(relay: Relay, request: Request, call: RetrySubscription) -> Answer:
    """Asks the gateway at most once; while another retry or cancel of it is unsettled this one is refused.

    Raises Refusal (forbidden) for a credential with a largest amount: what an installment costs isn't known here.
    """
    require_amount(request.credential, None)
    intent = Intent(
        kind=Kind.RETRY,
        call=call,
        subject=f"subscription/{call.subscription_id}",
        subscription_id=str(call.subscription_id),
    )
    return await carry_out(relay, request, intent)
