"""Lists for operators what is stored of subscriptions, whoever their principal is. Asks no gateway."""

import msgspec

from payrelay.core.subscriptions.subscription import SubscriptionState
from payrelay.flows.relay import Relay
from payrelay.flows.subscriptions.show_subscription_states import SubscriptionStateView, view
from payrelay.store.subscriptions import SubscriptionFilter, SubscriptionSummary


class StoredSubscription(SubscriptionStateView, frozen=True, kw_only=True):
    """What is stored of a subscription, with its account, and its principal where that is known."""

    account: str
    principal: str | None


async def list_stored(
    relay: Relay, *, account: str | None, order_id: str | None, state: SubscriptionState | None, limit: int
) -> list[StoredSubscription]:
    """Lists subscriptions by their numbers; those that are equal in all that is given. Raises StoreError.

    A state follows from what was notified and what was read, so that all are read to find those in one state.
    """
    found: list[SubscriptionSummary] = []
    wanted, after = SubscriptionFilter(account=account, order_id=order_id), ("", "")
    while len(found) < limit:
        page = await relay.subscriptions.list_for_operator(wanted, after=after, limit=limit)
        found += [each for each in page if state in {None, each.subscription.state}]
        if not page:
            break
        after = (page[-1].subscription.subscription_id, page[-1].subscription.merchant)
    return [_stored(each) for each in found[:limit]]


async def stored_of_id(relay: Relay, subscription_id: str) -> list[StoredSubscription]:
    """Finds what is stored of a subscription, under each merchant that has the number. Raises StoreError."""
    return [_stored(each) for each in await relay.subscriptions.of_id(subscription_id)]


def _stored(summary: SubscriptionSummary) -> StoredSubscription:
    subscription = summary.subscription
    shown = msgspec.structs.asdict(view(summary))
    return StoredSubscription(**shown, account=subscription.account, principal=subscription.principal)
