"""Captures the whole or a part of what an authorization holds; once, for the rest is released."""

import msgspec

from payrelay.core.access.credential import require_amount
from payrelay.core.answers import Answer
from payrelay.core.calls import Capture
from payrelay.core.payments.operation import Kind, captured_guard
from payrelay.core.secret import secret_hash
from payrelay.flows.payments.authorization_of_checkout import authorization_of_checkout
from payrelay.flows.payments.carry_out import carry_out
from payrelay.flows.payments.intent import Intent
from payrelay.flows.relay import Relay, Request
from payrelay.gateways.gateway import ExpectedReply


async def capture(relay: Relay, request: Request, call: Capture) -> Answer:
    """Captures at most once; a hold that we captured before is refused (conflict) without asking the gateway.

    Where the hold was made through us, the reply must be for its order and currency. In place of the hold's token the
    call may name the checkout that yielded it.
    Raises Refusal (forbidden) over the credential's largest amount.
    """
    require_amount(request.credential, call.amount_minor)
    held = await authorization_of_checkout(relay, request, call.authorization_token)
    if held is not None:
        call = msgspec.structs.replace(call, authorization_token=held.token)
    token_hash = secret_hash(call.authorization_token)
    subject = f"authorization/{token_hash}"
    merchant = relay.account(request.account).merchant
    authorization = await relay.journal.authorization_of(token_hash, merchant)
    made = authorization if held is None else held.checkout
    intent = Intent(
        kind=Kind.CAPTURE,
        call=call,
        subject=subject,
        conflicts_with=captured_guard(subject),
        expected=ExpectedReply() if made is None else ExpectedReply(order_id=made.order_id, currency=made.currency),
        order_id=None if made is None else made.order_id,
        amount_minor=call.amount_minor,
        currency=None if made is None else made.currency,
    )
    return await carry_out(relay, request, intent)
