"""Gives a payment back, whole or in part, or lets go of a hold."""

import msgspec

from payrelay.core.access.credential import require_amount
from payrelay.core.answers import Answer
from payrelay.core.calls import Refund, Void
from payrelay.core.outcomes import Evidence
from payrelay.core.payments.operation import Kind, captured_guard
from payrelay.core.payments.payment import PaymentStatus, plain_number
from payrelay.core.payments.proof import MatchResult
from payrelay.core.secret import secret_hash
from payrelay.flows.payments.authorization_of_checkout import authorization_of_checkout
from payrelay.flows.payments.carry_out import carry_out
from payrelay.flows.payments.intent import Intent
from payrelay.flows.relay import Relay, Request


async def refund(relay: Relay, request: Request, call: Refund | Void) -> Answer:
    """Refunds or releases at most once; see ``effect.carry_out`` for repeats.

    A hold that we captured is not released (conflict); its payment can be refunded.
    Raises Refusal (forbidden) over the credential's largest amount, which a refund of the whole can't be held
    against: with such a limit a refund must name its amount. A release moves no money; in place of the hold's token it
    may name the checkout that yielded it.
    """
    if isinstance(call, Refund) or call.amount_minor is not None:
        require_amount(request.credential, call.amount_minor)
    if isinstance(call, Void):
        held = await authorization_of_checkout(relay, request, call.authorization_token)
        call = call if held is None else msgspec.structs.replace(call, authorization_token=held.token)
    intent = _intent(call)
    if isinstance(call, Refund):
        intent = await _with_what_is_known(relay, request, call, intent)
    return await carry_out(relay, request, intent)


async def _with_what_is_known(relay: Relay, request: Request, call: Refund, intent: Intent) -> Intent:
    """Adds the payment's order, and whether it was seen received: what a lost answer is proved by later."""
    merchant = relay.account(request.account).merchant
    payment_id = plain_number(call.payment_id)
    seen = await relay.resolution.payment_seen(merchant, payment_id)
    if seen is not None:
        order_id: str | None
        order_id, status = seen
        is_received = status == PaymentStatus.RECEIVED
    else:
        order_id = await relay.resolution.order_of_payment(merchant, payment_id)
        is_received = order_id is not None
    evidence = Evidence(seen=MatchResult.STILL_RECEIVED) if is_received else Evidence()
    return msgspec.structs.replace(intent, order_id=order_id, evidence=evidence)


def _intent(call: Refund | Void) -> Intent:
    if isinstance(call, Refund):
        # The gateway's ids are numbers: 0320… would be the same payment, and must meet the same guard and be found
        # beside the other refunds of it.
        payment_id = plain_number(call.payment_id)
        return Intent(
            kind=Kind.REFUND,
            call=call,
            subject=f"payment/{payment_id}",
            payment_id=payment_id,
            amount_minor=call.amount_minor,
        )
    subject = f"authorization/{secret_hash(call.authorization_token)}"
    return Intent(
        kind=Kind.VOID,
        call=call,
        subject=subject,
        # What the gateway makes of releasing a hold that was captured is not documented: it might give the money back,
        # beside a refund of the payment. A captured payment is refunded by its payment id.
        conflicts_with=captured_guard(subject),
        amount_minor=call.amount_minor,
    )
