"""Searches for an order that is known to be paid: only a search that works can show that a payment is missing."""

from functools import partial
from typing import Final

from payrelay.core.calls import PaymentsOfOrder, PaymentsOfSubscription
from payrelay.core.payments.payment import Observation, PaymentsSeen
from payrelay.core.payments.proof import Control
from payrelay.flows.relay import Relay, Request
from payrelay.flows.resolution.case import Inquire
from payrelay.gateways.pacing.rate_limiter import Priority

KNOWN_PAID_FOR_MS: Final = 900_000
"""A control query prefers an order that was paid at least this long ago: the gateway may show a newer payment late."""


async def control_query(relay: Relay, merchant: str, order_id: str | None, inquire: Inquire) -> Control:
    """Searches for a paid order of the merchant other than ``order_id``, and gives the result. Raises StoreError.

    Where the database knows none, an operator's report of the gateway's payments or an import may have named one. The
    gateway must show it too, so a wrong file makes nobody believe a search that doesn't work.
    """
    before_ms = relay.clock.now_ms() - KNOWN_PAID_FOR_MS
    paid = await relay.resolution.paid_order(merchant, other_than=order_id or "", before_ms=before_ms)
    if paid is None:
        paid = await _reported_order(relay, merchant, order_id)
    if paid is None:
        paid = await relay.money.imported_payments.paid_order(merchant, other_than=order_id or "")
    if paid is None:
        return Control.NONE_KNOWN
    observation = await inquire(PaymentsOfOrder(order_id=paid))
    return Control.FOUND if isinstance(observation, PaymentsSeen) and observation.payments else Control.NOT_FOUND


async def _reported_order(relay: Relay, merchant: str, order_id: str | None) -> str | None:
    accounts = {name for name, each in relay.accounts.items() if each.merchant == merchant}
    reports = (await relay.database.lost_commits.identity()).current.reports
    named = [each.paid_order for each in reports if each.account in accounts and each.paid_order != order_id]
    return next((each for each in reversed(named) if each is not None), None)


async def shared_control(relay: Relay, merchant: str, order_id: str | None, inquire: Inquire) -> Control:
    """Gives the result of ``control_query``; all who ask for the merchant share it for a while. Raises StoreError."""
    make = partial(control_query, relay, merchant, order_id, inquire)
    return await relay.control_queries.result(merchant, relay.clock, make)


async def inquire_for(relay: Relay, request: Request, call: PaymentsOfOrder | PaymentsOfSubscription) -> Observation:
    """Asks the gateway, out of the caller's share of the budget."""
    account = request.gateway
    until_s = relay.clock.boot_s() + account.queue_s
    requester = request.credential.requester
    return await account.inquire(call, until_s=until_s, priority=Priority.READ, requester=requester)
