"""Gauges on ``/metrics``: open operations from the store, budgets from the rate limiters, held responses.

A gauge whose number can't be read now is absent, because an old number would pass for a current one.
"""

import asyncio
from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping
from typing import Final, Generic, Protocol, TypeVar

from prometheus_client import CollectorRegistry
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.exposition import generate_latest
from prometheus_client.registry import Collector

from payrelay.clock import Clock
from payrelay.core.gateways.permit_grants import BudgetSnapshot
from payrelay.core.payments.operation import OpenCount, State
from payrelay.errors import StoreError

REUSED_S: Final = 5.0
"""How long the store's numbers are used again: several scrapers cost the store no more than one."""
READ_WITHIN_S: Final = 2.0

CountsT = TypeVar("CountsT")


class StoreGauges(Collector, Generic[CountsT]):
    """Gauges whose numbers are read from the store; await ``refresh`` before ``text``.

    Attributes:
        registry: the registry that ``text`` writes.
        counts: the numbers of the last read; None where it failed, or where nothing was read yet.
    """

    def __init__(self, clock: Clock, *, read_within_s: float = READ_WITHIN_S) -> None:
        self.registry = CollectorRegistry()
        self.registry.register(self)
        self.counts: CountsT | None = None
        self._clock = clock
        self._read_within_s = read_within_s
        self._read_at_s = float("-inf")

    @abstractmethod
    async def read(self) -> CountsT:
        """Reads the numbers; raises StoreError."""

    async def refresh(self) -> None:
        """Reads the numbers, unless the last read began less than REUSED_S ago; a read that fails leaves none."""
        now_s = self._clock.boot_s()
        if now_s - self._read_at_s < REUSED_S:
            return
        self._read_at_s = now_s
        try:
            async with asyncio.timeout(self._read_within_s):
                self.counts = await self.read()
        except (StoreError, TimeoutError):
            self.counts = None

    def text(self) -> bytes:
        """Gives the gauges in Prometheus' text format."""
        return generate_latest(self.registry)


class OpenOperations(Protocol):
    """Counts open operations; ``store.payments.counts.Counts``, or a test's."""

    async def open_operations(self) -> dict[State, OpenCount]:
        """Gives how many operations are open, by state; raises StoreError."""


class Gauges(StoreGauges[dict[State, OpenCount]]):
    """The gauges of operations, budgets and held responses; await ``refresh`` before ``text``.

    Args:
        clock: gives the time.
        operations: counts open operations.
        snapshots: gives the budget of each account.
        held: gives how many responses this process holds.
        read_within_s: how long a read of the store may take.
    """

    def __init__(
        self,
        clock: Clock,
        operations: OpenOperations,
        snapshots: Callable[[], Mapping[str, BudgetSnapshot]],
        held: Callable[[], int],
        *,
        read_within_s: float = READ_WITHIN_S,
    ) -> None:
        super().__init__(clock, read_within_s=read_within_s)
        self._operations = operations
        self._snapshots = snapshots
        self._held = held

    async def read(self) -> dict[State, OpenCount]:
        """Counts the open operations by state; raises StoreError."""
        return await self._operations.open_operations()

    def collect(self) -> Iterator[Metric]:
        """Gives the gauges; those of operations only where the store could be read."""
        yield GaugeMetricFamily(
            "payrelay_held_answers",
            "Answers that this process holds because their clients prefer to wait.",
            value=self._held(),
        )
        yield from self._operation_gauges()
        yield from self._budget_gauges()

    def _operation_gauges(self) -> Iterator[Metric]:
        totals = GaugeMetricFamily("payrelay_operations_open", "Open operations, by state.", labels=("state",))
        ages = GaugeMetricFamily(
            "payrelay_operations_oldest_open_seconds",
            "Age of the oldest open operation, by state; 0 where there is none.",
            labels=("state",),
        )
        now_ms = self._clock.now_ms()
        for state, count in (self.counts or {}).items():
            totals.add_metric((state,), count.total)
            ages.add_metric((state,), 0 if count.oldest_ms is None else max(0, now_ms - count.oldest_ms) / 1000)
        yield totals
        yield ages

    def _budget_gauges(self) -> Iterator[Metric]:
        limits = _by_account("payrelay_budget_limit", "Calls that the gateway allows in any window; absent: no limit.")
        used = _by_account("payrelay_budget_used", "Permits that this process holds, or that are not free again yet.")
        waiting = _by_account("payrelay_budget_waiting", "Calls of this process that wait for a permit.")
        breaker = _by_account("payrelay_circuit_breaker_open", "1 while the circuit breaker is open, else 0.")
        blocked = _by_account("payrelay_budget_blocked_seconds", "Seconds for which the gateway accepts no calls.")
        for account, snapshot in self._snapshots().items():
            if snapshot.limit_calls is not None:
                limits.add_metric((account,), snapshot.limit_calls)
            used.add_metric((account,), snapshot.used)
            waiting.add_metric((account,), snapshot.waiting)
            breaker.add_metric((account,), snapshot.is_open)
            blocked.add_metric((account,), snapshot.blocked_s)
        yield from (limits, used, waiting, breaker, blocked)


def _by_account(name: str, sentence: str) -> GaugeMetricFamily:
    return GaugeMetricFamily(name, sentence, labels=("account",))
