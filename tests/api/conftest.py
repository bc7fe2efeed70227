"""An API with flows that only record requests, and a client that speaks ASGI to it."""

import io
import ipaddress
import json
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.api.fakes import KEY, Caller, Keyring, LateDatabase, MovableClock, RecordingFlows
from tests.gateways.still_gateway import StillGateway
from tests.heartbeats import heartbeat_of, sources_of
from tests.relays import relay_over

from payrelay.api.app import Api
from payrelay.api.context import ApiContext
from payrelay.api.http.request_log import json_log
from payrelay.api.metrics.counters import Metrics
from payrelay.api.metrics.exposition import Exposition
from payrelay.api.routes.table import ROUTES
from payrelay.core.access.credential import DEFAULT_SCOPES, Credential, hash_of
from payrelay.core.gateways.rate_limit import RateLimit
from payrelay.core.payments.operation import Retention
from payrelay.store.engine.database import Database

LOOPBACK = ipaddress.ip_network("127.0.0.0/8")


@pytest.fixture
def clock() -> MovableClock:
    """Gives a clock that stands still."""
    return MovableClock()


@pytest.fixture
def credential() -> Credential:
    """Gives the credential behind KEY, with the default scopes."""
    return Credential(
        id="abcdefghijkl",
        principal="shop",
        key_hash=hash_of(KEY),
        scopes=DEFAULT_SCOPES,
        accounts=None,
        amount_max_minor=None,
        rate=None,
        created_at_ms=0,
        expires_at_ms=None,
        revoked_at_ms=None,
    )


@pytest.fixture
def keyring(credential: Credential) -> Keyring:
    """Gives a store with that one credential."""
    keyring = Keyring()
    keyring.by_id[credential.id] = credential
    return keyring


@pytest.fixture
def flows() -> RecordingFlows:
    """Gives the flows that record requests."""
    return RecordingFlows()


@pytest.fixture
def log_stream() -> io.BytesIO:
    """Gives where the log goes."""
    return io.BytesIO()


@pytest.fixture
async def database(tmp_path: Path, clock: MovableClock) -> AsyncIterator[Database]:
    """Gives an empty store, which most tests never ask."""
    late = LateDatabase(tmp_path / "payrelay.db", clock)
    yield late
    await late.close()


@pytest.fixture
def context(
    clock: MovableClock, keyring: Keyring, log_stream: io.BytesIO, flows: RecordingFlows, database: Database
) -> ApiContext:
    """Gives everything that the API needs; no flow gets as far as the journal or the gateway."""
    log = json_log(log_stream, clock)
    relay = relay_over(
        database,
        {"gateway": StillGateway(clock, limit=RateLimit(calls=20, window_s=10))},
        clock=clock,
        log=log,
        retention=Retention(keyed_ms=1, unkeyed_ms=1),
    )
    metrics, heartbeat = Metrics(), heartbeat_of(clock, keyring)
    return ApiContext(
        relay=relay,
        credentials=keyring,
        store_health=heartbeat,
        metrics=metrics,
        exposition=Exposition(metrics, keyring, relay, sources_of(heartbeat)),
        log=log,
        environments={"gateway": "sandbox"},
        metrics_networks=(LOOPBACK,),
        routes=tuple(flows.behind(route) for route in ROUTES),
    )


@pytest.fixture
def call(context: ApiContext) -> Caller:
    """Gives a client of an API whose flows only record requests."""
    return Caller(Api(context))


@pytest.fixture
def call_with(context: ApiContext) -> Callable[..., Caller]:
    """Makes a client of an API that differs in the named members of its context."""
    return lambda **changes: Caller(Api(replace(context, **changes)))


@pytest.fixture
def call_parsing(context: ApiContext) -> Caller:
    """Gives a client of an API with the real handlers: for requests that are refused before any flow begins."""
    return Caller(Api(replace(context, routes=ROUTES)))


@pytest.fixture
def log_lines(log_stream: io.BytesIO) -> Callable[[], list[dict[str, Any]]]:
    """Gives the lines of the log so far."""
    return lambda: [json.loads(line) for line in log_stream.getvalue().splitlines()]
