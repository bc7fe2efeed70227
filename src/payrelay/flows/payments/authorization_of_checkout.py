"""Finds the hold that a checkout yielded: a capture or a release may name the checkout in place of the token."""

from typing import Final, NamedTuple

from payrelay.core.checkouts.checkout import Checkout, CheckoutKind, CheckoutState
from payrelay.core.notifications.notification import NotificationKind
from payrelay.errors import wrong_field
from payrelay.flows.relay import Relay, Request

_HANDLE: Final = "chk_"
_FIELD: Final = "authorization_token"


class AuthorizationHolder(NamedTuple):
    """A checkout whose customer let money be held, and the gateway's token of that hold."""

    checkout: Checkout
    token: str


async def authorization_of_checkout(relay: Relay, request: Request, given: str) -> AuthorizationHolder | None:
    """Gives the hold of the checkout that is named; None where it is no checkout's id, but a token.

    Raises Refusal (invalid_request, at ``authorization_token``) where there is no such checkout of the caller's on this
    account, or it holds nothing; StoreError.
    """
    if not given.startswith(_HANDLE):
        return None
    checkout = await relay.checkouts.get(given)
    is_own = (
        checkout is not None
        and checkout.principal == request.principal
        and checkout.merchant == relay.account(request.account).merchant
    )
    if checkout is None or not is_own or checkout.kind is not CheckoutKind.AUTHORIZATION:
        raise wrong_field(_FIELD, "names no checkout of yours that asked for a hold")
    token = None
    if checkout.state is CheckoutState.COMPLETED:
        token = await relay.inbox.accepted_token(checkout.merchant, checkout.order_id, NotificationKind.AUTHORIZATION)
    if token is None:
        raise wrong_field(_FIELD, f"names a checkout that is {checkout.state}, and holds nothing yet")
    return AuthorizationHolder(checkout, token.reveal())
