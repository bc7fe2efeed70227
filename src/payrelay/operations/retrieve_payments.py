"""Reads the successful payments of an order."""

from payrelay.core.answers import Answer, Trace, of_reading
from payrelay.core.calls import PaymentsOfOrder
from payrelay.operations.relay import Relay, Request


async def retrieve_payments(relay: Relay, request: Request, call: PaymentsOfOrder) -> Answer:
    """Answers with the gateway's records; 404 with an empty list where the order has no payment."""
    reading = await relay.read(request.account, call)
    return of_reading(reading, Trace(request_id=request.request_id), data_when_missing=b"[]")
