"""Refunds a payment, in whole or in part, or voids an authorization."""

import msgspec

from payrelay.core.access.credential import require_amount
from payrelay.core.answers import Answer
from payrelay.core.calls import Refund, Void
from payrelay.core.outcomes import Evidence
from payrelay.core.payments.operation import Kind, captured_guard
from payrelay.core.payments.payment import PaymentStatus, plain_number
from payrelay.core.payments.proof import MatchResult
from payrelay.flows.operations.intent import Intent
from payrelay.flows.payments.carry_out import carry_out
from payrelay.flows.payments.named_authorization import NamedAuthorization, named_authorization
from payrelay.flows.refunds.limits import RefundByPerson, within_limits
from payrelay.flows.relay import Relay, Request


async def refund(
    relay: Relay, request: Request, call: Refund | Void, *, person: RefundByPerson | None = None
) -> Answer:
    """Refunds or voids at most once; see ``carry_out`` for repeats.

    A refund of more than is left of its payment is refused (conflict) as far as that is known here; ``person`` is how
    somebody refunds who may insist, and None for a request with a key. A refund without an amount is of all that is
    left: after a part went back the call names that rest.
    An authorization that Payrelay captured is not voided (conflict); its payment can be refunded. Nor is one voided
    that Payrelay voided as a whole. In place of the authorization token a void may name the checkout that yielded it.
    Raises Refusal (forbidden) over the credential's largest amount. With such a limit a refund must name its amount.
    A void need not, because it moves no money.
    """
    if isinstance(call, Refund) or call.amount_minor is not None:
        require_amount(request.credential, call.amount_minor)
    if isinstance(call, Void):
        named = await named_authorization(relay, request, call)
        return named if isinstance(named, Answer) else await carry_out(relay, request, _of_authorization(named))
    intent = await with_payment(relay, request, call, _of_payment(call))

    async def within(intent: Intent) -> Intent:
        return await within_limits(relay, request, intent, call, person=person)

    return await carry_out(relay, request, intent, prepare=within)


def _of_authorization(named: NamedAuthorization[Void]) -> Intent:
    """Returns the intent of a void, with the order and currency of its authorization where Payrelay knows it."""
    made_by = named.made_by
    return Intent(
        kind=Kind.VOID,
        call=named.call,
        subject=named.subject,
        # The gateway doesn't document what voiding a captured authorization does: it might return the money, beside a
        # refund of the payment. A captured payment is refunded by its payment id.
        conflicts_with=captured_guard(named.subject),
        order_id=None if made_by is None else made_by.order_id,
        amount_minor=named.call.amount_minor,
        currency=None if made_by is None else made_by.currency,
    )


async def with_payment(relay: Relay, request: Request, call: Refund, intent: Intent) -> Intent:
    """Adds the payment's order and currency, and whether it was received; a lost answer is proved by them later."""
    merchant = relay.account(request.account).merchant
    payment = await relay.money.known_payments.get(merchant, plain_number(call.payment_id))
    if payment is None:
        return intent
    is_received = payment.status is PaymentStatus.RECEIVED
    evidence = Evidence(seen=MatchResult.STILL_RECEIVED) if is_received else Evidence()
    return msgspec.structs.replace(intent, order_id=payment.order_id, currency=payment.currency, evidence=evidence)


def _of_payment(call: Refund) -> Intent:
    # The gateway's ids are numbers: 0320… names the same payment as 320…. Both must meet the same guard, and be found
    # beside the payment's other refunds.
    payment_id = plain_number(call.payment_id)
    return Intent(
        kind=Kind.REFUND,
        call=call,
        subject=f"payment/{payment_id}",
        payment_id=payment_id,
        amount_minor=call.amount_minor,
    )
