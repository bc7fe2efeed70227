"""The parts that the API needs, as one frozen value."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial

from structlog.typing import FilteringBoundLogger

from payrelay.api.auth.authentication import CredentialSource, TokenReader
from payrelay.api.connections.limits import ConnectionLimits
from payrelay.api.http.incoming_request import BODY_TIMEOUT_S, Network
from payrelay.api.metrics.counters import Metrics
from payrelay.api.metrics.exposition import Exposition
from payrelay.api.metrics.health import HealthSource
from payrelay.api.openapi.document import describe_api
from payrelay.api.public.site import FurtherPages, MetricsPage, Pages
from payrelay.api.requests.route import Route
from payrelay.api.routes.table import ROUTES
from payrelay.core.checkouts.shop import Shop
from payrelay.flows.relay import Relay


@dataclass(frozen=True, kw_only=True, slots=True)
class ApiContext:
    """Everything that ``app.Api`` needs; ``payrelay.app`` makes one at start.

    Attributes:
        relay: what the flows work with; its ``accounts`` are the names that paths begin with.
        credentials: ``store.access.credentials.Credentials``.
        store_health: tells ``/health/ready`` whether the store takes writes.
        metrics: a new ``Metrics()``; its ``hooks`` belong to the flows and the worker.
        exposition: writes ``/metrics`` from these and from the store.
        log: ``request_log.json_log(sys.stdout.buffer, clock)`` or one like it.
        environments: ``sandbox`` or ``live`` by account, for the docs.
        trusted_proxies: the proxies whose X-Forwarded-For counts.
        metrics_networks: the networks that may read ``/metrics``.
        has_metrics_address: whether ``/metrics`` has an address of its own, and is not on this one.
        browser_origins: the origins of pages whose scripts may use the API.
        identity_provider: reads tokens of the identity provider; None where none is configured.
        shops: how the customers' pages look, by account.
        body_timeout_s: how long a body may take to arrive.
        limits: how many connections one caller may have.
        routes: the table of routes; tests may pass another one.
        console: the console, where it is served on this address.
    """

    relay: Relay
    credentials: CredentialSource
    store_health: HealthSource
    metrics: Metrics
    exposition: Exposition
    log: FilteringBoundLogger
    environments: Mapping[str, str]
    trusted_proxies: tuple[Network, ...] = ()
    metrics_networks: tuple[Network, ...] = ()
    has_metrics_address: bool = False
    browser_origins: tuple[str, ...] = ()
    identity_provider: TokenReader | None = None
    shops: Mapping[str, Shop] = field(default_factory=dict)
    body_timeout_s: float = BODY_TIMEOUT_S
    limits: ConnectionLimits = field(default_factory=ConnectionLimits)
    routes: tuple[Route, ...] = field(default=ROUTES)
    console: FurtherPages | None = None

    def metrics_page(self) -> MetricsPage:
        """Makes what answers on the metrics' own address."""
        return MetricsPage(self.exposition, self.metrics_networks)

    def pages(self) -> Pages:
        """Makes the pages outside the accounts."""
        return Pages(
            store_health=self.store_health,
            exposition=self.exposition,
            metrics_networks=() if self.has_metrics_address else self.metrics_networks,
            describe=partial(describe_api, self.routes, self.environments, self.relay.settings.public_url),
            lost_commits=self.relay.database.lost_commits,
            is_stopping=lambda: self.relay.background.is_stopping,
        )
