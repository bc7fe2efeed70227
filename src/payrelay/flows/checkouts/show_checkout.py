"""Shows a checkout to the principal that opened it: its state, and its payment, subscription or customer."""

from typing import Final

import msgspec

from payrelay.core.answers import Answer, found
from payrelay.core.checkouts.checkout import STATE_SENTENCES, Checkout, CheckoutKind, CheckoutState, is_within
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
    """A checkout as a client sees it; times are RFC 3339 in UTC, the amount is the requested one."""

    id: str
    kind: CheckoutKind
    state: CheckoutState
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
    checkout = await relay.checkouts.get(checkout_id)
    is_visible = (
        checkout is not None
        and checkout.account == request.account
        and checkout.principal == request.principal
        and is_within(checkout, request.credential.bound, relay.checkouts.reference_hash)
    )
    if checkout is None or not is_visible:
        await relay.lost_commits.require_known(checkout_id, "checkout")
        raise Refusal(Code.NOT_FOUND, "there is no such checkout")
    if checkout.is_open and await is_in_doubt(relay, checkout):
        checkout = await look_after_loss(relay, checkout)
    else:
        checkout = await inquire(relay, checkout)
    return found(await view(relay, checkout, is_in_doubt=await is_in_doubt(relay, checkout)))


async def view(relay: Relay, checkout: Checkout, *, is_in_doubt: bool = False) -> CheckoutView:
    """Returns a checkout as a client sees it; ``is_in_doubt`` where commits were lost since it was opened.

    Raises StoreError.
    """
    sentence = DOUBT_SENTENCE if checkout.is_open and is_in_doubt else STATE_SENTENCES[checkout.state]
    reference = await relay.checkouts.reference_of(checkout)
    return view_of(checkout, CheckoutView, explanation=sentence, customer_reference=reference)
