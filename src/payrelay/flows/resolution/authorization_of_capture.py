"""Finds the authorization that a capture charges, and its amount, where it was made through Payrelay."""

import msgspec

from payrelay.core.calls import Capture, Charge, Effect
from payrelay.core.checkouts.checkout import Checkout
from payrelay.core.payments.operation import Operation
from payrelay.core.secret import secret_hash
from payrelay.errors import CallCleared
from payrelay.flows.relay import Relay
from payrelay.gateways.gateway import ExpectedReply


async def authorization_of_capture(relay: Relay, call: Capture, merchant: str) -> Operation | None:
    """Finds the operation that yielded the capture's token; None where Payrelay has none. Raises StoreError."""
    return await relay.journal.authorization_of(secret_hash(call.authorization_token), merchant)


async def pages_of_capture(relay: Relay, operation: Operation, call: Capture) -> list[Checkout]:
    """Finds the checkouts for which the authorization that a capture charges was reported. Raises StoreError."""
    if operation.order_id is None:
        return []
    token_hash = secret_hash(call.authorization_token)
    return await relay.checkouts.of_authorization(operation.merchant, operation.order_id, token_hash)


async def expected_reply(relay: Relay, operation: Operation, call: Effect) -> ExpectedReply:
    """Returns what the reply to a resending must match beside the call; of a capture also the authorized amount.

    That amount is known where the authorization was made through Payrelay. Raises StoreError.
    """
    expected = ExpectedReply(order_id=operation.order_id, currency=operation.currency)
    if not isinstance(call, Capture):
        return expected
    authorization = await authorization_of_capture(relay, call, operation.merchant)
    amounts = set() if authorization is None else {authorization.amount_minor}
    if authorization is None:
        amounts = {each.amount_minor for each in await pages_of_capture(relay, operation, call)}
    return msgspec.structs.replace(expected, amount_minor=amounts.pop() if len(amounts) == 1 else None)


async def charge_of_authorization(relay: Relay, authorization: Operation | None) -> Charge | None:
    """Reads the call that made an authorization; None where it isn't stored here any more. Raises StoreError."""
    if authorization is None:
        return None
    try:
        call = await relay.journal.call_of(authorization.id)
    except CallCleared:
        return None
    return call if isinstance(call, Charge) else None


async def charge_behind(relay: Relay, call: Effect, merchant: str) -> Charge | None:
    """Reads the call that made the authorization of a capture; None where it isn't stored here, or for other calls.

    Raises StoreError.
    """
    if not isinstance(call, Capture):
        return None
    return await charge_of_authorization(relay, await authorization_of_capture(relay, call, merchant))
