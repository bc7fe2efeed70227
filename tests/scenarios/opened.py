"""The program over a database that lies ready, with a clock that stands still and a client that calls it directly."""

import ipaddress
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import structlog
from tests.api.fakes import Caller
from tests.heartbeats import heartbeat_of, sources_of
from tests.scenarios.gateway_double import GatewayDouble
from tests.scenarios.program import account

from payrelay.api.app import Api
from payrelay.api.context import ApiContext
from payrelay.api.metrics.counters import Metrics
from payrelay.api.metrics.exposition import Exposition
from payrelay.app import opened_relay, opened_resources
from payrelay.clock import Clock
from payrelay.core.database.schema_changes import ANY
from payrelay.flows.relay import Relay
from payrelay.runtime.hooks import Hooks
from payrelay.settings import Settings, read_settings
from payrelay.store.access.credentials import Credentials
from payrelay.store.engine.database import Database
from payrelay.store.payments.counts import Counts

PUBLIC_URL: Final = "https://pay.example"
FINISH_S: Final = 30.0


class StillClock(Clock):
    """Stands still until it is moved."""

    def __init__(self, at_ms: int) -> None:
        self.at_ms = at_ms

    def now_ms(self) -> int:
        """Gives the time that it stands at."""
        return self.at_ms

    def boot_s(self) -> float:
        """Runs along with the other one."""
        return self.at_ms / 1000


@dataclass(frozen=True, kw_only=True)
class Opened:
    """The program, opened: what its stories work with, its store, and a client."""

    relay: Relay
    database: Database
    settings: Settings
    clock: StillClock
    call: Caller


def settings_over(database_url: str, gateway: GatewayDouble, encryption_key: str) -> Settings:
    """Gives the settings: an account as usual, and one whose budget is a token and a call in a long time."""
    return read_settings(
        {
            "PAYRELAY_DATABASE_URL": database_url,
            "PAYRELAY_ENCRYPTION_KEY": encryption_key,
            "PAYRELAY_PUBLIC_URL": PUBLIC_URL,
            "PAYRELAY_RETURN_LINKS": "https://shop.example/*",
            "PAYRELAY_EVENTS__ALLOWED_HOSTS": "127.0.0.1",
            **account("gateway", gateway.base_url),
            **account("slow", gateway.base_url, RATE_LIMIT="2/60s", QUEUE_S="60"),
        },
        Path("/nonexistent"),
    )


@asynccontextmanager
async def opened(settings: Settings, at_ms: int) -> AsyncIterator[Opened]:
    """Opens the program over a database; nothing is done in the background of itself."""
    clock = StillClock(at_ms)
    log = structlog.wrap_logger(None, processors=[_dropped], wrapper_class=structlog.make_filtering_bound_logger(0))
    async with (
        opened_resources(settings, clock, is_owner=True, changes=ANY) as shared,
        opened_relay(settings, shared, clock=clock, log=log, hooks=Hooks()) as relay,
    ):
        metrics, heartbeat = Metrics(), heartbeat_of(clock)
        context = ApiContext(
            relay=relay,
            credentials=Credentials(shared.database, shared.rows),
            store_health=heartbeat,
            metrics=metrics,
            exposition=Exposition(metrics, Counts(shared.database), relay, sources_of(heartbeat)),
            log=log,
            environments=dict.fromkeys(settings.gateways, "sandbox"),
            metrics_networks=(ipaddress.ip_network("127.0.0.0/8"),),
        )
        yield Opened(relay=relay, database=shared.database, settings=settings, clock=clock, call=Caller(Api(context)))
        await relay.background.finish(0)


def _dropped(_logger: object, _method: str, _event: structlog.typing.EventDict) -> structlog.typing.EventDict:
    raise structlog.DropEvent
