"""What a customer's browser finds at the pages of a checkout: the form to go on with, or the outcome as we know it.

Whoever knows the secret in the address may see the page. What else stands in an address is not looked at.
"""

import hmac

import msgspec

from payrelay.core.checkouts.checkout import LEFT_OPEN_MS, Checkout, CheckoutState, Details
from payrelay.core.checkouts.return_links import with_outcome
from payrelay.flows.checkouts.finish_checkout import end_overdue, inquire, note_abandoned
from payrelay.flows.checkouts.open_checkout import secret_hash_of, way_on
from payrelay.flows.relay import Relay
from payrelay.gateways.gateway import CheckoutForm, CheckoutRedirect


class CheckoutVisit(msgspec.Struct, frozen=True, kw_only=True):
    """What is to be shown.

    Attributes:
        checkout: as it stands now.
        details: what it is about; None where that was forgotten.
        way: on to the gateway, a form to be posted or an address; None where it takes no customer.
        is_paid_otherwise: whether another checkout of the same order was completed.
        is_paused: whether an operator lets nobody go on from this account's pages now.
        onward: the app's own link with the outcome; None where it has none.
    """

    checkout: Checkout
    details: Details | None
    way: CheckoutForm | CheckoutRedirect | None = None
    is_paid_otherwise: bool = False
    is_paused: bool = False
    onward: str | None = None


async def visit(relay: Relay, account: str, checkout_id: str, secret: str) -> CheckoutVisit | None:
    """Gives what is at a checkout's page: as often as it is opened the same way on, while it takes customers.

    None where there is no such page. Raises StoreError, and Refusal where the account isn't configured as it was.
    """
    checkout = await _found(relay, account, checkout_id, secret)
    if checkout is None:
        return None
    checkouts, now_ms = relay.checkouts, relay.clock.now_ms()
    details = await checkouts.details_of(checkout.id)
    is_offered = not relay.account(account).capabilities.unset_for_checkouts
    if checkout.is_open and checkout.ends_at_ms <= now_ms:
        checkout = await end_overdue(relay, checkout)
    if details is None or not is_offered or not checkout.takes_customers(now_ms):
        return CheckoutVisit(checkout=checkout, details=details, onward=_onward(checkout, details, is_cancelled=False))
    others = await checkouts.of_order(checkout.merchant, checkout.order_id)
    if any(other.state is CheckoutState.COMPLETED for other in others):
        return CheckoutVisit(checkout=checkout, details=details, is_paid_otherwise=True)
    if await relay.paused.is_paused(account):
        return CheckoutVisit(checkout=checkout, details=details, is_paused=True)
    if checkout.opened_at_ms is None:
        await checkouts.mark_opened(checkout.id, now_ms, left_open_ms=LEFT_OPEN_MS)
    return CheckoutVisit(checkout=checkout, details=details, way=await way_on(relay, checkout, details))


async def come_back(
    relay: Relay, account: str, checkout_id: str, secret: str, *, is_cancelled: bool
) -> CheckoutVisit | None:
    """Gives what a customer finds who comes back from the gateway, by its way for those who cancel or the other one.

    The gateway is asked where that may tell more. None where there is no such page. Raises StoreError and Refusal.
    """
    checkout = await _found(relay, account, checkout_id, secret)
    if checkout is None:
        return None
    checkout = await (note_abandoned(relay, checkout) if is_cancelled else inquire(relay, checkout))
    details = await relay.checkouts.details_of(checkout.id)
    return CheckoutVisit(
        checkout=checkout, details=details, onward=_onward(checkout, details, is_cancelled=is_cancelled)
    )


async def _found(relay: Relay, account: str, checkout_id: str, secret: str) -> Checkout | None:
    checkout = await relay.checkouts.get(checkout_id)
    if checkout is None or checkout.account != account:
        return None
    return checkout if hmac.compare_digest(checkout.secret_hash, secret_hash_of(secret)) else None


def _onward(checkout: Checkout, details: Details | None, *, is_cancelled: bool) -> str | None:
    if details is None:
        return None
    link = details.return_to
    if is_cancelled and checkout.state is not CheckoutState.COMPLETED:
        link = details.cancel_to or details.return_to
    return None if link is None else with_outcome(link, checkout.id, checkout.state)
