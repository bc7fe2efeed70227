"""An order is paid in one way at a time: what it has already keeps a further charge of it out.

Rules:

1. While a page of the order asks for money, no charge or authorization of it begins; while one of these is open, no
   such page is opened (``flows.checkouts.open_checkout``). Each of the two stores its own row, and looks for the other
   one's after that commit and before anything goes out. So at least one of two that begin at once sees the other.
2. An app's repeat doesn't charge again what was paid before Payrelay, where its first try went another way.
"""

from typing import Final

from payrelay.core.access.ownership import OrderOwners
from payrelay.core.checkouts.checkout import Checkout, CheckoutState, is_within
from payrelay.core.orders.figures import Figure
from payrelay.core.payments.payment import PaymentStatus
from payrelay.errors import Code, Refusal
from payrelay.flows.checkouts.finish_checkout import end_hold, end_overdue
from payrelay.flows.operations.answer_repeat import (
    FOREIGN_RETRY_AFTER_S,
    OTHER_ORDER_SENTENCE,
    RETRY_AFTER_S_MAX,
    seconds_until,
)
from payrelay.flows.operations.intent import Intent
from payrelay.flows.order_balance import read_balance
from payrelay.flows.relay import Relay, Request

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
    for page_id in owners.open_pages:
        page = await relay.checkouts.get(page_id)
        if page is not None and page.is_open and page.ends_at_ms <= relay.clock.now_ms():
            page = await end_overdue(relay, page)
        await _require_over(relay, request, page)
    if owners.is_imported:
        await _require_unpaid_before(relay, request, intent)


async def require_no_page(relay: Relay, request: Request, owners: OrderOwners) -> None:
    """Raises Refusal (in_progress) where a page of the order was opened while a charge of it was stored; StoreError."""
    for page_id in owners.open_pages:
        await _require_over(relay, request, await relay.checkouts.get(page_id))


async def _require_over(relay: Relay, request: Request, page: Checkout | None) -> None:
    """Raises Refusal for a page that may be paid, or whose hold stands. A forged page is None, and may be paid."""
    page = None if page is None else await end_hold(relay, page)
    if page is None or page.is_open or await _is_held(relay, page):
        raise _being_paid(relay, request, page)


async def _is_held(relay: Relay, page: Checkout) -> bool:
    """Tells whether nothing was taken of a notified page's hold, which isn't over, as far as is known here."""
    if page.state is not CheckoutState.NOTIFIED:
        return False
    balance = await read_balance(relay, page.merchant, page.order_id)
    of_page = [each for each in balance.payments if page.id in {origin.id for origin in each.of(Figure.HELD)}]
    return not any(each.of(Figure.PAID) for each in of_page)


def _being_paid(relay: Relay, request: Request, page: Checkout | None) -> Refusal:
    """Makes the refusal of a charge; it names the page where that is the caller's own. A forged page is None."""
    is_own = (
        page is not None
        and page.principal == request.principal
        and is_within(page, request.credential.bound, relay.checkouts.reference_hash)
    )
    if page is None or not is_own:
        msg = f"a page on which a customer may be paying this order is open; {OTHER_ORDER_SENTENCE}"
        return Refusal(Code.IN_PROGRESS, msg, retry_after_s=FOREIGN_RETRY_AFTER_S)
    ways_out = (
        f"capture or void its authorization; {OTHER_ORDER_SENTENCE}"
        if page.state is CheckoutState.NOTIFIED
        else f"wait for its outcome, or close it with DELETE checkouts/{page.id}; {OTHER_ORDER_SENTENCE}"
    )
    msg = f"the customer may be paying this order by the checkout {page.id}, which is {page.state}: {ways_out}"
    return Refusal(Code.IN_PROGRESS, msg, retry_after_s=_wait_s(page, relay.clock.now_ms()), checkout_id=page.id)


def _wait_s(page: Checkout, now_ms: int) -> int:
    """Gives when to come again: after the next look at the gateway. None is due for a page whose hold was reported.

    Once the first look is due, somebody has to ask for it; what comes for certain is the one at the end of the page.
    """
    looks = [each for each in (page.inquire_at_ms, page.ends_at_ms) if each > now_ms]
    return seconds_until(min(looks), now_ms) if page.is_open and looks else RETRY_AFTER_S_MAX


async def _require_unpaid_before(relay: Relay, request: Request, intent: Intent) -> None:
    if request.idempotency_key is not None or relay.settings.retention.unkeyed_ms == 0 or intent.order_id is None:
        return
    since_ms = relay.clock.now_ms() - relay.settings.retention.unkeyed_ms
    merchant = relay.account(request.account).merchant
    for payment in await relay.money.imported_payments.of_order(merchant, intent.order_id):
        is_equal = (payment.amount_minor, payment.currency) == (intent.amount_minor, intent.currency)
        if is_equal and payment.status is PaymentStatus.RECEIVED and payment.latest_ms >= since_ms:
            raise Refusal(Code.CONFLICT, PAID_SENTENCE)
