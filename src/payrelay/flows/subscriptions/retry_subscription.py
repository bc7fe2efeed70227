"""Charges the installment of a subscription that failed."""

import msgspec

from payrelay.core.access.credential import require_amount
from payrelay.core.answers import Answer
from payrelay.core.calls import PaymentsOfSubscription, RetrySubscription
from payrelay.core.payments.operation import Kind
from payrelay.core.payments.payment import NoObservation, Payment, PaymentsSeen
from payrelay.core.payments.proof import with_plan
from payrelay.errors import Code, Refusal
from payrelay.flows.payments.carry_out import carry_out
from payrelay.flows.relay import Relay, Request
from payrelay.flows.requests.intent import Intent
from payrelay.gateways.pacing.rate_limiter import Priority


async def retry_subscription(relay: Relay, request: Request, call: RetrySubscription) -> Answer:
    """Retries a subscription at most once; answers as ``carry_out`` does.

    The subscription's payments are read first, and stored with the intent: if the reply is lost, a new payment shows
    that the retry succeeded. Raises Refusal: conflict while another retry or cancellation of the subscription is
    unresolved; unavailable where the payments can't be read, and then nothing is sent. It is forbidden for a credential
    with a largest amount, because Payrelay doesn't know what an installment costs.
    """
    require_amount(request.credential, None)
    intent = Intent(
        kind=Kind.RETRY,
        call=call,
        subject=f"subscription/{call.subscription_id}",
        subscription_id=str(call.subscription_id),
    )

    async def with_payments(intent: Intent) -> Intent:
        payments = await payments_before(relay, request, call)
        return msgspec.structs.replace(intent, evidence=with_plan(intent.evidence, payments))

    return await carry_out(relay, request, intent, prepare=with_payments)


async def payments_before(relay: Relay, request: Request, call: RetrySubscription) -> tuple[Payment, ...]:
    """Returns the subscription's payments; raises Refusal where they can't be read."""
    account = request.gateway
    until_s = relay.clock.boot_s() + account.queue_s
    asked = PaymentsOfSubscription(subscription_id=call.subscription_id)
    observation = await account.inquire(
        asked, until_s=until_s, priority=Priority.READ, requester=request.credential.requester
    )
    if isinstance(observation, NoObservation):
        if observation.code is Code.NOT_FOUND:
            raise Refusal(Code.NOT_FOUND, observation.evidence.gateway_msg or "there is no such subscription")
        raise Refusal(
            Code.UNAVAILABLE,
            "the subscription's payments could not be read, which a retry needs beforehand; the retry was not sent",
        )
    return observation.payments if isinstance(observation, PaymentsSeen) else ()
