"""Charges a customer who has approved it, or holds the money (``authorize``)."""

from payrelay.core.answers import Answer
from payrelay.core.calls import Charge
from payrelay.core.credentials import require_amount
from payrelay.core.operations import Kind
from payrelay.operations.effect import Intent, carry_out
from payrelay.operations.relay import Relay, Request


async def charge(relay: Relay, request: Request, call: Charge) -> Answer:
    """Charges at most once; see ``effect.carry_out`` for repeats.

    While another charge of the same order is unsettled, whoever asked for it, this one is refused (in_progress).
    Raises Refusal (forbidden) over the credential's largest amount.
    """
    require_amount(request.credential, call.amount_minor)
    intent = Intent(
        kind=Kind.AUTHORIZATION if call.authorize else Kind.CHARGE,
        call=call,
        subject=f"order/{call.order_id}",
        order_id=call.order_id,
        amount_minor=call.amount_minor,
        currency=call.currency,
    )
    return await carry_out(relay, request, intent)
