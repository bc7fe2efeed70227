"""Finds the hold that a capture takes its money from, where it was made through us."""

from payrelay.core.calls import Capture, Charge, Effect
from payrelay.core.payments.operation import Operation
from payrelay.core.secret import secret_hash
from payrelay.flows.relay import Relay


async def authorization_of_capture(relay: Relay, call: Capture, merchant: str) -> Operation | None:
    """Finds the operation that yielded the capture's token; None where it was made otherwise. Raises StoreError."""
    return await relay.journal.authorization_of(secret_hash(call.authorization_token), merchant)


async def charge_of_authorization(relay: Relay, authorization: Operation | None) -> Charge | None:
    """Reads what was asked for when the money was held; None where that isn't known here. Raises StoreError."""
    made = None if authorization is None else await relay.journal.call_of(authorization.id)
    return made if isinstance(made, Charge) else None


async def charge_behind(relay: Relay, call: Effect, merchant: str) -> Charge | None:
    """Reads what was asked for when the money was held that a capture takes; None for every other call.

    None also where that isn't known here. Raises StoreError.
    """
    if not isinstance(call, Capture):
        return None
    return await charge_of_authorization(relay, await authorization_of_capture(relay, call, merchant))
