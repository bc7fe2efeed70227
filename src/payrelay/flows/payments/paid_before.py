"""Keeps an app's repeat from charging again what was paid before Payrelay: its first try went another way."""

from typing import Final

from payrelay.core.payments.payment import PaymentStatus
from payrelay.errors import Code, Refusal
from payrelay.flows.operations.intent import Intent
from payrelay.flows.relay import Relay, Request

PAID_SENTENCE: Final = (
    "this order was paid with an equal amount shortly before its payments were imported;"
    " to charge it once more, send an Idempotency-Key"
)


async def require_unpaid_before(relay: Relay, request: Request, intent: Intent) -> None:
    """Raises Refusal (conflict) for a charge that may repeat one that was made before Payrelay, and was imported.

    It has no Idempotency-Key, its order has an imported payment of an equal amount, and that was made within the time
    in which Payrelay takes equal requests without a key for one. Raises StoreError.
    """
    if request.idempotency_key is not None or relay.retention.unkeyed_ms == 0 or intent.order_id is None:
        return
    since_ms = relay.clock.now_ms() - relay.retention.unkeyed_ms
    merchant = relay.account(request.account).merchant
    for payment in await relay.imported_payments.of_order(merchant, intent.order_id):
        is_equal = (payment.amount_minor, payment.currency) == (intent.amount_minor, intent.currency)
        if is_equal and payment.status is PaymentStatus.RECEIVED and payment.latest_ms >= since_ms:
            raise Refusal(Code.CONFLICT, PAID_SENTENCE)
