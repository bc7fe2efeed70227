"""Gives a checkout's way to the gateway's page: the form or the address, for its own page and for the API.

Rules:

1. Every form and every address goes out through ``link_to_gateway``.
2. It gives none while the account is paused or the database is behind, and none while the customer may have paid in
   commits that are lost. It gives none of a checkout that ended meanwhile either.
3. What the gateway will sign once it gets a form is on disk before the form goes out.
"""

import hashlib
from datetime import date
from typing import Final

import msgspec

from payrelay.core.checkouts.checkout import Checkout, Details
from payrelay.core.moments import day_at
from payrelay.errors import Refusal
from payrelay.flows.checkouts.doubted_payments import is_in_doubt
from payrelay.flows.checkouts.look_after_loss import look_after_loss
from payrelay.flows.checkouts.show_checkout import OpenedCheckout, view
from payrelay.flows.relay import Relay
from payrelay.gateways.gateway import CheckoutForm, CheckoutRedirect, Gateway, HostedPage, NoCheckout, ReturnUrls

_HASHED_AS: Final = b"payrelay checkout\0"


def secret_hash_of(secret: str) -> str:
    """Returns the stored hash of a page's secret; the secret is random, so that the hash reveals nothing."""
    return hashlib.sha256(_HASHED_AS + secret.encode()).hexdigest()


def page_address(relay: Relay, checkout: Checkout, secret: str) -> str:
    """Returns the address of a checkout's page."""
    return f"{relay.settings.public_url or ''}/{checkout.account}/checkouts/{checkout.id}/{secret}"


def today_at(relay: Relay, account: Gateway) -> date:
    """Returns today's date in the gateway's time zone."""
    return day_at(relay.clock.now_ms(), account.timezone)


async def link_to_gateway(relay: Relay, checkout: Checkout, details: Details) -> CheckoutForm | CheckoutRedirect | None:
    """Returns the way to the gateway's page, as of today: a form to be posted, or an address.

    None where none may go out now (rule 2).
    Raises StoreError, and Refusal where the account offers no way now, for example because its configuration has
    changed.
    """
    is_held = await relay.paused.is_paused(checkout.account) or await relay.database.lost_commits.is_behind()
    if is_held or await is_in_doubt(relay, checkout):
        return None
    account = relay.account(checkout.account)
    address = page_address(relay, checkout, details.secret)
    returns = ReturnUrls(
        return_url=f"{address}/return",
        cancel_url=f"{address}/cancel",
        notify_url=f"{relay.settings.public_url or ''}/{checkout.account}/notifications",
    )
    page = HostedPage(checkout_id=checkout.id, payment=details.asked, returns=returns, today=today_at(relay, account))
    link = await account.checkout(page)
    if isinstance(link, NoCheckout):
        raise Refusal(link.code, link.msg)
    may_leave = await relay.signed_texts.keep_form(checkout, account.signed_texts(page), at_ms=relay.clock.now_ms())
    return link if may_leave else None


async def opened_view(relay: Relay, checkout: Checkout) -> OpenedCheckout:
    """Returns a checkout with its address and its form, while it takes customers.

    Where commits were lost since it was opened, this looks at the gateway first.
    There is no form where ``link_to_gateway`` gives none: the page waits meanwhile. There is also none where the
    gateway has an address instead: the hosted page leads there. Raises StoreError and Refusal.
    """
    url, form = None, None
    if checkout.takes_customers(relay.clock.now_ms()):
        checkout = await look_after_loss(relay, checkout)
    takes_customers = checkout.takes_customers(relay.clock.now_ms())
    details = await relay.checkouts.details_of(checkout.id) if takes_customers else None
    if details is not None:
        url = page_address(relay, checkout, details.secret)
        link = await link_to_gateway(relay, checkout, details)
        form = link if isinstance(link, CheckoutForm) else None
    shown = await view(relay, checkout, is_in_doubt=await is_in_doubt(relay, checkout))
    return OpenedCheckout(**msgspec.structs.asdict(shown), url=url, form=form)
