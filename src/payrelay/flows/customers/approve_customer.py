"""Stores an approval as a customer, whether a notification, a finished checkout or the merchant brings it."""

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
"""Attempts to store a customer that others change at the same time."""


async def approve(relay: Relay, approval: Approval) -> Customer:
    """Returns the customer of an approval: a new one, or the updated one that already has an equal token.

    Equal approvals at one moment make one customer, and each caller gets it. May be repeated: an equal approval changes
    nothing the second time. Each principal has its own customer for a token: two shops of one merchant may both have
    the approval of one card, and neither may touch the other's customer. Where the customer was removed or erased, the
    approval that made it returns it as it is, without a token. Any other approval makes a new customer.

    The customer and its event are stored in one transaction. Raises StoreUnavailable, StoreUnusable.
    """
    customers = relay.customers
    for _ in range(ATTEMPTS_MAX):
        at_ms = relay.clock.now_ms()
        known = await customers.of_token(approval.merchant, approval.principal, approval.token)
        if known is not None and known.state is not CustomerState.ACTIVE and is_repeat(known, approval):
            return known
        if known is None or known.state is not CustomerState.ACTIVE:
            customer = approved(approval, relay.new_id(PREFIX, at_ms), at_ms=at_ms)
            with relay.hooks.passing(FlowPoint.STORING, FlowPoint.STORED, customer.id):
                is_added = await customers.add(customer, approval)
            if is_added:
                return customer
            continue
        changed = approved_again(known, approval, at_ms=at_ms)
        if changed is known:
            return known
        try:
            with relay.hooks.passing(FlowPoint.STORING, FlowPoint.STORED, changed.id):
                await customers.change(changed, CustomerEvent.APPROVED, card_holder=approval.card_holder)
        except Outdated:
            continue
        return changed
    raise StoreUnavailable("a customer could not be stored: it was changed by others again and again")
