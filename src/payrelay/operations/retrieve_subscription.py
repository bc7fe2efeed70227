"""Reads one subscription, with its payments where they are asked for."""

import msgspec

from payrelay.core.answers import Answer, Trace, of_reading, with_member
from payrelay.core.calls import OneSubscription, PaymentsOfSubscription
from payrelay.errors import Code
from payrelay.operations.relay import Relay, Request


async def retrieve_subscription(
    relay: Relay, request: Request, call: OneSubscription, *, with_payments: bool
) -> Answer:
    """Answers with one object; with ``with_payments`` it has a member ``payments``, empty where there are none.

    That takes two calls to the gateway; where either fails, its failure is the answer.
    """
    trace = Trace(request_id=request.request_id)
    subscription = await relay.read(request.account, call)
    if not with_payments or subscription.code is not None:
        return of_reading(subscription, trace)
    payments = await relay.read(request.account, PaymentsOfSubscription(subscription_id=call.subscription_id))
    if payments.code not in {None, Code.NOT_FOUND}:
        return of_reading(payments, trace)
    raw_payments = (payments.raw_data if payments.code is None else None) or b"[]"
    raw_data = with_member(subscription.raw_data or b"{}", "payments", raw_payments)
    return of_reading(msgspec.structs.replace(subscription, raw_data=raw_data), trace)
