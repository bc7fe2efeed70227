"""Finds the authorization that a checkout yielded: a capture or a void may name the checkout in place of the token.

The report of an authorization may be lost with commits. Then a repeat finds the token in the request that it repeats,
where that one is stored; and while the recovery lasts nobody is told for good that there is no authorization.
"""

from typing import Final, NamedTuple

from payrelay.core.calls import Capture, Void
from payrelay.core.checkouts.checkout import Checkout, CheckoutKind, CheckoutState
from payrelay.core.notifications.notification import NotificationKind
from payrelay.core.payments.operation import claim_of_key
from payrelay.errors import CallCleared, wrong_field
from payrelay.flows.access.ownership import is_foreign
from payrelay.flows.relay import Relay, Request

_HANDLE: Final = "chk_"
_FIELD: Final = "authorization_token"


class CheckoutAuthorization(NamedTuple):
    """A checkout of which the gateway reported an authorization, and the gateway's token of that authorization."""

    checkout: Checkout
    token: str


async def authorization_of_checkout(
    relay: Relay, request: Request, token_or_checkout_id: str
) -> CheckoutAuthorization | None:
    """Returns the authorization of a checkout; None where the text is an authorization token, and no checkout's id.

    Raises Refusal (invalid_request, at ``authorization_token``) where the caller has no such checkout on this account,
    or the checkout yielded no authorization; unavailable where the checkout, or the report of its authorization, may
    be lost. Raises StoreError.
    """
    if not token_or_checkout_id.startswith(_HANDLE):
        return None
    checkout = await relay.checkouts.get(token_or_checkout_id)
    is_own = (
        checkout is not None
        and checkout.merchant == relay.account(request.account).merchant
        and not await is_foreign(relay, request, frozenset({checkout.principal}))
    )
    if checkout is None:
        await relay.lost_commits.require_known(token_or_checkout_id, "checkout")
    if checkout is None or not is_own or checkout.kind is not CheckoutKind.AUTHORIZATION:
        raise wrong_field(_FIELD, "names no checkout of yours that asked for an authorization")
    token = None
    if checkout.state in {CheckoutState.NOTIFIED, CheckoutState.COMPLETED}:
        token = await relay.inbox.accepted_token(checkout.merchant, checkout.order_id, NotificationKind.AUTHORIZATION)
    text = await _token_of_repeated(relay, request, checkout) if token is None else token.reveal()
    if text is None:
        await relay.lost_commits.require_current(checkout.created_at_ms, "checkout")
        raise wrong_field(_FIELD, f"names a checkout that is {checkout.state}, and has no authorization yet")
    return CheckoutAuthorization(checkout, text)


async def _token_of_repeated(relay: Relay, request: Request, checkout: Checkout) -> str | None:
    """Returns the token in the stored request that has this one's key, if it acts on the checkout's order."""
    if request.idempotency_key is None:
        return None
    claim = claim_of_key(request.idempotency_key)
    earlier = await relay.journal.find_claim(request.principal, claim, now_ms=relay.clock.now_ms())
    if earlier is None or earlier.operation.order_id != checkout.order_id:
        return None
    try:
        call = await relay.journal.call_of(earlier.operation.id)
    except CallCleared:
        return None
    return call.authorization_token if isinstance(call, Capture | Void) else None
