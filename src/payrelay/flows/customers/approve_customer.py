"""Keeps an approval as a stored customer, whoever brings it: a notification, a finished checkout or the merchant."""

from typing import Final

from payrelay.core.customers.customer import (
    PREFIX,
    Approval,
    Customer,
    CustomerEvent,
    CustomerState,
    approved,
    approved_again,
    is_repeat,
)
from payrelay.errors import Outdated, StoreUnavailable
from payrelay.flows.relay import Relay
from payrelay.runtime.hooks import FlowPoint

ATTEMPTS_MAX: Final = 5
"""How often the same customer may change under one story: nobody approves and relabels one that often at once."""


async def approve(relay: Relay, approval: Approval) -> Customer:
    """Gives the customer of an approval: a new one, or the one that has the same token already, brought up to date.

    Of many that approve the same at once, one makes the customer, and all are given it. May be repeated: the same
    approval changes nothing the second time. Each principal has a customer of its own for a token, because two shops
    of one merchant may both be approved by the same card, and neither may touch the other's. Where the customer was
    removed or erased, the approval that it came from gives it as it is, without a token; any other one makes a new
    customer.

    The customer and its event are written together. Raises StoreUnavailable, StoreUnusable.
    """
    customers = relay.customers
    for _ in range(ATTEMPTS_MAX):
        at_ms = relay.clock.now_ms()
        known = await customers.of_token(approval.merchant, approval.principal, approval.token)
        if known is not None and known.state is not CustomerState.ACTIVE and is_repeat(known, approval):
            return known
        if known is None or known.state is not CustomerState.ACTIVE:
            customer = approved(approval, relay.new_id(PREFIX, at_ms), at_ms=at_ms)
            relay.hooks.passed(FlowPoint.STORING, customer.id)
            is_added = await customers.add(customer, approval)
            relay.hooks.passed(FlowPoint.STORED, customer.id)
            if is_added:
                return customer
            continue
        changed = approved_again(known, approval, at_ms=at_ms)
        if changed is known:
            return known
        relay.hooks.passed(FlowPoint.STORING, changed.id)
        try:
            await customers.change(changed, CustomerEvent.APPROVED, card_holder=approval.card_holder)
        except Outdated:
            continue
        relay.hooks.passed(FlowPoint.STORED, changed.id)
        return changed
    raise StoreUnavailable("a customer could not be stored: it was changed by others again and again")
