"""Finds the authorization that a checkout yielded: a capture or a void may name the checkout in place of the token.

The report of an authorization may be lost with commits. Then a repeat finds the token in the request that it repeats,
where that one is stored; and while the recovery lasts nobody is told for good that there is no authorization.

A repeat is answered before its owner is asked for, and only the token tells a repeat without a key. So the token of a
foreign checkout is found too; it is used where the request is a repeat of the caller's own, and for nothing else.
"""

from typing import Final, NamedTuple

import msgspec

from payrelay.core.calls import Capture, Void
from payrelay.core.checkouts.checkout import Checkout, CheckoutKind, CheckoutState
from payrelay.core.notifications.notification import NotificationKind
from payrelay.core.payments.idempotency import claim_of, fingerprint_of
from payrelay.core.payments.operation import claim_of_key
from payrelay.errors import CallCleared, wrong_field
from payrelay.flows.access.ownership import is_foreign
from payrelay.flows.relay import Relay, Request

_HANDLE: Final = "chk_"
_FIELD: Final = "authorization_token"
_NO_SUCH: Final = "names no checkout of yours that asked for an authorization"


class CheckoutAuthorization(NamedTuple):
    """A checkout of which the gateway reported an authorization, and the gateway's token of that authorization."""

    checkout: Checkout
    token: str


async def authorization_of_checkout(
    relay: Relay, request: Request, call: Capture | Void
) -> CheckoutAuthorization | None:
    """Returns the authorization of the checkout that a call names; None where the call names no checkout.

    That of a foreign checkout is returned only to a repeat, which ``carry_out`` answers without asking for the owner.
    Raises Refusal (invalid_request, at ``authorization_token``) where the caller has no such checkout on this account,
    or the checkout yielded no authorization; unavailable where the checkout, or the report of its authorization, may
    be lost. Raises StoreError.
    """
    handle = call.authorization_token
    if not handle.startswith(_HANDLE):
        return None
    checkout = await relay.checkouts.get(handle)
    if checkout is None:
        await relay.lost_commits.require_known(handle, "checkout")
    merchant = relay.account(request.account).merchant
    if checkout is None or checkout.merchant != merchant or checkout.kind is not CheckoutKind.AUTHORIZATION:
        raise wrong_field(_FIELD, _NO_SUCH)
    is_others = await is_foreign(relay, request, frozenset({checkout.principal}))
    token = await _token_of(relay, request, checkout)
    if is_others and not (token is not None and await _is_repeat(relay, request, call, token)):
        raise wrong_field(_FIELD, _NO_SUCH)
    if token is None:
        await relay.lost_commits.require_current(checkout.created_at_ms, "checkout")
        raise wrong_field(_FIELD, f"names a checkout that is {checkout.state}, and has no authorization yet")
    return CheckoutAuthorization(checkout, token)


async def _token_of(relay: Relay, request: Request, checkout: Checkout) -> str | None:
    """Returns the token that the gateway reported, or else that of the request that this one repeats."""
    token = None
    if checkout.state in {CheckoutState.NOTIFIED, CheckoutState.COMPLETED}:
        token = await relay.inbox.accepted_token(checkout.merchant, checkout.order_id, NotificationKind.AUTHORIZATION)
    return await _token_of_repeated(relay, request, checkout) if token is None else token.reveal()


async def _is_repeat(relay: Relay, request: Request, call: Capture | Void, token: str) -> bool:
    """Tells whether the caller has made an equal request before: with its key, or with none in the repeat window."""
    fingerprint = fingerprint_of(request.account, msgspec.structs.replace(call, authorization_token=token))
    claim = claim_of(request.idempotency_key, fingerprint, is_unkeyed_claimed=relay.retention.unkeyed_ms > 0)
    if claim is None:
        return False
    earlier = await relay.journal.find_claim(request.principal, claim, now_ms=relay.clock.now_ms())
    return earlier is not None and earlier.operation.fingerprint == fingerprint


async def _token_of_repeated(relay: Relay, request: Request, checkout: Checkout) -> str | None:
    """Returns the token in the stored request that has this one's key, if it acts on the checkout's order."""
    if request.idempotency_key is None:
        return None
    claim = claim_of_key(request.idempotency_key)
    earlier = await relay.journal.find_claim(request.principal, claim, now_ms=relay.clock.now_ms())
    if earlier is None or earlier.operation.order_id != checkout.order_id:
        return None
    try:
        stored = await relay.journal.call_of(earlier.operation.id)
    except CallCleared:
        return None
    return stored.authorization_token if isinstance(stored, Capture | Void) else None
