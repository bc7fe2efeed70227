"""Looks, before a page is opened while a recovery lasts, whether the order was paid on a page that was lost.

A page that is lost leaves its order free here. Its customer may have paid, and would be asked to pay once more. An
acknowledgement doesn't end that: a principal knows what it has sent, and not what its customers did on a page.
"""

from functools import partial
from typing import Final

from payrelay.core.calls import PaymentsOfOrder
from payrelay.core.payments.payment import NoObservation, PaymentsSeen
from payrelay.core.payments.proof import Control
from payrelay.errors import Code, Refusal
from payrelay.flows.checkouts.doubted_payments import unexplained_among
from payrelay.flows.relay import Relay, Request
from payrelay.flows.resolution.control_query import inquire_for, shared_control
from payrelay.gateways.gateway import Gateway
from payrelay.store.alerts import ORDER_ROW

TOO_EARLY_SENTENCE: Final = (
    "the database lost its newest checkouts, and the gateway may not show yet whether the order was paid on one of them"
)
UNSEEN_SENTENCE: Final = (
    "the database lost its newest checkouts, and the gateway does not show now whether the order was paid on one of"
    " them"
)
UNPROVED_SENTENCE: Final = (
    "the database lost its newest checkouts, and no order is known to be paid that could show whether the gateway's"
    " search works; acknowledge the recovery to open pages all the same"
)
PAID_SENTENCE: Final = (
    "the gateway shows a payment of this order that isn't known here, since the database lost commits; an operator must"
    " look at it before the order is paid once more"
)
UNSEEN_RETRY_AFTER_S: Final = 30


async def require_no_lost_page(relay: Relay, request: Request, order_id: str) -> None:
    """Raises Refusal where the order may have been paid on a page that is lost, as far as the gateway can tell.

    It is unavailable while the gateway can't show that, and conflict where it shows a payment that is of nothing here.
    An empty search needs a control query beside it. Where no order is known for that, the empty search counts for a
    principal that has acknowledged the recovery. Outside of a recovery the gateway is asked only about an order of
    which it showed such a payment before: the recovery's end explains none. Raises StoreError.
    """
    incarnation = await relay.database.lost_commits.require_effects_allowed()
    name = f"{ORDER_ROW}{request.gateway.merchant}/{order_id}"
    if incarnation is None:
        since_ms = (await relay.database.lost_commits.identity()).first_lost_ms
        if since_ms is not None and await relay.journal.trail.has_reported(name):
            await _require_explained(relay, request, order_id, since_ms)
        return
    if incarnation.lost is None:
        return
    wait_ms = relay.database.lost_commits.wait_ms(incarnation, relay.settings.recovery_lag_s * 1000)
    if wait_ms > 0:
        raise Refusal(Code.UNAVAILABLE, TOO_EARLY_SENTENCE, retry_after_s=-(-wait_ms // 1000))
    await _require_explained(relay, request, order_id, incarnation.lost.since_ms)
    control = await _control(relay, request, request.gateway, order_id)
    if control is Control.NOT_FOUND:
        raise Refusal(Code.UNAVAILABLE, UNSEEN_SENTENCE, retry_after_s=UNSEEN_RETRY_AFTER_S)
    if control is Control.NONE_KNOWN and request.principal not in incarnation.acknowledged:
        raise Refusal(Code.UNAVAILABLE, UNPROVED_SENTENCE, retry_after_s=UNSEEN_RETRY_AFTER_S)


async def _require_explained(relay: Relay, request: Request, order_id: str, since_ms: int) -> None:
    """Raises Refusal where the gateway shows a payment since a time that is of nothing here, and calls an operator."""
    account = request.gateway
    observation = await inquire_for(relay, request, PaymentsOfOrder(order_id=order_id))
    if isinstance(observation, NoObservation):
        raise Refusal(Code.UNAVAILABLE, UNSEEN_SENTENCE, retry_after_s=UNSEEN_RETRY_AFTER_S)
    payments = observation.payments if isinstance(observation, PaymentsSeen) else ()
    unknown = await unexplained_among(relay, account.merchant, order_id, payments, since_ms)
    if unknown:
        relay.log.error("order_paid_unknown", account=account.name, order_id=order_id, payment_ids=unknown)
        await relay.journal.trail.report(f"{ORDER_ROW}{account.merchant}/{order_id}", relay.clock.now_ms())
        raise Refusal(Code.CONFLICT, PAID_SENTENCE)


async def _control(relay: Relay, request: Request, account: Gateway, order_id: str) -> Control:
    return await shared_control(relay, account.merchant, order_id, partial(inquire_for, relay, request))
