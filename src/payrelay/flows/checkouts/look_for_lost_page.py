"""Looks, before a page is opened while a recovery lasts, whether the order was paid on a page that was lost.

A page that is lost leaves its order free here. Its customer may have paid, and would be asked to pay once more.
"""

from typing import Final

from payrelay.core.calls import PaymentsOfOrder
from payrelay.core.checkouts.checkout import CheckoutKind
from payrelay.core.payments.payment import NoObservation, PaymentsSeen, PaymentStatus
from payrelay.core.payments.proof import TOLERANCE_MS
from payrelay.errors import Code, Refusal
from payrelay.flows.recovery.queries import inquire
from payrelay.flows.relay import Relay, Request
from payrelay.gateways.gateway import Gateway

TOO_EARLY_SENTENCE: Final = (
    "the database lost its newest checkouts, and the gateway may not show yet whether the order was paid on one of them"
)
UNSEEN_SENTENCE: Final = (
    "the database lost its newest checkouts, and the gateway does not show now whether the order was paid on one of"
    " them"
)
PAID_SENTENCE: Final = (
    "the gateway shows a payment of this order that isn't known here, since the database lost commits; an operator must"
    " look at it before the order is paid once more"
)
UNSEEN_RETRY_AFTER_S: Final = 30
_PAID: Final = frozenset({CheckoutKind.PAYMENT, CheckoutKind.RECURRING})
"""The kinds that the gateway shows by a payment of the order."""


async def require_no_lost_page(relay: Relay, request: Request, kind: CheckoutKind, order_id: str) -> None:
    """Raises Refusal where the order may have been paid on a page that is lost; asks the gateway where it can tell.

    It is unavailable while the gateway can't show that, and conflict where it shows a payment that is of nothing here.
    Outside of a recovery, and for a principal that has acknowledged it, nobody is asked. Raises StoreError.
    """
    incarnation = await relay.lost_commits.require_effects_allowed()
    if incarnation is None or incarnation.lost is None or request.principal in incarnation.acknowledged:
        return
    wait_ms = incarnation.lost.until_ms + relay.recovery_lag_s * 1000 - relay.clock.now_ms()
    if wait_ms > 0:
        raise Refusal(Code.UNAVAILABLE, TOO_EARLY_SENTENCE, retry_after_s=-(-wait_ms // 1000))
    if kind not in _PAID:
        return
    account = relay.account(request.account)
    unknown = await _unknown_payments(relay, request, account, order_id, incarnation.lost.since_ms)
    if unknown:
        relay.log.error("order_paid_unknown", account=account.name, order_id=order_id, payment_ids=unknown)
        raise Refusal(Code.CONFLICT, PAID_SENTENCE)


async def _unknown_payments(
    relay: Relay, request: Request, account: Gateway, order_id: str, since_ms: int
) -> list[str]:
    """Finds the payments since a time that nothing here owns, and that were not given back."""
    observation = await inquire(relay, request, PaymentsOfOrder(order_id=order_id))
    if isinstance(observation, NoObservation):
        raise Refusal(Code.UNAVAILABLE, UNSEEN_SENTENCE, retry_after_s=UNSEEN_RETRY_AFTER_S)
    payments = observation.payments if isinstance(observation, PaymentsSeen) else ()
    known = {each.payment_id for each in await relay.checkouts.of_order(account.merchant, order_id)}
    return [
        each.payment_id
        for each in payments
        if each.status is not PaymentStatus.REFUNDED
        and (each.at_ms is None or each.at_ms >= since_ms - TOLERANCE_MS)
        and each.payment_id not in known
        and await relay.inbox.owner_of_payment(account.merchant, each.payment_id) is None
    ]
