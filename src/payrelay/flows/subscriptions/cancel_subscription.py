"""Cancels a subscription for good."""

from http import HTTPStatus

from payrelay.core.answers import Answer
from payrelay.core.calls import CancelSubscription
from payrelay.core.payments.operation import Kind
from payrelay.flows.payments.carry_out import carry_out
from payrelay.flows.relay import Relay, Request
from payrelay.flows.requests.intent import Intent
from payrelay.flows.subscription_notes import note_cancelled
from payrelay.store.subscriptions import SubscriptionOwner


async def cancel_subscription(relay: Relay, request: Request, call: CancelSubscription) -> Answer:
    """Cancels a subscription at most once, and stores its new state; answers as ``carry_out`` does.

    Raises Refusal (conflict) while another retry or cancellation of the subscription is unresolved.
    """
    intent = Intent(
        kind=Kind.CANCEL,
        call=call,
        subject=f"subscription/{call.subscription_id}",
        subscription_id=str(call.subscription_id),
    )
    answer = await carry_out(relay, request, intent)
    if answer.http_status == HTTPStatus.OK:
        owner = SubscriptionOwner(account=request.account, merchant=request.gateway.merchant)
        now_ms, log = relay.clock.now_ms(), relay.log
        await note_cancelled(relay.subscriptions, owner, str(call.subscription_id), now_ms=now_ms, log=log)
    return answer
