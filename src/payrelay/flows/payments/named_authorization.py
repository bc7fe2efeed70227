"""Finds the authorization that a capture or a void names, by the gateway's token or by the checkout that yielded it.

The report of a checkout's authorization may be lost with commits. Then a repeat finds the token in the request that it
repeats, where that one is stored; and while the recovery lasts nobody is told for good that there is no authorization.

A repeat is answered before its owner is asked for, and before it is asked which token the checkout has by now. So the
token is found for a foreign checkout too. It is used where the request is a repeat of the caller's own, and for nothing
else. The checkout may have another token by now: then the key leads to the first request, and without a key the calls
of the repeat window do. Where the call of the first request is no longer kept, no fingerprint tells a repeat: the key
does, together with what the first operation still says.
"""

from typing import Final, Generic, NamedTuple, TypeVar

import msgspec

from payrelay.core.answers import Answer
from payrelay.core.calls import Capture, Effect, Void
from payrelay.core.checkouts.checkout import Checkout, CheckoutKind, CheckoutState
from payrelay.core.notifications.notification import NotificationKind
from payrelay.core.payments.idempotency import claim_of, fingerprint_of
from payrelay.core.payments.operation import Kind, Operation, OperationFilter, claim_of_key
from payrelay.core.secret import secret_hash
from payrelay.errors import CallCleared, wrong_field
from payrelay.flows.access.ownership import is_foreign
from payrelay.flows.operations.answer_repeat import answer_repeat, find_earlier
from payrelay.flows.relay import Relay, Request
from payrelay.store.payments.journal import ClaimedOperation

_HANDLE: Final = "chk_"
_FIELD: Final = "authorization_token"
_BEFORE_MAX: Final = 100
"""Captures, or voids, of one order that are looked through for an equal one: a gateway accepts one of each hold."""
_NO_SUCH: Final = "names no checkout of yours that asked for an authorization"

CallT = TypeVar("CallT", Capture, Void)


class NamedAuthorization(NamedTuple, Generic[CallT]):
    """An authorization as a capture or a void names it.

    Attributes:
        call: the call, with the gateway's token.
        subject: of the operation.
        made_by: what asked for the authorization; None where Payrelay doesn't know it.
    """

    call: CallT
    subject: str
    made_by: Operation | Checkout | None


async def named_authorization(relay: Relay, request: Request, call: CallT) -> NamedAuthorization[CallT] | Answer:
    """Finds the authorization of a call, whoever owns its token; that of a checkout only for those who own it.

    That of a foreign checkout is found for a repeat alone, which ``carry_out`` answers without asking for the owner.
    Returns the answer of a repeat whose first request's token is kept nowhere.
    Raises Refusal (invalid_request, at ``authorization_token``) where the caller has no such checkout on this account,
    or the checkout yielded no authorization; unavailable where the checkout, or the report of its authorization, may
    be lost; as ``answer_repeat`` does. Raises StoreError.
    """
    merchant, checkout = relay.account(request.account).merchant, None
    if call.authorization_token.startswith(_HANDLE):
        found = await _of_checkout(relay, request, call)
        if isinstance(found, Answer):
            return found
        checkout, token = found
        call = msgspec.structs.replace(call, authorization_token=token)
    token_hash = secret_hash(call.authorization_token)
    made_by = checkout or await relay.journal.authorization_of(token_hash, merchant)
    return NamedAuthorization(call, _subject_of(token_hash), made_by)


def _subject_of(token_hash: str) -> str:
    return f"authorization/{token_hash}"


async def _of_checkout(relay: Relay, request: Request, call: Capture | Void) -> tuple[Checkout, str] | Answer:
    """Returns the checkout that a call names, and the token of its authorization; else as ``named_authorization``."""
    handle = call.authorization_token
    checkout = await relay.checkouts.get(handle)
    if checkout is None:
        await relay.database.lost_commits.require_known(handle, "checkout")
    merchant = relay.account(request.account).merchant
    if checkout is None or checkout.merchant != merchant or checkout.kind is not CheckoutKind.AUTHORIZATION:
        raise wrong_field(_FIELD, _NO_SUCH)
    earlier = await _earlier_of_key(relay, request, checkout)
    kept = None if earlier is None else await _kept_call(relay, earlier.operation)
    of_key = kept.authorization_token if isinstance(kept, Capture | Void) else None
    reported = await _reported_token(relay, checkout)
    before = await _tokens_before(relay, request, checkout, call) if request.idempotency_key is None else []
    for token in (each for each in (of_key, reported, *before) if each is not None):
        if await _is_repeat(relay, request, msgspec.structs.replace(call, authorization_token=token)):
            return checkout, token
    if earlier is not None and kept is None and _may_be_equal(earlier.operation, request, call):
        return answer_repeat(relay, earlier, request, earlier.operation.fingerprint)
    if await is_foreign(relay, request, frozenset({checkout.principal})):
        raise wrong_field(_FIELD, _NO_SUCH)
    # Otherwise what it held is over: its token answers repeats, and no new request acts on it.
    is_held = checkout.state in {CheckoutState.NOTIFIED, CheckoutState.COMPLETED}
    tokens = [each for each in (of_key, reported if is_held else None) if each is not None]
    if not tokens:
        await relay.database.lost_commits.require_current(checkout.created_at_ms, "checkout")
        raise wrong_field(_FIELD, f"names a checkout that is {checkout.state}, and has no authorization")
    return checkout, tokens[-1]


async def _is_repeat(relay: Relay, request: Request, call: Capture | Void) -> bool:
    """Tells whether the caller has made an equal request before: with its key, or with none in the repeat window."""
    fingerprint = fingerprint_of(request.account, call)
    claim = claim_of(request.idempotency_key, fingerprint, is_unkeyed_claimed=relay.settings.retention.unkeyed_ms > 0)
    if claim is None:
        return False
    earlier = await find_earlier(relay, request, claim)
    return earlier is not None and earlier.operation.fingerprint == fingerprint


async def _tokens_before(relay: Relay, request: Request, checkout: Checkout, call: Capture | Void) -> list[str]:
    """Returns the tokens on which the caller asked for the like of a call, after the checkout was opened.

    Those of the repeat window alone: no call is cleared so soon.
    """
    after_ms = max(checkout.created_at_ms, relay.clock.now_ms() - relay.settings.retention.unkeyed_ms)
    asked = OperationFilter(principal=request.principal, kind=_kind_of(call), order_id=checkout.order_id)
    newest = await relay.journal.list(asked, before=None, limit=_BEFORE_MAX)
    kept = [await _kept_call(relay, each) for each in newest if each.created_at_ms > after_ms]
    return [each.authorization_token for each in kept if isinstance(each, Capture | Void)]


async def _reported_token(relay: Relay, checkout: Checkout) -> str | None:
    """Returns the token of the authorization that the gateway reported for the checkout's order."""
    token = await relay.inbox.accepted_token(checkout.merchant, checkout.order_id, NotificationKind.AUTHORIZATION)
    return None if token is None else token.reveal()


async def _earlier_of_key(relay: Relay, request: Request, checkout: Checkout) -> ClaimedOperation | None:
    """Returns what was begun with this request's key, if it acts on the checkout's order."""
    if request.idempotency_key is None:
        return None
    earlier = await find_earlier(relay, request, claim_of_key(request.idempotency_key))
    return earlier if earlier is not None and earlier.operation.order_id == checkout.order_id else None


async def _kept_call(relay: Relay, operation: Operation) -> Effect | None:
    try:
        return await relay.journal.call_of(operation.id)
    except CallCleared:
        return None


def _may_be_equal(operation: Operation, request: Request, call: Capture | Void) -> bool:
    """Tells whether an operation without its call was asked for by an equal request, as far as its row says."""
    asked = _kind_of(call), request.account, call.amount_minor
    return (operation.kind, operation.account, operation.amount_minor) == asked


def _kind_of(call: Capture | Void) -> Kind:
    return Kind.CAPTURE if isinstance(call, Capture) else Kind.VOID
