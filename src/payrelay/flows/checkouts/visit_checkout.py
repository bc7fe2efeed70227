"""Serves the pages of a checkout to the customer's browser: the form that leads to the gateway, or the known outcome.

Whoever knows the secret in the address may see the page. The rest of the address is ignored.
"""

import hmac

import msgspec

from payrelay.core.checkouts.checkout import LEFT_OPEN_MS, Checkout, CheckoutState, Details
from payrelay.core.checkouts.return_links import with_outcome
from payrelay.flows.checkouts.finish_checkout import RETURNED, end_overdue, inquire, note_abandoned
from payrelay.flows.checkouts.open_checkout import link_to_gateway, secret_hash_of
from payrelay.flows.relay import Relay
from payrelay.gateways.gateway import CheckoutForm, CheckoutRedirect


class CheckoutVisit(msgspec.Struct, frozen=True, kw_only=True):
    """What a page of a checkout shows.

    Attributes:
        checkout: in its current state.
        details: the request and its links; None where they were forgotten.
        link_to_gateway: a form to be posted, or an address; None where the checkout takes no customers.
        is_order_paid: whether another checkout of the order was completed.
        is_order_notified: whether the gateway reported the authorization of another checkout of the order.
        is_paused: whether an operator has paused the account.
        return_link: the app's own link, with the outcome; None where the app gave none.
    """

    checkout: Checkout
    details: Details | None
    link_to_gateway: CheckoutForm | CheckoutRedirect | None = None
    is_order_paid: bool = False
    is_order_notified: bool = False
    is_paused: bool = False
    return_link: str | None = None


async def visit_checkout(relay: Relay, account: str, checkout_id: str, secret: str) -> CheckoutVisit | None:
    """Returns what a checkout's page shows; None where there is no such page.

    While the checkout takes customers, each visit gives an equal link to the gateway. Raises StoreError, and Refusal
    where the account's configuration has changed so that it offers no such link.
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
        return _returned(checkout, details, is_cancelled=False)
    others = await checkouts.of_order(checkout.merchant, checkout.order_id)
    if any(other.state is CheckoutState.COMPLETED for other in others):
        return CheckoutVisit(checkout=checkout, details=details, is_order_paid=True)
    if any(other.state is CheckoutState.NOTIFIED for other in others):
        return CheckoutVisit(checkout=checkout, details=details, is_order_notified=True)
    if await relay.paused.is_paused(account):
        return CheckoutVisit(checkout=checkout, details=details, is_paused=True)
    if checkout.opened_at_ms is None:
        await checkouts.mark_opened(checkout.id, now_ms, left_open_ms=LEFT_OPEN_MS)
    link = await link_to_gateway(relay, checkout, details)
    return CheckoutVisit(checkout=checkout, details=details, link_to_gateway=link)


async def return_to_checkout(
    relay: Relay, account: str, checkout_id: str, secret: str, *, is_cancelled: bool
) -> CheckoutVisit | None:
    """Returns what the return page shows to a customer who comes back from the gateway, or the cancel page.

    A return makes a status inquiry where one is due; a cancellation is noted. None where there is no such page.
    Raises StoreError and Refusal.
    """
    checkout = await _found(relay, account, checkout_id, secret)
    if checkout is None:
        return None
    if is_cancelled:
        checkout = await note_abandoned(relay, checkout)
    else:
        checkout = await inquire(relay, checkout, occasion=RETURNED)
    return _returned(checkout, await relay.checkouts.details_of(checkout.id), is_cancelled=is_cancelled)


async def _found(relay: Relay, account: str, checkout_id: str, secret: str) -> Checkout | None:
    checkout = await relay.checkouts.get(checkout_id)
    if checkout is None or checkout.account != account:
        return None
    return checkout if hmac.compare_digest(checkout.secret_hash, secret_hash_of(secret)) else None


def _returned(checkout: Checkout, details: Details | None, *, is_cancelled: bool) -> CheckoutVisit:
    """Returns a visit that leads back to the app: by its link for cancellations where the customer did nothing more."""
    if details is None:
        return CheckoutVisit(checkout=checkout, details=None)
    link = details.return_to
    if is_cancelled and checkout.state not in {CheckoutState.NOTIFIED, CheckoutState.COMPLETED}:
        link = details.cancel_to or details.return_to
    return_link = None if link is None else with_outcome(link, checkout.id, checkout.state)
    return CheckoutVisit(checkout=checkout, details=details, return_link=return_link)
