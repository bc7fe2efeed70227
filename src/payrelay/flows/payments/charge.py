"""Charges an approved card, or authorizes the amount on it (``authorize``)."""

from functools import partial

import msgspec

from payrelay.core.access.bounds import owns_customer
from payrelay.core.access.credential import require_amount
from payrelay.core.answers import Answer
from payrelay.core.calls import Charge
from payrelay.core.customers.customer import CustomerState, is_handle
from payrelay.core.payments.operation import Kind
from payrelay.errors import Refusal, wrong_field
from payrelay.flows.access.paying_apps import refusing_one_too_many, require_charge_allowed
from payrelay.flows.operations.intent import Intent
from payrelay.flows.payments.carry_out import carry_out
from payrelay.flows.relay import Relay, Request


async def charge(relay: Relay, request: Request, call: Charge) -> Answer:
    """Charges or authorizes at most once; see ``carry_out`` for repeats.

    While another charge of the order is open, whichever principal made it, this one is refused (in_progress).
    Raises Refusal: forbidden over the credential's largest amount and for what a bound credential isn't for,
    invalid_request for the handle of a customer that can't be charged, conflict where the order has as many payments as
    a bound credential allows. A repeat is answered even then: its fingerprint is made of the handle and not of the
    token, so a later change of the customer makes no other request of it.
    """
    require_amount(request.credential, call.amount_minor)
    intent = Intent(
        kind=Kind.AUTHORIZATION if call.authorize else Kind.CHARGE,
        call=call,
        subject=f"order/{call.order_id}",
        order_id=call.order_id,
        amount_minor=call.amount_minor,
        currency=call.currency,
    )
    if request.credential.bound is None and not is_handle(call.customer_token):
        return await carry_out(relay, request, intent)
    async with refusing_one_too_many(relay, request):
        return await carry_out(relay, request, intent, prepare=partial(_prepared, relay, request, call))


async def _prepared(relay: Relay, request: Request, call: Charge, intent: Intent) -> Intent:
    """Returns the intent of a charge that is no repeat, as far as a bound credential allows it."""
    condition = require_charge_allowed(relay, request, call)
    intent = msgspec.structs.replace(intent, condition=condition)
    return await with_token(relay, request, call, intent) if is_handle(call.customer_token) else intent


async def _tell_lost(relay: Relay, customer_id: str) -> None:
    """Raises Refusal (unavailable) where the customer's approval may be lost, and logs it: its token is gone then."""
    try:
        await relay.lost_commits.require_known(customer_id, "customer")
    except Refusal:
        relay.log.error("customer_may_be_lost", customer_id=customer_id)
        raise


async def with_token(relay: Relay, request: Request, call: Charge, intent: Intent) -> Intent:
    """Adds the call that is sent, in which the customer's token replaces the handle.

    The token goes only to the gateway; the stored call has the handle.
    """
    customer = await relay.customers.get(call.customer_token)
    if customer is None or not owns_customer(request.credential, relay.account(request.account).merchant, customer):
        await _tell_lost(relay, call.customer_token)
        raise wrong_field("customer_token", "names no customer of yours on this account")
    token = await relay.customers.token_of(customer.id)
    if token is None:
        became = "erased" if customer.state is CustomerState.ERASED else "removed"
        raise wrong_field("customer_token", f"names a customer that was {became}")
    sent = msgspec.structs.replace(call, customer_token=token.reveal())
    return msgspec.structs.replace(intent, sent=sent, customer_id=customer.id)
