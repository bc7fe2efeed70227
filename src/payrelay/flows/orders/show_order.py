"""Shows an order to a client: what was paid, held, given back, charged back and left, and what that comes from.

Rules:

1. The sums are of the whole order, also for a caller who may not read all of its payments, operations and pages. A
   credential of one customer is the exception: its sums are of the payments that aren't another customer's.
2. Payments, operations and pages are those that the caller may read on the routes of their own. Of the others there is
   a number, and no id.
3. An unknown order and a foreign one get one answer. The gateway isn't asked.
"""

from payrelay.core.answers import Answer, found
from payrelay.core.orders.figures import PaymentBalance
from payrelay.core.payments.payment import Payment, PaymentStatus
from payrelay.errors import Code, Refusal
from payrelay.flows.access.lost_owners import require_owned
from payrelay.flows.access.ownership import is_foreign_by_its_owners
from payrelay.flows.order_balance import balance_now
from payrelay.flows.orders.order_sight import sight_of
from payrelay.flows.orders.order_views import order_view
from payrelay.flows.relay import Relay, Request


async def show_order(relay: Relay, request: Request, order_id: str) -> Answer:
    """Answers with the balance of an order, its payments, and those operations and pages that the caller may read.

    Raises Refusal: not_found for an order of which nothing is known, and for a foreign one; unavailable where it, or
    payments of it, may be among lost commits. Raises StoreError.
    """
    merchant = relay.account(request.account).merchant
    owners, owned = await relay.access.owners.of_order_and_payments(merchant, order_id)
    facts = await relay.money.orders.facts_of_order(merchant, order_id)
    if not facts.is_known or await is_foreign_by_its_owners(relay, request, order_id, owners):
        await relay.database.lost_commits.require_known(None, "order")
        raise Refusal(Code.NOT_FOUND, "there is no such order")
    balance = await balance_now(relay, facts)
    await require_owned(relay, request, order_id, lambda: [_shown(each, order_id) for each in balance.payments])
    sight = await sight_of(relay, request, facts, balance, owned)
    return found(order_view(request, order_id, balance, sight))


def _shown(payment: PaymentBalance, order_id: str) -> Payment:
    """Gives a payment as one that the gateway shows, at a time that nobody knows."""
    return Payment(
        payment_id=payment.id,
        order_id=order_id,
        at_ms=None,
        description="",
        status=PaymentStatus.OTHER,
        currency=payment.currency or "",
        amount_minor=payment.paid_minor,
    )
