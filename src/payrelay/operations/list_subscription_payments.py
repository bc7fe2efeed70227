"""Reads the payments of one subscription."""

from payrelay.core.answers import Answer, Trace, of_reading
from payrelay.core.calls import PaymentsOfSubscription
from payrelay.operations.relay import Relay, Request


async def list_subscription_payments(relay: Relay, request: Request, call: PaymentsOfSubscription) -> Answer:
    """Answers with the gateway's records, in its order; 404 with an empty list where there are none."""
    reading = await relay.read(request.account, call)
    return of_reading(reading, Trace(request_id=request.request_id), data_when_missing=b"[]")
