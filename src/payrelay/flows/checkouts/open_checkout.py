"""Opens a checkout: a hosted page from which the customer continues to the gateway's page, and the signed form itself.

Opening sends nothing to the gateway. A repeat gets the same checkout again in its current state: a request with an
equal Idempotency-Key, or an equal request without a key within the repeat window.
"""

import secrets
from typing import Final

import msgspec

from payrelay.core.answers import REPLAYED, Answer, found
from payrelay.core.checkouts.checkout import INQUIRY_MS_MIN, Checkout, CheckoutState, Details, is_within
from payrelay.core.checkouts.hosted_payment import NewCheckout
from payrelay.errors import Code, Refusal, StoreUnavailable
from payrelay.flows.access.ownership import is_foreign, refuse_taken, require_free_order
from payrelay.flows.access.paying_apps import refusing_one_too_many, require_checkout_allowed
from payrelay.flows.checkouts.allowed_checkout import allowed, require_no_charge, require_still_free
from payrelay.flows.checkouts.finish_checkout import end_hold, end_overdue, withdraw
from payrelay.flows.checkouts.look_for_lost_page import require_no_lost_page
from payrelay.flows.checkouts.way_to_gateway import opened_view, secret_hash_of
from payrelay.flows.relay import Relay, Request
from payrelay.runtime.hooks import FlowPoint

SECRET_BYTES: Final = 24
"""192 bits: whoever guesses the secret sees a customer's name and address."""
ATTEMPTS_MAX: Final = 3
"""Attempts to store a checkout. Each further one means that a conflicting checkout ended between two statements."""
RETRY_AFTER_S_MIN: Final = 5
"""Retry-After for an order whose page is over, and is not ended yet: a last inquiry is under way, or fails."""
LIFE_MS_MIN: Final = 60_000
"""The shortest life of a page, also where a credential ends sooner: the least that a request may ask for."""


async def open_checkout(relay: Relay, request: Request, new: NewCheckout) -> Answer:
    """Opens a checkout, and answers with it, its address and its form.

    Raises StoreError, and Refusal: as ``allowed`` and ``require_no_charge`` do, and idempotency_mismatch. It is
    conflict where the order is foreign, was paid or held on another page, or has as many payments as the credential
    allows; in_progress while another page of it is open, or one of its payments isn't final. It is unavailable where
    the account is paused, where the database is behind, and where commits were lost and the gateway can't show yet
    whether the order was paid.
    """
    account = relay.account(request.account)
    new = allowed(relay, request, account, new)
    for _ in range(ATTEMPTS_MAX):
        earlier = await _earlier(relay, request, account.merchant, new)
        if earlier is not None:
            if earlier.is_open:  # the look after its opening may have ended in a crash
                await require_no_charge(relay, request, new.payment)
            opened = await opened_view(relay, earlier)
            if earlier.is_open and opened.form is None and await _has_ended(relay, earlier):
                continue  # the request that stored it has withdrawn it meanwhile, or its time is over
            return msgspec.structs.replace(found(opened), headers=(REPLAYED,))
        condition = require_checkout_allowed(relay, request, new.payment)
        await relay.paused.require_open(request.account)
        await relay.database.lost_commits.require_effects_allowed()
        await require_no_lost_page(relay, request, new.payment.order_id)
        await require_no_charge(relay, request, new.payment)
        owners = await require_free_order(relay, request, new.payment.order_id)
        secret = secrets.token_urlsafe(SECRET_BYTES)
        checkout = _new(relay, request, account.merchant, new, secret_hash_of(secret))
        details = Details(secret=secret, asked=new.payment, return_to=new.return_to, cancel_to=new.cancel_to)
        with relay.hooks.passing(FlowPoint.OPENING, FlowPoint.OPENED, checkout.id):
            async with refusing_one_too_many(relay, request):
                is_added = await relay.checkouts.add(checkout, details, condition, reference=new.customer_reference)
        if is_added:
            try:
                await require_still_free(relay, request, new.payment, owners)
            except Refusal:
                await withdraw(relay, checkout)
                raise
            return found(await opened_view(relay, checkout))
    raise StoreUnavailable("the checkout could not be stored: other checkouts of the order were opened and ended")


async def _is_equal(relay: Relay, earlier: Checkout, request: Request, new: NewCheckout) -> bool:
    """Tells whether an earlier checkout was opened by an equal request.

    It compares the sealed details, because a stored hash of a name and a telephone number could be guessed.
    """
    details = await relay.checkouts.details_of(earlier.id)
    return (
        details is not None
        and earlier.account == request.account
        and _is_life_of(earlier, request, new)
        and earlier.reference_hash == _reference_hash(relay, new)
        and (details.asked, details.return_to, details.cancel_to) == (new.payment, new.return_to, new.cancel_to)
    )


async def _has_ended(relay: Relay, checkout: Checkout) -> bool:
    current = await relay.checkouts.get(checkout.id)
    return current is None or not current.is_open


def _reference_hash(relay: Relay, new: NewCheckout) -> str | None:
    return None if new.customer_reference is None else relay.checkouts.reference_hash(new.customer_reference)


def _life_ms(request: Request, new: NewCheckout, now_ms: int) -> int:
    """Returns how long the page accepts customers: no longer than the app's credential is valid, or LIFE_MS_MIN.

    A shorter validity protects the shop only where no page of the app's keeps its order for longer.
    """
    life_ms, credential = new.expires_in_s * 1000, request.credential
    if credential.bound is None or credential.expires_at_ms is None:
        return life_ms
    return min(life_ms, max(credential.expires_at_ms - now_ms, LIFE_MS_MIN))


def _is_life_of(earlier: Checkout, request: Request, new: NewCheckout) -> bool:
    """Tells whether a page has the life that was asked for; an app's may have been cut short by its credential."""
    life_ms, asked_ms = earlier.expires_at_ms - earlier.created_at_ms, new.expires_in_s * 1000
    return life_ms == asked_ms or (request.credential.bound is not None and life_ms < asked_ms)


async def _earlier(relay: Relay, request: Request, merchant: str, new: NewCheckout) -> Checkout | None:
    """Finds the checkout that an equal request opened; None where there is none.

    Raises Refusal where an unequal request has the key (idempotency_mismatch) or the order (in_progress, conflict).
    """
    checkouts = relay.checkouts
    key = request.idempotency_key
    claimed = None if key is None else await checkouts.of_key(request.principal, key)
    if claimed is not None:
        if not await _is_equal(relay, claimed, request, new):
            raise Refusal(Code.IDEMPOTENCY_MISMATCH, "this Idempotency-Key was used with another request")
        return claimed
    holder = await checkouts.holder_of(merchant, new.payment.order_id)
    if holder is None:
        return None
    now_ms = relay.clock.now_ms()
    if holder.state is CheckoutState.OPEN and holder.ends_at_ms <= now_ms:
        holder = await end_overdue(relay, holder)
    holder = await end_hold(relay, holder)
    if holder.guard is None:
        return None
    is_mine = holder.principal == request.principal and is_within(
        holder, request.credential.bound, relay.checkouts.reference_hash
    )
    is_recent = now_ms - holder.created_at_ms < relay.settings.retention.unkeyed_ms
    is_repeat = is_mine and is_recent and request.idempotency_key is None
    if is_repeat and await _is_equal(relay, holder, request, new):
        return holder
    if await is_foreign(relay, request, frozenset({holder.principal})):
        await refuse_taken(relay, merchant, new.payment.order_id)
    raise _held(holder, now_ms, is_mine=is_mine)


def _held(holder: Checkout, now_ms: int, *, is_mine: bool) -> Refusal:
    """Makes the refusal for an order that another checkout holds; it names that one where it is the caller's own.

    It is in_progress until an open page ends, and conflict where the customer has paid, or a hold was reported.
    """
    name, checkout_id = (f"the checkout {holder.id}", holder.id) if is_mine else ("a checkout", None)
    msg = f"the order has {name} already, which is {holder.state}"
    if not holder.is_open:
        return Refusal(Code.CONFLICT, msg, checkout_id=checkout_id)
    close = f", or close its page with DELETE checkouts/{holder.id}" if is_mine else ""
    wait_s = max(-(-(holder.ends_at_ms - now_ms) // 1000), RETRY_AFTER_S_MIN)
    msg = f"{msg}: wait until it has ended{close}"
    return Refusal(Code.IN_PROGRESS, msg, retry_after_s=wait_s, checkout_id=checkout_id)


def _new(relay: Relay, request: Request, merchant: str, new: NewCheckout, secret_hash: str) -> Checkout:
    now_ms = relay.clock.now_ms()
    payment, bound, key = new.payment, request.credential.bound, request.idempotency_key
    expires_at_ms = now_ms + _life_ms(request, new, now_ms)
    return Checkout(
        id=relay.new_id("chk", now_ms),
        account=request.account,
        merchant=merchant,
        principal=request.principal,
        kind=payment.kind,
        state=CheckoutState.OPEN,
        version=1,
        order_id=payment.order_id,
        guard=payment.order_id,
        amount_minor=payment.amount_minor,
        first_minor=payment.first_minor,
        currency=payment.currency,
        secret_hash=secret_hash,
        key_hash=None if key is None else relay.checkouts.key_hash(key),
        request_id=request.request_id,
        reference_hash=_reference_hash(relay, new),
        bound_customer_id=None if bound is None else bound.customer_id,
        payment_id=None,
        subscription_id=None,
        customer_id=None,
        created_at_ms=now_ms,
        updated_at_ms=now_ms,
        expires_at_ms=expires_at_ms,
        opened_at_ms=None,
        ends_at_ms=expires_at_ms,
        inquire_at_ms=now_ms + INQUIRY_MS_MIN,
    )
