"""Serves the pages of a checkout to the customer's browser: the form that leads to the gateway, or the known outcome.

Whoever knows the secret in the address may see the page. The rest of the address is ignored.
"""

import hmac

import msgspec

from payrelay.core.checkouts.checkout import LEFT_OPEN_MS, Checkout, Details
from payrelay.core.checkouts.return_links import with_outcome
from payrelay.core.checkouts.shown import PASSED_ON, Shown, is_awaited, leads_on, shown_of, state_passed_on
from payrelay.flows.checkouts.doubted_payments import is_in_doubt
from payrelay.flows.checkouts.finish_checkout import RETURNED, end_overdue, inquire, note_abandoned
from payrelay.flows.checkouts.look_after_loss import look_after_loss
from payrelay.flows.checkouts.way_to_gateway import link_to_gateway, secret_hash_of
from payrelay.flows.relay import Relay
from payrelay.gateways.gateway import CheckoutForm, CheckoutRedirect


class CheckoutVisit(msgspec.Struct, frozen=True, kw_only=True):
    """What a page of a checkout shows.

    Attributes:
        checkout: in its current state.
        details: the request and its links; None where they were forgotten.
        shown: what the page tells the customer.
        is_awaited: whether the page loads itself again.
        link_to_gateway: a form to be posted, or an address; None unless ``shown`` is ``form``.
        was_opened: whether the form was shown before.
        return_link: the app's own link; None where the app gave none.
        leads_on: whether the page goes on to the app's link by itself.
    """

    checkout: Checkout
    details: Details | None
    shown: Shown
    is_awaited: bool = False
    link_to_gateway: CheckoutForm | CheckoutRedirect | None = None
    was_opened: bool = False
    return_link: str | None = None
    leads_on: bool = False


async def visit_checkout(relay: Relay, account: str, checkout_id: str, secret: str) -> CheckoutVisit | None:
    """Returns what a checkout's page shows; None where there is no such page.

    While the checkout takes customers, each visit gives an equal link to the gateway. A visit after the first one makes
    a status inquiry where one is due, because the customer may have paid since. Where commits were lost since the
    checkout was opened, any visit looks at the gateway first. Raises StoreError, and Refusal where the account's
    configuration has changed so that it offers no such link.
    """
    checkout = await _found(relay, account, checkout_id, secret)
    if checkout is None:
        return None
    now_ms = relay.clock.now_ms()
    was_opened = checkout.opened_at_ms is not None
    if checkout.is_open and checkout.ends_at_ms <= now_ms:
        checkout = await end_overdue(relay, checkout)
    elif checkout.is_open and await is_in_doubt(relay, checkout):
        checkout = await look_after_loss(relay, checkout)
    elif was_opened or not checkout.takes_customers(now_ms):
        checkout = await inquire(relay, checkout)
    details = await relay.checkouts.details_of(checkout.id)
    shown = await _shown(relay, checkout)
    if shown is Shown.WAITING:
        shown = _open_page(relay, account, checkout, details)
    if shown is not Shown.FORM or details is None:
        return _visit(relay, checkout, details, shown)
    link = await link_to_gateway(relay, checkout, details)
    may_leave = link is not None
    if may_leave and not was_opened:
        may_leave = await relay.checkouts.mark_opened(checkout.id, now_ms, left_open_ms=LEFT_OPEN_MS)
    if not may_leave:
        # It may have ended meanwhile; or else the way is closed to all, or another visit was the first.
        checkout = await relay.checkouts.get(checkout.id) or checkout
        if not checkout.is_open:
            return _visit(relay, checkout, details, await _shown(relay, checkout))
    if link is None:
        return _visit(relay, checkout, details, Shown.PAUSED)
    visit = _visit(relay, checkout, details, shown)
    return msgspec.structs.replace(visit, link_to_gateway=link, was_opened=was_opened)


async def return_to_checkout(
    relay: Relay, account: str, checkout_id: str, secret: str, *, is_cancelled: bool
) -> CheckoutVisit | None:
    """Returns what the return page shows to a customer who comes back from the gateway, or the cancel page.

    A cancellation is noted. Where the customer isn't led on at once, a status inquiry is made where one is due. None
    where there is no such page. Raises StoreError and Refusal.
    """
    checkout = await _found(relay, account, checkout_id, secret)
    if checkout is None:
        return None
    details = await relay.checkouts.details_of(checkout.id)
    if is_cancelled:
        checkout = await note_abandoned(relay, checkout)
        if details is None or (details.cancel_to or details.return_to) is None:
            checkout = await inquire(relay, checkout)
    else:
        checkout = await inquire(relay, checkout, occasion=RETURNED)
    return _visit(relay, checkout, details, await _shown(relay, checkout), is_cancelled=is_cancelled)


async def _found(relay: Relay, account: str, checkout_id: str, secret: str) -> Checkout | None:
    checkout = await relay.checkouts.get(checkout_id)
    if checkout is None or checkout.account != account:
        await relay.database.lost_commits.require_known(checkout_id, "checkout")
        return None
    return checkout if hmac.compare_digest(checkout.secret_hash, secret_hash_of(secret)) else None


async def _shown(relay: Relay, checkout: Checkout) -> Shown:
    of_order = await relay.checkouts.of_order(checkout.merchant, checkout.order_id)
    others = [other.state for other in of_order if other.id != checkout.id]
    return shown_of(checkout.state, others, is_closed=checkout.is_closed)


def _open_page(relay: Relay, account: str, checkout: Checkout, details: Details | None) -> Shown:
    """Tells whether the page of an open checkout leads to the gateway, as far as its account and its time go."""
    is_offered = not relay.account(account).capabilities.unset_for_checkouts
    if details is None or not is_offered or not checkout.takes_customers(relay.clock.now_ms()):
        return Shown.CLOSED
    return Shown.FORM


def _visit(
    relay: Relay, checkout: Checkout, details: Details | None, shown: Shown, *, is_cancelled: bool = False
) -> CheckoutVisit:
    """Makes a visit that leads back to the app: by its link for cancellations where the customer does nothing more."""
    link = None if details is None else details.return_to
    if details is not None and (shown is Shown.FORM or (is_cancelled and shown not in PASSED_ON)):
        link = details.cancel_to or details.return_to
    return CheckoutVisit(
        checkout=checkout,
        details=details,
        shown=shown,
        is_awaited=is_awaited(shown, checkout, relay.clock.now_ms()),
        return_link=None if link is None else with_outcome(link, checkout.id, state_passed_on(shown)),
        leads_on=link is not None and leads_on(shown, is_cancelled=is_cancelled),
    )
