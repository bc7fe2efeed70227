"""What may be asked of a customer on a page: by the settings, by the credential, and beside charges of the order."""

from typing import Final

import msgspec

from payrelay.core.access.ownership import OrderOwners
from payrelay.core.checkouts.counted_payments import asks_for_money
from payrelay.core.checkouts.hosted_payment import HostedPayment, NewCheckout
from payrelay.core.checkouts.return_links import is_allowed
from payrelay.errors import Code, FieldError, Refusal
from payrelay.flows.access.ownership import is_foreign, refuse_taken
from payrelay.flows.access.paying_apps import require_checkout_amount
from payrelay.flows.checkouts.way_to_gateway import today_at
from payrelay.flows.operations.answer_repeat import charge_in_the_way
from payrelay.flows.relay import Relay, Request
from payrelay.gateways.gateway import Gateway

PLAN_NAMES: Final = {
    "auto_cancel": "auto_cancel",
    "max_retries": "max_retries",
    "starts_on": "recurring_start_date",
    "is_recovery_due": "is_recovery_due",
}
"""Members of a plan that some accounts don't support, each with its name in the interface."""


def allowed(relay: Relay, request: Request, account: Gateway, new: NewCheckout) -> NewCheckout:
    """Returns the request for a checkout as it may be carried out: that of an app is for the app's own customer.

    Raises Refusal: not_configured where a setting is missing, and forbidden for another order or customer than the
    credential's or above its largest amount. It is invalid_request for a link, a currency, a plan or a date that isn't
    allowed.
    """
    _require_configured(relay, account)
    new = _bounded(request, new)
    _require_allowed(relay, request, account, new)
    return new


async def require_no_charge(relay: Relay, request: Request, payment: HostedPayment) -> None:
    """Raises Refusal (in_progress) for a page that asks for money while a charge of its order is open; StoreError."""
    if not asks_for_money(payment.kind, payment.amount_minor):
        return
    merchant = relay.account(request.account).merchant
    charging = await relay.journal.find_guard(merchant, f"order/{payment.order_id}")
    if charging is not None:
        raise charge_in_the_way(relay, charging, request)


async def require_still_free(relay: Relay, request: Request, payment: HostedPayment, before: OrderOwners) -> None:
    """Raises Refusal where the order was taken or charged since the first look at it, when its page is stored by now.

    It is conflict where it was free, and another principal took it; in_progress for a page that asks for money where a
    charge came. That one may have ended since, and was begun beside the page all the same. A charge that is stored from
    here on finds the page (``flows.payments.free_order``). Raises StoreError.
    """
    merchant = relay.account(request.account).merchant
    owners = await relay.access.owners.of_order(merchant, payment.order_id)
    if not before.all and await is_foreign(relay, request, owners.all - {request.principal}):
        await refuse_taken(relay, merchant, payment.order_id)
    await require_no_charge(relay, request, payment)
    if asks_for_money(payment.kind, payment.amount_minor) and owners.operations > before.operations:
        raise Refusal(Code.IN_PROGRESS, "a charge of this order came while its page was opened: see what came of it")


def _require_configured(relay: Relay, account: Gateway) -> None:
    """Raises Refusal (not_configured), naming the settings of checkouts that are missing."""
    unset = account.capabilities.unset_for_checkouts
    if unset:
        names = " and ".join(f"PAYRELAY_GATEWAYS__{account.name.upper()}__{name}" for name in unset)
        raise Refusal(Code.NOT_CONFIGURED, f"checkouts need {names} to be set here")
    if relay.settings.public_url is None:
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
    """Raises Refusal: forbidden above the credential's largest amount, invalid_request for a field that isn't allowed.

    Such a field is a link, the currency, or a member or date of a plan.
    """
    payment, plan = new.payment, new.payment.plan
    require_checkout_amount(request, payment)
    errors = [
        FieldError(name, "is no link that PAYRELAY_RETURN_LINKS allows")
        for name, link in (("return_to", new.return_to), ("cancel_to", new.cancel_to))
        if link is not None and not is_allowed(link, relay.settings.return_links)
    ]
    currency_error = account.capabilities.page_currency_error(payment.currency)
    if currency_error is not None:
        errors.append(FieldError("currency", currency_error))
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
