"""Carries out what an operator decides about a checkout that may have been paid in commits that are lost."""

from payrelay.core.calls import PaymentsOfOrder
from payrelay.core.checkouts.checkout import Checkout, CheckoutKind, CheckoutState, Result
from payrelay.core.checkouts.checkout_proof import may_be_paid_by
from payrelay.core.payments.payment import NoObservation, Payment, PaymentsSeen
from payrelay.errors import Outdated, UndecidedError
from payrelay.flows.checkouts.finish_checkout import complete, expire
from payrelay.flows.relay import Relay
from payrelay.recovery.rules.lost_payments import PageDecision, newest_loss_since


async def decide_checkout(
    relay: Relay,
    checkout: Checkout,
    decision: PageDecision,
    *,
    operator: str,
    reason: str,
    payment_id: str | None = None,
) -> Checkout:
    """Completes a checkout with its payment, or ends it; returns it as stored then. The log has who decided, and why.

    ``payment_id`` is the payment of a checkout that was paid. The gateway must show it as the checkout's order, amount
    and currency, and nothing else here may own it. May be repeated. Raises UndecidedError where the checkout went
    through no loss, has its outcome, or the payment isn't so; Refusal where its account isn't configured; StoreError.
    """
    if newest_loss_since(checkout.created_at_ms, await relay.database.lost_commits.identity()) is None:
        raise UndecidedError(f"{checkout.id} was opened after the last loss of commits: there is nothing to decide")
    if decision is PageDecision.UNPAID:
        decided = await _end(relay, checkout)
    else:
        decided = await _complete(relay, checkout, payment_id)
    relay.log.warning("checkout_decided", checkout_id=checkout.id, decision=decision, operator=operator, reason=reason)
    return decided


async def _end(relay: Relay, checkout: Checkout) -> Checkout:
    if not checkout.is_open:
        raise UndecidedError(f"{checkout.id} is {checkout.state} already")
    return await expire(relay, checkout)


async def _complete(relay: Relay, checkout: Checkout, payment_id: str | None) -> Checkout:
    if checkout.kind is not CheckoutKind.PAYMENT:
        raise UndecidedError(f"{checkout.id} asks for more than a payment, which no payment alone can give")
    if checkout.state is CheckoutState.COMPLETED and checkout.payment_id != payment_id:
        raise UndecidedError(f"{checkout.id} is completed by payment {checkout.payment_id} already")
    if payment_id is None or not any(
        may_be_paid_by(checkout, each) for each in await _shown(relay, checkout, payment_id)
    ):
        raise UndecidedError(f"the gateway doesn't show payment {payment_id} as one of {checkout.id}")
    try:
        return await complete(relay, checkout, Result(payment_id=payment_id))
    except Outdated:
        raise UndecidedError(f"payment {payment_id} belongs to another checkout or operation") from None


async def _shown(relay: Relay, checkout: Checkout, payment_id: str) -> list[Payment]:
    account = relay.account(checkout.account)
    seen = await account.inquire(
        PaymentsOfOrder(order_id=checkout.order_id), until_s=relay.clock.boot_s() + account.queue_s
    )
    if isinstance(seen, NoObservation):
        raise UndecidedError(f"the gateway can't be asked for payment {payment_id} now ({seen.code})")
    payments = seen.payments if isinstance(seen, PaymentsSeen) else ()
    return [each for each in payments if each.payment_id == payment_id]
