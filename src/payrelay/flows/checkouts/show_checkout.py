"""Shows a checkout to the principal that opened it: its state, and its payment, subscription or customer."""

from typing import Final

import msgspec

from payrelay.core.answers import Answer, found
from payrelay.core.checkouts.checkout import PAID_OR_HELD, Checkout, CheckoutKind, CheckoutState, is_within
from payrelay.core.views import view_of
from payrelay.errors import Code, Refusal
from payrelay.flows.checkouts.doubted_payments import is_in_doubt
from payrelay.flows.checkouts.finish_checkout import inquire
from payrelay.flows.checkouts.look_after_loss import look_after_loss
from payrelay.flows.relay import Relay, Request
from payrelay.gateways.gateway import CheckoutForm

DOUBT_SENTENCE: Final = (
    "The database lost commits, and the customer may have paid in the lost time. The page waits until the gateway has"
    " shown what was paid for the order."
)


class CheckoutView(msgspec.Struct, frozen=True, kw_only=True):
    """A checkout as a client sees it; times are RFC 3339 in UTC, the amount is the requested one.

    Attributes:
        reason: why it is in its state, such as ``closed``; None where the state says all.
        may_still_be_paid: whether the customer may pay, approve or authorize it yet: on its page, or by a form or an
            address that is out.
    """

    id: str
    kind: CheckoutKind
    state: CheckoutState
    reason: str | None
    may_still_be_paid: bool
    explanation: str
    account: str
    order_id: str
    amount: msgspec.Raw
    currency: str
    customer_reference: str | None
    payment_id: str | None
    subscription_id: str | None
    customer_id: str | None
    created_at: str
    updated_at: str
    expires_at: str


class OpenedCheckout(CheckoutView, frozen=True, kw_only=True):
    """A checkout with the address to open and the signed form; both are null once it takes no customers any more."""

    url: str | None
    form: CheckoutForm | None

    def __repr__(self) -> str:
        return f"OpenedCheckout(id={self.id!r})"


async def show_checkout(relay: Relay, request: Request, checkout_id: str) -> Answer:
    """Answers with a checkout, after a status inquiry at the gateway where one is due, or a look after a loss.

    Raises Refusal (not_found) for a checkout that the caller may not see, unavailable where it may be lost; StoreError.
    """
    checkout = await own_checkout(relay, request, checkout_id)
    if checkout.is_open and await is_in_doubt(relay, checkout):
        checkout = await look_after_loss(relay, checkout)
    else:
        checkout = await inquire(relay, checkout)
    return found(await view(relay, checkout, is_in_doubt=await is_in_doubt(relay, checkout)))


async def own_checkout(relay: Relay, request: Request, checkout_id: str) -> Checkout:
    """Reads a checkout of the caller's, of its own order or customer where its credential is bound to one.

    Raises Refusal (not_found) for any other, unavailable where it may be lost; StoreError.
    """
    checkout = await relay.checkouts.get(checkout_id)
    is_visible = (
        checkout is not None
        and checkout.account == request.account
        and checkout.principal == request.principal
        and is_within(checkout, request.credential.bound, relay.checkouts.reference_hash)
    )
    if checkout is None or not is_visible:
        await relay.database.lost_commits.require_known(checkout_id, "checkout")
        raise Refusal(Code.NOT_FOUND, "there is no such checkout")
    return checkout


async def view(relay: Relay, checkout: Checkout, *, is_in_doubt: bool = False) -> CheckoutView:
    """Returns a checkout as a client sees it; ``is_in_doubt`` where commits were lost since it was opened.

    Raises StoreError.
    """
    sentence = DOUBT_SENTENCE if checkout.is_open and is_in_doubt else checkout.sentence
    reference = await relay.checkouts.reference_of(checkout)
    return view_of(
        checkout,
        CheckoutView,
        explanation=sentence,
        customer_reference=reference,
        may_still_be_paid=await _may_still_be_paid(relay, checkout),
    )


async def was_given_out(relay: Relay, checkout: Checkout) -> bool:
    """Tells whether a form, or the address of the gateway's page, may be with a customer. Raises StoreError.

    A form's text is stored before it leaves, and so is that a page was first shown. Both are stored of an open checkout
    alone, so that the answer about one that has ended stays true.
    """
    if checkout.opened_at_ms is not None or await relay.signed_texts.has_form(checkout.id):
        return True
    newest = await relay.checkouts.get(checkout.id)  # the page may have been shown since the row was read
    return newest is not None and newest.opened_at_ms is not None


async def _may_still_be_paid(relay: Relay, checkout: Checkout) -> bool:
    if checkout.state in PAID_OR_HELD:
        return False
    return checkout.is_open or await was_given_out(relay, checkout)
