"""What the console's flows about orders and payments work with, beside the relay of every other flow."""

from dataclasses import dataclass

from payrelay.console.runtime.budget_samples import BudgetSamples
from payrelay.console.store.searches import Searches
from payrelay.console.store.sent_events import SentEvents
from payrelay.console.store.trends import Trends
from payrelay.flows.relay import Relay
from payrelay.store.opened_store import OpenedStore


@dataclass(frozen=True, kw_only=True, slots=True)
class CaseParts:
    """What the flows about orders and payments work with; made once at start.

    Attributes:
        relay: what every flow works with.
        searches: finds operations and checkouts.
        sent: reads events and their deliveries.
        trends: counts for the overview.
        budgets: what this process saw of the accounts' budgets.
    """

    relay: Relay
    searches: Searches
    sent: SentEvents
    trends: Trends
    budgets: BudgetSamples


def case_parts(store: OpenedStore, relay: Relay) -> CaseParts:
    """Makes what the flows work with, on the database of a relay. Who serves them begins to look at budgets."""
    accounts = relay.accounts
    return CaseParts(
        relay=relay,
        searches=Searches(store.database, store.rows),
        sent=SentEvents(store.rows),
        trends=Trends(store.database),
        budgets=BudgetSamples(
            lambda: {name: account.rate_limiter.snapshot() for name, account in accounts.items()}, relay.clock
        ),
    )
