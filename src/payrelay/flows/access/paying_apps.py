"""What a credential may pay, above all an app's: asked by the flows that begin a payment, once a repeat is answered.

Rules:

1. The credential's allowance decides what may be asked for. The payments of the order are counted when the payment is
   stored, in the same transaction. A key may have a limit for each order, too; of both limits the smaller one holds.
2. A refusal names what paid only where it belongs to the app's own order and customer.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from functools import partial
from typing import Final

from payrelay.core.access.allowance import AskedPayment, PlanTerms, require_allowed
from payrelay.core.access.bounds import has_operation
from payrelay.core.access.credential import require_amount
from payrelay.core.calls import Charge
from payrelay.core.checkouts.checkout import CheckoutState, is_within
from payrelay.core.checkouts.counted_payments import CountedPayment, Noun, PaymentLimit, counts_checkout
from payrelay.core.checkouts.hosted_payment import HostedPayment, Plan
from payrelay.errors import Code, OperationForged, Refusal
from payrelay.flows.relay import Relay, Request
from payrelay.store.payments.counted_payments import TooManyPayments, require_room
from payrelay.store.payments.journal import Condition

MORE_TERMS: Final = frozenset(Plan.__struct_fields__) - frozenset(PlanTerms.__struct_fields__)
"""Members of a plan that no token names, so that no app may give them where the plan is named."""


def require_charge_allowed(relay: Relay, request: Request, call: Charge) -> Condition | None:
    """Returns what must hold when the charge is stored; None for a key without a limit of payments.

    Raises Refusal (forbidden) for a charge that a bound credential isn't for.
    """
    asked = AskedPayment(
        kind="authorization" if call.authorize else "payment", amount_minor=call.amount_minor, currency=call.currency
    )
    return _required(relay, request, call.order_id, asked)


def require_checkout_allowed(relay: Relay, request: Request, payment: HostedPayment) -> Condition | None:
    """Returns what must hold when the checkout is stored; None for a key without a limit of payments.

    None also for an approval that charges nothing.

    Raises Refusal (forbidden) for a checkout that a bound credential isn't for.
    """
    plan, terms = payment.plan, None
    if plan is not None:
        terms = PlanTerms(recurrence=plan.recurrence, duration=plan.duration, startup_fee_minor=plan.startup_fee_minor)
    asked = AskedPayment(
        kind=payment.kind.value,
        amount_minor=payment.amount_minor,
        currency=payment.currency,
        plan=terms,
        has_more_terms=any(getattr(plan, member, None) is not None for member in MORE_TERMS),
    )
    condition = _required(relay, request, payment.order_id, asked)
    return condition if counts_checkout(payment.kind, payment.amount_minor, CheckoutState.OPEN) else None


def require_checkout_amount(request: Request, payment: HostedPayment) -> None:
    """Raises Refusal (forbidden) where the first or a later payment is above the credential's largest amount."""
    amounts = [amount for amount in (payment.amount_minor, payment.first_minor) if amount is not None]
    if amounts:
        require_amount(request.credential, max(amounts))


@asynccontextmanager
async def refusing_one_too_many(relay: Relay, request: Request) -> AsyncIterator[None]:
    """Raises Refusal in place of TooManyPayments: conflict, or in_progress while an operation may give its place back.

    Raises StoreUnavailable where what paid can't be read.
    """
    try:
        yield
    except TooManyPayments as refused:
        payment = refused.payment
        by_operation = payment.noun is Noun.OPERATION
        refusal = await (_by_operation if by_operation else _by_checkout)(relay, request, payment)
        raise refusal from None


def _required(relay: Relay, request: Request, order_id: str, asked: AskedPayment) -> Condition | None:
    bound, payments_max = request.credential.bound, request.credential.payments_max
    if bound is not None:
        allowed_max = require_allowed(bound.allowance, asked).payments_max
        payments_max = allowed_max if payments_max is None else min(payments_max, allowed_max)
    if payments_max is None:
        return None
    merchant = request.gateway.merchant
    limit = PaymentLimit(merchant=merchant, order_id=order_id, payments_max=payments_max)
    return partial(require_room, limit, relay.checkouts.rows.key)


async def _by_operation(relay: Relay, request: Request, payment: CountedPayment) -> Refusal:
    operation = None
    with suppress(OperationForged):  # a person looks at it; until then it counts as one that isn't final
        operation = await relay.journal.get(payment.id)
    is_own = (
        operation is not None
        and operation.principal == request.principal
        and has_operation(request.credential.bound, operation)
    )
    own = operation if is_own else None
    operation_id = None if own is None else own.id
    if not payment.is_made:
        return Refusal(Code.IN_PROGRESS, "a payment of the order is not final yet", operation_id=operation_id)
    number = None if own is None else own.payment_id
    by = "" if number is None else f", by the payment {number}"
    return Refusal(Code.CONFLICT, f"the order is paid already{by}", operation_id=operation_id)


async def _by_checkout(relay: Relay, request: Request, payment: CountedPayment) -> Refusal:
    checkout = await relay.checkouts.get(payment.id)
    is_own = (
        checkout is not None
        and checkout.principal == request.principal
        and is_within(checkout, request.credential.bound, relay.checkouts.reference_hash)
    )
    name = f"the checkout {payment.id}" if is_own else "a checkout"
    if payment.is_made:
        return Refusal(Code.CONFLICT, f"the order is paid already, by {name}")
    return Refusal(Code.CONFLICT, f"the order has {name} already, which may still be paid")
