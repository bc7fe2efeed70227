"""Charges an approved card, or authorizes the amount on it (``authorize``)."""

from functools import partial

import msgspec

from payrelay.core.access.credential import require_amount
from payrelay.core.answers import Answer
from payrelay.core.calls import Charge
from payrelay.core.customers.customer import is_handle
from payrelay.core.payments.operation import Kind
from payrelay.flows.access.paying_apps import refusing_one_too_many, require_charge_allowed
from payrelay.flows.operations.intent import Intent
from payrelay.flows.payments.carry_out import carry_out
from payrelay.flows.payments.stored_customer import with_token
from payrelay.flows.relay import Relay, Request


async def charge(relay: Relay, request: Request, call: Charge) -> Answer:
    """Charges or authorizes at most once; see ``carry_out`` for repeats.

    While another charge of the order is open, whichever principal made it, this one is refused (in_progress).
    Raises Refusal: forbidden over the credential's largest amount and for what a bound credential isn't for,
    invalid_request for the handle of a customer that can't be charged, conflict where the order has as many payments as
    the credential allows. A repeat is answered even then: its fingerprint is made of the handle and not of the
    token, so a later change of the customer makes no other request of it. Where an earlier try is perhaps lost, and
    may have charged a customer before the removal, the charge is unavailable and not an invalid_request.
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
    is_limited = request.credential.bound is not None or request.credential.payments_max is not None
    if not is_limited and not is_handle(call.customer_token):
        return await carry_out(relay, request, intent)
    async with refusing_one_too_many(relay, request):
        return await carry_out(relay, request, intent, prepare=partial(_prepared, relay, request, call))


async def _prepared(relay: Relay, request: Request, call: Charge, intent: Intent) -> Intent:
    """Returns the intent of a charge that is no repeat, as far as the credential allows it."""
    condition = require_charge_allowed(relay, request, call)
    intent = msgspec.structs.replace(intent, condition=condition)
    if not is_handle(call.customer_token):
        return intent
    lost_since_ms = await relay.database.lost_commits.tries_lost_since_ms(request.principal)
    return await with_token(relay, request, call, intent, lost_since_ms=lost_since_ms)
