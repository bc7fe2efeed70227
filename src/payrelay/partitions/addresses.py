"""The addresses on which a router listens: that of the accounts, and that of its metrics."""

from collections.abc import Callable

from structlog.typing import FilteringBoundLogger

from payrelay.api.address import AddressBeside
from payrelay.api.connections.limits import limits_within
from payrelay.api.connections.open_connections import OpenConnections
from payrelay.api.http.capacity import connections_max, files_max
from payrelay.api.http.incoming_request import Networks
from payrelay.api.public.site import MetricsPage
from payrelay.clock import Clock
from payrelay.partitions.metrics import RouterMetrics
from payrelay.partitions.router import PartitionRouter
from payrelay.partitions.table import PartitionTable
from payrelay.partitions.upstream import Upstream
from payrelay.settings import Settings


def addresses_of(
    settings: Settings,
    table: PartitionTable,
    upstream: Upstream,
    metrics: RouterMetrics,
    log: FilteringBoundLogger,
    *,
    is_stopping: Callable[[], bool],
) -> tuple[PartitionRouter, AddressBeside]:
    """Makes what the router serves: the accounts of all partitions, and its own metrics."""
    trusted = Networks(settings.trusted_proxies)
    limits = limits_within(
        connections_max(files_max()),
        address_max=settings.address_connections_max,
        principal_max=settings.principal_connections_max,
    )
    connections = OpenConnections(limits, Clock(), trusted.has)
    router = PartitionRouter(table, upstream, metrics, connections, log, trusted=trusted, is_stopping=is_stopping)
    return router, AddressBeside(MetricsPage(metrics, settings.metrics_networks), router)
