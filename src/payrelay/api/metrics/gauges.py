"""How things stand when somebody looks at ``/metrics``: open operations from the store, budgets from their governors.

A gauge whose number can't be known now is absent; an old number would pass for a new one.
"""

import asyncio
from collections.abc import Callable, Iterator, Mapping
from typing import Final, Protocol

from prometheus_client import CollectorRegistry
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.exposition import generate_latest
from prometheus_client.registry import Collector

from payrelay.clock import Clock
from payrelay.core.gateways.permits import BudgetSnapshot
from payrelay.core.payments.operation import OpenCount, State
from payrelay.errors import StoreError

KEPT_S: Final = 5.0
"""How long a count serves: several who scrape cost the store no more than one."""
READ_WITHIN_S: Final = 2.0
"""For one count, well below the time-out of whoever scrapes: the other metrics are wanted most when the store hangs."""


class OpenOperations(Protocol):
    """Counts open operations; the store's, or a test's."""

    async def open_operations(self) -> dict[State, OpenCount]:
        """Gives how many operations are open, by state; raises StoreError."""
        ...


Snapshots = Callable[[], Mapping[str, BudgetSnapshot]]
Held = Callable[[], int]


class Gauges(Collector):
    """What stands in the metrics as it is now; ``refresh`` is to be awaited before ``text``.

    Attributes:
        registry: what ``text`` writes.
    """

    def __init__(
        self,
        clock: Clock,
        counts: OpenOperations,
        snapshots: Snapshots,
        held: Held,
        *,
        read_within_s: float = READ_WITHIN_S,
    ) -> None:
        self.registry = CollectorRegistry()
        self.registry.register(self)
        self._clock = clock
        self._counts = counts
        self._snapshots = snapshots
        self._held = held
        self._read_within_s = read_within_s
        self._open: dict[State, OpenCount] = {}
        self._is_store_up = False
        self._counted_s = float("-inf")

    async def refresh(self) -> None:
        """Counts anew, unless that was done just now; notes it where the store can't be asked."""
        now_s = self._clock.boot_s()
        if now_s - self._counted_s < KEPT_S:
            return
        self._counted_s = now_s
        try:
            async with asyncio.timeout(self._read_within_s):
                self._open = await self._counts.open_operations()
            self._is_store_up = True
        except (StoreError, TimeoutError):
            self._open, self._is_store_up = {}, False

    def text(self) -> bytes:
        """Gives all of it in Prometheus' text format."""
        return generate_latest(self.registry)

    def collect(self) -> Iterator[Metric]:
        """Gives the gauges."""
        yield GaugeMetricFamily(
            "payrelay_store_up", "1 while the store can be asked, 0 while it can't.", value=self._is_store_up
        )
        yield GaugeMetricFamily(
            "payrelay_held_answers", "Answers of this process that are held, for clients that wait.", value=self._held()
        )
        yield from self._of_operations()
        yield from self._of_budgets()

    def _of_operations(self) -> Iterator[Metric]:
        totals = GaugeMetricFamily("payrelay_operations_open", "Operations that are open, by state.", labels=("state",))
        ages = GaugeMetricFamily(
            "payrelay_operations_oldest_open_seconds",
            "Age of the oldest operation that is open, by state; 0 where there is none.",
            labels=("state",),
        )
        now_ms = self._clock.now_ms()
        for state, count in self._open.items():
            totals.add_metric((state,), count.total)
            ages.add_metric((state,), 0 if count.oldest_ms is None else max(0, now_ms - count.oldest_ms) / 1000)
        yield totals
        yield ages

    def _of_budgets(self) -> Iterator[Metric]:
        limits = _of_account("payrelay_budget_limit", "Calls to a gateway in any window; absent where there is none.")
        used = _of_account("payrelay_budget_used", "Places in the budget that this process holds, or has just held.")
        waiting = _of_account("payrelay_budget_waiting", "Calls of this process that wait for a place in the budget.")
        shut = _of_account("payrelay_budget_shut", "1 while the gateway is left alone because it fails.")
        blocked = _of_account(
            "payrelay_budget_blocked_seconds", "Seconds for which the gateway takes no calls of ours."
        )
        for account, snapshot in self._snapshots().items():
            if snapshot.limit_calls is not None:
                limits.add_metric((account,), snapshot.limit_calls)
            used.add_metric((account,), snapshot.used)
            waiting.add_metric((account,), snapshot.waiting)
            shut.add_metric((account,), snapshot.is_open)
            blocked.add_metric((account,), snapshot.blocked_s)
        yield from (limits, used, waiting, shut, blocked)


def _of_account(name: str, words: str) -> GaugeMetricFamily:
    return GaugeMetricFamily(name, words, labels=("account",))
