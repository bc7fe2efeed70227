"""Gauges of the store on ``/metrics``: does it take writes, what keeps it from that, connections, failures, clocks."""

from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

from prometheus_client import CollectorRegistry
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.exposition import generate_latest
from prometheus_client.registry import Collector

from payrelay.core.database.store_status import StoreStatus
from payrelay.errors import StoreFault
from payrelay.runtime.health.store_heartbeat import StoreHealth, StoreHeartbeat


class StoreSources(NamedTuple):
    """What tells how the store is.

    Attributes:
        heartbeat: tells whether the store takes writes.
        status: gives the state of the engine; None where it has none.
        gateway_clocks: gives each gateway's clock less ours, in seconds, by account.
    """

    heartbeat: StoreHeartbeat
    status: Callable[[], StoreStatus | None]
    gateway_clocks: Callable[[], Mapping[str, float]]


class StoreHealthGauges(Collector):
    """The gauges of the store; await ``refresh`` before ``text``. ``is_readable`` tells of the last read."""

    def __init__(self, sources: StoreSources, is_readable: Callable[[], bool]) -> None:
        self._sources = sources
        self._is_readable = is_readable
        self._health: StoreHealth | None = None
        self.registry = CollectorRegistry()
        self.registry.register(self)

    async def refresh(self) -> None:
        """Gets what the newest heartbeat showed; raises nothing."""
        self._health = await self._sources.heartbeat.health()

    def text(self) -> bytes:
        """Gives the gauges in Prometheus' text format."""
        return generate_latest(self.registry)

    def collect(self) -> Iterator[Metric]:
        """Gives the gauges, after a refresh."""
        fault = StoreFault.OTHER if self._health is None else self._health.fault
        yield GaugeMetricFamily(
            "payrelay_store_up",
            "1 while the store can be read and takes writes, else 0.",
            value=fault is None and self._is_readable(),
        )
        yield GaugeMetricFamily(
            "payrelay_store_writable", "1 while the store takes writes, as a heartbeat tries.", value=fault is None
        )
        faults = GaugeMetricFamily(
            "payrelay_store_fault", "1 for what keeps the store from taking writes now, else 0.", labels=("fault",)
        )
        for each in StoreFault:
            faults.add_metric((each,), each is fault)
        yield faults
        yield CounterMetricFamily(
            "payrelay_own_rows_gone",
            "Times that the row of this process's own heartbeat was gone or older than it was told.",
            value=self._sources.heartbeat.rows_lost,
        )
        yield from self._clocks()
        status = self._sources.status()
        if status is not None:
            yield from _engine(status)

    def _clocks(self) -> Iterator[Metric]:
        database = GaugeMetricFamily(
            "payrelay_database_clock_difference_seconds",
            "The clock of the database's server less that of this machine.",
            labels=(),
        )
        if self._sources.heartbeat.clock_difference_s is not None:
            database.add_metric((), self._sources.heartbeat.clock_difference_s)
        yield database
        gateways = GaugeMetricFamily(
            "payrelay_gateway_clock_difference_seconds",
            "The clock of the gateway, by the Date of its newest reply, less that of this machine.",
            labels=("account",),
        )
        for account, apart_s in self._sources.gateway_clocks().items():
            gateways.add_metric((account,), apart_s)
        yield gateways


def _engine(status: StoreStatus) -> Iterator[Metric]:
    for name, sentence, value in (
        (
            "payrelay_store_connections_max",
            "Connections to the database that the process may have.",
            status.connections_max,
        ),
        ("payrelay_store_connections_open", "Connections to the database that stand.", status.connections_open),
        ("payrelay_store_connections_used", "Connections that a unit of work uses now.", status.connections_used),
        ("payrelay_store_waiting", "Units of work that wait for a connection or the writer.", status.waiting),
    ):
        yield GaugeMetricFamily(name, sentence, value=value)
    if status.disk_free_bytes is not None:
        yield GaugeMetricFamily(
            "payrelay_store_disk_free_bytes",
            "What is free on the disk of an embedded database.",
            value=status.disk_free_bytes,
        )
    yield CounterMetricFamily(
        "payrelay_store_server_changes",
        "Times that another server took the writes.",
        value=status.server_changes,
    )
    errors = CounterMetricFamily(
        "payrelay_store_errors", "Units of work that the store failed to carry out, by fault.", labels=("fault",)
    )
    for each in StoreFault:
        errors.add_metric((each,), status.failed.get(each, 0))
    yield errors
