"""Reads every subscription of the merchant."""

from payrelay.core.answers import Answer, Trace, of_reading
from payrelay.core.calls import AllSubscriptions
from payrelay.operations.relay import Relay, Request


async def list_subscriptions(relay: Relay, request: Request, call: AllSubscriptions) -> Answer:
    """Answers with the gateway's records, in its order."""
    reading = await relay.read(request.account, call)
    return of_reading(reading, Trace(request_id=request.request_id), data_when_missing=b"[]")
