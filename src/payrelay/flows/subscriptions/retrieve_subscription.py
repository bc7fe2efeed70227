"""Reads one subscription, with its payments where they are asked for."""

import msgspec

from payrelay.core.answers import Answer, Trace, with_member
from payrelay.core.calls import OneSubscription, PaymentsOfSubscription
from payrelay.errors import Code
from payrelay.flows.relay import Relay, Request


async def retrieve_subscription(
    relay: Relay, request: Request, call: OneSubscription, *, with_payments: bool
) -> Answer:
    """Answers with one object; with ``with_payments`` it has a member ``payments``, empty where there are none.

    That takes two calls to the gateway; where either fails, its failure is the answer.
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
