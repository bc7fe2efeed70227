"""Reads the successful payments of an order."""

from payrelay.core.answers import Answer, Trace
from payrelay.core.calls import PaymentsOfOrder
from payrelay.operations.relay import Relay, Request


async def retrieve_payments(relay: Relay, request: Request, call: PaymentsOfOrder) -> Answer:
    """Answers with the gateway's records; 404 with an empty list where the order has no payment."""
    told = await relay.read(request, call)
    return told.answer(Trace(request_id=request.request_id), data_when_missing=b"[]")
