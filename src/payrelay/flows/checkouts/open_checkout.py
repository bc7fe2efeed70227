"""Opens a checkout: a hosted page from which the customer continues to the gateway's page, and the signed form itself.

Opening sends nothing to the gateway. A repeat gets the same checkout again in its current state: a request with an
equal Idempotency-Key, or an equal request without a key within the repeat window.
"""

import secrets
from typing import Final

import msgspec

from payrelay.core.answers import REPLAYED, Answer, found
from payrelay.core.checkouts.checkout import INQUIRY_MS_MIN, Checkout, CheckoutState, Details, is_within
from payrelay.core.checkouts.hosted_payment import HostedPayment
from payrelay.core.checkouts.return_links import is_allowed
from payrelay.errors import Code, FieldError, Refusal, StoreUnavailable
from payrelay.flows.access.ownership import is_shared_order, refuse_taken, require_free_order
from payrelay.flows.access.paying_apps import (
    refusing_one_too_many,
    require_checkout_allowed,
    require_checkout_amount,
)
from payrelay.flows.checkouts.finish_checkout import end_overdue, expire
from payrelay.flows.checkouts.look_for_lost_page import require_no_lost_page
from payrelay.flows.checkouts.way_to_gateway import opened_view, secret_hash_of, today_at
from payrelay.flows.relay import Relay, Request
from payrelay.gateways.gateway import Gateway
from payrelay.runtime.hooks import FlowPoint

SECRET_BYTES: Final = 24
"""192 bits: whoever guesses the secret sees a customer's name and address."""
ATTEMPTS_MAX: Final = 3
"""Attempts to store a checkout. Each further one means that a conflicting checkout ended between two statements."""
LIFE_MS_MIN: Final = 60_000
"""The shortest life of a page, also where a credential ends sooner: the least that a request may ask for."""
PLAN_NAMES: Final = {
    "auto_cancel": "auto_cancel",
    "max_retries": "max_retries",
    "starts_on": "recurring_start_date",
    "is_recovery_due": "is_recovery_due",
}
"""Members of a plan that some accounts don't support, each with its name in the interface."""


class NewCheckout(msgspec.Struct, frozen=True, kw_only=True):
    """A request to open a checkout; the links are the app's own."""

    payment: HostedPayment
    expires_in_s: int
    customer_reference: str | None = None
    return_to: str | None = None
    cancel_to: str | None = None

    def __repr__(self) -> str:
        return "NewCheckout(********)"


async def open_checkout(relay: Relay, request: Request, new: NewCheckout) -> Answer:
    """Opens a checkout, and answers with it, its address and its form.

    Raises StoreError, and Refusal. It is invalid_request for a link, a plan or a date that isn't allowed, and forbidden
    for what the credential doesn't allow. It is conflict where the order is foreign, has an open or a completed
    checkout, or as many payments as a bound credential allows; in_progress while one of these isn't final. It is
    idempotency_mismatch; not_configured where a setting is missing; unavailable where the account is paused, where the
    database is behind, and where commits were lost and the gateway can't show yet whether the order was paid.
    """
    account = relay.account(request.account)
    _require_configured(relay, account)
    new = _bounded(request, new)
    _require_allowed(relay, request, account, new)
    for _ in range(ATTEMPTS_MAX):
        earlier = await _earlier(relay, request, account, new)
        if earlier is not None:
            answer = found(await opened_view(relay, earlier))
            return msgspec.structs.replace(answer, headers=(REPLAYED,))
        condition = require_checkout_allowed(relay, request, new.payment)
        await relay.paused.require_open(request.account)
        await relay.lost_commits.require_effects_allowed()
        await require_no_lost_page(relay, request, new.payment.order_id)
        was_free = await require_free_order(relay, request, new.payment.order_id)
        secret = secrets.token_urlsafe(SECRET_BYTES)
        checkout = _new(relay, request, account, new, secret_hash_of(secret))
        details = Details(secret=secret, asked=new.payment, return_to=new.return_to, cancel_to=new.cancel_to)
        with relay.hooks.passing(FlowPoint.OPENING, FlowPoint.OPENED, checkout.id):
            async with refusing_one_too_many(relay, request):
                is_added = await relay.checkouts.add(checkout, details, condition, reference=new.customer_reference)
        if is_added and was_free and await is_shared_order(relay, request, new.payment.order_id):
            # Another principal has charged the order since its owner was asked for.
            await expire(relay, checkout)
            await refuse_taken(relay, account.merchant, new.payment.order_id)
        if is_added:
            return found(await opened_view(relay, checkout))
    raise StoreUnavailable("the checkout could not be stored: other checkouts of the order were opened and ended")


def _require_configured(relay: Relay, account: Gateway) -> None:
    """Raises Refusal (not_configured), naming the settings of checkouts that are missing."""
    unset = account.capabilities.unset_for_checkouts
    if unset:
        names = " and ".join(f"PAYRELAY_GATEWAYS__{account.name.upper()}__{name}" for name in unset)
        raise Refusal(Code.NOT_CONFIGURED, f"checkouts need {names} to be set here")
    if relay.public_url is None:
        raise Refusal(Code.NOT_CONFIGURED, "checkouts need PAYRELAY_PUBLIC_URL to be set here")


def _bounded(request: Request, new: NewCheckout) -> NewCheckout:
    """Limits a bound credential to its own order and customer; returns the request with its customer.

    Raises Refusal (forbidden).
    """
    bound = request.credential.bound
    if bound is None:
        return new
    if bound.order_id is None:
        raise Refusal(Code.FORBIDDEN, "the credential names no order that a customer could be asked to pay")
    if new.payment.order_id != bound.order_id:
        raise Refusal(Code.FORBIDDEN, "the credential is for another order")
    if new.customer_reference not in {None, bound.reference}:
        raise Refusal(Code.FORBIDDEN, "the credential is for another customer than customer_reference")
    return msgspec.structs.replace(new, customer_reference=bound.reference)


def _require_allowed(relay: Relay, request: Request, account: Gateway, new: NewCheckout) -> None:
    """Raises Refusal: forbidden above the credential's largest amount, invalid_request for a link, plan or date."""
    payment, plan = new.payment, new.payment.plan
    require_checkout_amount(request, payment)
    errors = [
        FieldError(name, "is no link that PAYRELAY_RETURN_LINKS allows")
        for name, link in (("return_to", new.return_to), ("cancel_to", new.cancel_to))
        if link is not None and not is_allowed(link, relay.return_links)
    ]
    if plan is not None:
        unknown = account.capabilities.unknown_to_plans
        errors += [
            FieldError(name, "is for live accounts only: the gateway's sandbox does not know it")
            for member, name in PLAN_NAMES.items()
            if member in unknown and getattr(plan, member) is not None
        ]
    if plan is not None and plan.starts_on is not None and plan.starts_on < today_at(relay, account):
        errors.append(FieldError("recurring_start_date", "must not be in the past"))
    if errors:
        msg = "; ".join(f"{error.path} {error.msg}" for error in errors)
        raise Refusal(Code.INVALID_REQUEST, msg, fields=tuple(errors))


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


async def _earlier(relay: Relay, request: Request, account: Gateway, new: NewCheckout) -> Checkout | None:
    """Finds the checkout that an equal request opened; None where there is none.

    Raises Refusal (idempotency_mismatch, or conflict) where an unequal request has the key or the order.
    """
    checkouts = relay.checkouts
    for key in (request.idempotency_key, request.earlier_key):
        claimed = None if key is None else await checkouts.of_key(request.principal, key)
        if claimed is not None:
            if not await _is_equal(relay, claimed, request, new):
                raise Refusal(Code.IDEMPOTENCY_MISMATCH, "this Idempotency-Key was used with another request")
            return claimed
    holder = await checkouts.holder_of(account.merchant, new.payment.order_id)
    if holder is None:
        return None
    now_ms = relay.clock.now_ms()
    if holder.state is CheckoutState.OPEN and holder.ends_at_ms <= now_ms:
        holder = await end_overdue(relay, holder)
        if holder.guard is None:
            return None
    is_mine = holder.principal == request.principal and is_within(
        holder, request.credential.bound, relay.checkouts.reference_hash
    )
    is_recent = now_ms - holder.created_at_ms < relay.retention.unkeyed_ms
    is_repeat = is_mine and is_recent and request.idempotency_key is None
    if is_repeat and await _is_equal(relay, holder, request, new):
        return holder
    if not is_mine:
        await refuse_taken(relay, account.merchant, new.payment.order_id)
    raise Refusal(Code.CONFLICT, f"the order has the checkout {holder.id} already, which is {holder.state}")


def _new(relay: Relay, request: Request, account: Gateway, new: NewCheckout, secret_hash: str) -> Checkout:
    now_ms = relay.clock.now_ms()
    payment, bound, key = new.payment, request.credential.bound, request.idempotency_key
    expires_at_ms = now_ms + _life_ms(request, new, now_ms)
    return Checkout(
        id=relay.new_id("chk", now_ms),
        account=request.account,
        merchant=account.merchant,
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
