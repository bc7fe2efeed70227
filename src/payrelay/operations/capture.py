"""Captures the whole or a part of what an authorization holds; once, for the rest is released."""

from payrelay.core.answers import Answer
from payrelay.core.calls import Capture
from payrelay.core.credentials import require_amount
from payrelay.core.idempotency import secret_hash
from payrelay.core.operations import Kind, captured_guard
from payrelay.gateways.payhere.client import Expected
from payrelay.operations.effect import Intent, carry_out
from payrelay.operations.relay import Relay, Request


async def capture(relay: Relay, request: Request, call: Capture) -> Answer:
    """Captures at most once; a hold that we captured before is refused (conflict) without asking the gateway.

    Where the hold was made through us, the reply must be for its order and currency.
    Raises Refusal (forbidden) over the credential's largest amount.
    """
    require_amount(request.credential, call.amount_minor)
    token_hash = secret_hash(call.authorization_token)
    subject = f"authorization/{token_hash}"
    merchant = relay.account(request.account).merchant
    hold = await relay.journal.authorization_of(token_hash, merchant)
    intent = Intent(
        kind=Kind.CAPTURE,
        call=call,
        subject=subject,
        barred_by=captured_guard(subject),
        expected=Expected() if hold is None else Expected(order_id=hold.order_id, currency=hold.currency),
        order_id=None if hold is None else hold.order_id,
        amount_minor=call.amount_minor,
        currency=None if hold is None else hold.currency,
    )
    return await carry_out(relay, request, intent)
