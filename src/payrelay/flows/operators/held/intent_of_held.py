"""Makes the request and the intent of a held operation again, from its row and its sealed call."""

import msgspec

from payrelay.core.access.credential import credential_for
from payrelay.core.calls import Capture, Charge, Effect, Refund, RetrySubscription
from payrelay.core.customers.customer import is_handle
from payrelay.core.payments.operation import Operation
from payrelay.core.payments.proof import with_plan
from payrelay.flows.payments.refund import with_payment
from payrelay.flows.payments.stored_customer import with_token
from payrelay.flows.refunds.limits import held_within_limits
from payrelay.flows.relay import Relay, Request
from payrelay.flows.requests.intent import Intent
from payrelay.flows.resolution.authorization_of_capture import expected_reply
from payrelay.flows.subscriptions.retry_subscription import payments_before


def request_of_held(relay: Relay, held: Operation) -> Request:
    """Makes the request again, in the name of its principal; what its credential had to allow was examined before.

    Raises Refusal (not_found) where its account isn't configured any more.
    """
    return Request(
        gateway=relay.account(held.account),
        credential=credential_for(held.principal, created_at_ms=held.created_at_ms),
        request_id=held.request_id,
        idempotency_key=held.idempotency_key,
    )


async def intent_of_held(relay: Relay, request: Request, held: Operation, call: Effect) -> Intent:
    """Makes the intent again, with what was stored nowhere: the customer's token, and what is known of the payment."""
    intent = Intent(
        kind=held.kind,
        call=call,
        subject=held.subject,
        order_id=held.order_id,
        payment_id=held.payment_id,
        subscription_id=held.subscription_id,
        amount_minor=held.amount_minor,
        currency=held.currency,
        customer_id=held.customer_id,
    )
    match call:
        case Charge(customer_token=customer) if is_handle(customer):
            return await with_token(relay, request, call, intent)
        case Capture():
            return msgspec.structs.replace(intent, expected=await expected_reply(relay, held, call))
        case Refund():
            intent = await with_payment(relay, request, call, intent)
            return await held_within_limits(relay, request, intent, call, held.id)
        case RetrySubscription():
            payments = await payments_before(relay, request, call)
            return msgspec.structs.replace(intent, evidence=with_plan(intent.evidence, payments))
    return intent
