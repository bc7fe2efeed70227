"""Captures an authorization in whole or in part, and only once: the gateway releases the remainder."""

from payrelay.core.access.credential import require_amount
from payrelay.core.answers import Answer
from payrelay.core.calls import Capture
from payrelay.core.payments.operation import Kind, captured_guard
from payrelay.flows.payments.carry_out import carry_out
from payrelay.flows.payments.named_authorization import named_authorization
from payrelay.flows.relay import Relay, Request
from payrelay.flows.requests.intent import Intent
from payrelay.gateways.gateway import ExpectedReply


async def capture(relay: Relay, request: Request, call: Capture) -> Answer:
    """Captures at most once; an authorization that Payrelay captured or voided is refused (conflict) without a call.

    Where the authorization was made through Payrelay, the reply must be for its order, amount and currency. In place of
    the authorization token the call may name the checkout that yielded it; a success then completes that checkout. See
    ``carry_out`` for repeats.
    Raises Refusal (forbidden) over the credential's largest amount.
    """
    require_amount(request.credential, call.amount_minor)
    named = await named_authorization(relay, request, call)
    if isinstance(named, Answer):
        return named
    made_by = named.made_by
    order_id, currency = (None, None) if made_by is None else (made_by.order_id, made_by.currency)
    authorized_minor = None if made_by is None else made_by.amount_minor
    intent = Intent(
        kind=Kind.CAPTURE,
        call=named.call,
        subject=named.subject,
        conflicts_with=captured_guard(named.subject),
        expected=ExpectedReply(order_id=order_id, currency=currency, amount_minor=authorized_minor),
        order_id=order_id,
        amount_minor=call.amount_minor,
        currency=currency,
    )
    return await carry_out(relay, request, intent)
