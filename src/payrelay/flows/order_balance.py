"""Says what the money of an order is. Asks no gateway."""

import msgspec

from payrelay.core.orders.balance import balance_of
from payrelay.core.orders.facts import OrderFacts
from payrelay.core.orders.figures import OrderBalance
from payrelay.flows.relay import Relay


async def read_balance(relay: Relay, merchant: str, order_id: str) -> OrderBalance:
    """Gives the balance of an order, as of one moment; one without payments where nothing is known of the order.

    While a recovery from lost commits lasts it is never certain. Raises StoreError.
    """
    return await balance_now(relay, await relay.money.orders.facts_of_order(merchant, order_id))


async def balance_now(relay: Relay, facts: OrderFacts) -> OrderBalance:
    """Gives the balance of facts that were just read. Raises StoreError."""
    current = (await relay.database.lost_commits.identity()).current
    may_lack_more = current.is_recovering or relay.database.lost_commits.must_wait
    return balance_of(msgspec.structs.replace(facts, may_lack_more=may_lack_more), now_ms=relay.clock.now_ms())
