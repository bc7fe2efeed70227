"""An order is paid in one way at a time: what it has already keeps a further charge of it out.

Rules:

1. While a page of the order asks for money, no charge or authorization of it begins; while one of these is open, no
   such page is opened (``flows.checkouts.open_checkout``). Each of the two stores its own row, and looks for the other
   one's after that commit and before anything goes out. So at least one of two that begin at once sees the other.
2. An app's repeat doesn't charge again what was paid before Payrelay, where its first try went another way.
"""

from typing import Final

from payrelay.core.access.ownership import OrderOwners
from payrelay.core.payments.payment import PaymentStatus
from payrelay.errors import Code, Refusal
from payrelay.flows.relay import Relay, Request
from payrelay.flows.requests.intent import Intent
from payrelay.flows.requests.other_flows import OrderPages

PAID_SENTENCE: Final = (
    "this order was paid with an equal amount shortly before its payments were imported;"
    " to charge it once more, send an Idempotency-Key"
)


async def require_free(relay: Relay, request: Request, intent: Intent, owners: OrderOwners) -> None:
    """Raises Refusal for a charge of an order that is being paid otherwise, or that may repeat an imported payment.

    It is in_progress where a page may be paid; a page whose time is over is ended first. It is conflict for a charge
    without an Idempotency-Key, where an imported payment of an equal amount was made within the repeat window.
    ``owners`` are those of the intent's subject, and nobody where that is no order. Raises StoreError.
    """
    if owners.open_pages:
        await relay.find(OrderPages).require_over(relay, request, owners)
    if owners.is_imported:
        await _require_unpaid_before(relay, request, intent)


async def require_no_page(relay: Relay, request: Request, owners: OrderOwners) -> None:
    """Raises Refusal (in_progress) where a page of the order was opened while a charge of it was stored; StoreError."""
    if owners.open_pages:
        await relay.find(OrderPages).require_none(relay, request, owners)


async def _require_unpaid_before(relay: Relay, request: Request, intent: Intent) -> None:
    if request.idempotency_key is not None or relay.settings.retention.unkeyed_ms == 0 or intent.order_id is None:
        return
    since_ms = relay.clock.now_ms() - relay.settings.retention.unkeyed_ms
    merchant = request.gateway.merchant
    for payment in await relay.money.imported_payments.of_order(merchant, intent.order_id):
        is_equal = (payment.amount_minor, payment.currency) == (intent.amount_minor, intent.currency)
        if is_equal and payment.status is PaymentStatus.RECEIVED and payment.latest_ms >= since_ms:
            raise Refusal(Code.CONFLICT, PAID_SENTENCE)
