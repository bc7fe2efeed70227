"""Reads subscriptions and their payments from the gateway, or from the read cache."""

import msgspec

from payrelay.core.answers import Answer, Trace, with_member
from payrelay.core.calls import AllSubscriptions, OneSubscription, PaymentsOfSubscription
from payrelay.errors import Code
from payrelay.flows.relay import Relay, Request


async def list_subscriptions(relay: Relay, request: Request, call: AllSubscriptions) -> Answer:
    """Answers with the gateway's records of all subscriptions of the merchant, in its order."""
    reading = await relay.read(request, call)
    return reading.answer(Trace(request_id=request.request_id), data_when_missing=b"[]")


async def list_subscription_payments(relay: Relay, request: Request, call: PaymentsOfSubscription) -> Answer:
    """Answers with the gateway's records of a subscription's payments; 404 with an empty list where there are none."""
    reading = await relay.read(request, call)
    return reading.answer(Trace(request_id=request.request_id), data_when_missing=b"[]")


async def retrieve_subscription(
    relay: Relay, request: Request, call: OneSubscription, *, with_payments: bool
) -> Answer:
    """Answers with one subscription; ``with_payments`` adds a member ``payments``, empty where there are none.

    That takes two calls to the gateway. Where either fails, its failure is the answer.
    """
    trace = Trace(request_id=request.request_id)
    subscription = await relay.read(request, call)
    if not with_payments or subscription.reading.code is not None:
        return subscription.answer(trace)
    payments = await relay.read(request, PaymentsOfSubscription(subscription_id=call.subscription_id))
    if payments.reading.code not in {None, Code.NOT_FOUND}:
        return payments.answer(trace)
    raw_payments = (payments.reading.raw_data if payments.reading.code is None else None) or b"[]"
    raw_data = with_member(subscription.reading.raw_data or b"{}", "payments", raw_payments)
    both = msgspec.structs.replace(subscription.reading, raw_data=raw_data)
    return subscription.beside(payments, both).answer(trace)
