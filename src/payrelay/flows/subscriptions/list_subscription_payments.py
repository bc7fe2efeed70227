"""Reads the payments of one subscription."""

from payrelay.core.answers import Answer, Trace
from payrelay.core.calls import PaymentsOfSubscription
from payrelay.flows.relay import Relay, Request


async def list_subscription_payments(relay: Relay, request: Request, call: PaymentsOfSubscription) -> Answer:
    """Answers with the gateway's records, in its order; 404 with an empty list where there are none."""
    told = await relay.read(request, call)
    return told.answer(Trace(request_id=request.request_id), data_when_missing=b"[]")
