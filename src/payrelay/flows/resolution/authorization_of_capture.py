"""Finds the authorization that a capture charges, where it was made through Payrelay."""

from payrelay.core.calls import Capture, Charge, Effect
from payrelay.core.payments.operation import Operation
from payrelay.core.secret import secret_hash
from payrelay.flows.relay import Relay


async def authorization_of_capture(relay: Relay, call: Capture, merchant: str) -> Operation | None:
    """Finds the operation that yielded the capture's token; None where Payrelay has none. Raises StoreError."""
    return await relay.journal.authorization_of(secret_hash(call.authorization_token), merchant)


async def charge_of_authorization(relay: Relay, authorization: Operation | None) -> Charge | None:
    """Reads the call that made an authorization; None where it isn't stored here. Raises StoreError."""
    call = None if authorization is None else await relay.journal.call_of(authorization.id)
    return call if isinstance(call, Charge) else None


async def charge_behind(relay: Relay, call: Effect, merchant: str) -> Charge | None:
    """Reads the call that made the authorization of a capture; None where it isn't stored here, or for other calls.

    Raises StoreError.
    """
    if not isinstance(call, Capture):
        return None
    return await charge_of_authorization(relay, await authorization_of_capture(relay, call, merchant))
