"""Puts the program together from its settings, and takes it apart in the reverse order."""

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Final

from structlog.typing import FilteringBoundLogger

from payrelay import worker
from payrelay.api.app import Api
from payrelay.api.auth.identity_settings import identity_token_reader
from payrelay.api.connections.limits import limits_within
from payrelay.api.console_door import ConsoleDoor, ConsolePages
from payrelay.api.context import ApiContext
from payrelay.api.http.capacity import connections_max, files_max, followers_max, held_max
from payrelay.api.metrics.counters import Metrics
from payrelay.api.metrics.exposition import Exposition
from payrelay.api.metrics.store_gauges import StoreSources
from payrelay.clock import Clock
from payrelay.core.access.credential import Scope
from payrelay.core.database.schema_changes import AS_IT_IS, SchemaChanges
from payrelay.core.lost_commits.lost_effects import MAKING
from payrelay.core.payments.operation import Retention
from payrelay.core.payments.schedules import DAY_MS
from payrelay.core.seal_keys import parse_keys
from payrelay.errors import DatabaseMissing, DatabaseNotReady, SettingsError
from payrelay.flows.access.stored_identity import stored_identity
from payrelay.flows.alerts.alert import tell_behind
from payrelay.flows.database.in_place import require_in_place
from payrelay.flows.operators.acts.of_relay import ACTS_OF_RELAY
from payrelay.flows.orders.pages_in_the_way import require_none, require_over
from payrelay.flows.payments.recover_after_crash import recover
from payrelay.flows.relay import Relay, RelaySettings
from payrelay.flows.requests.other_flows import Inquiries, OrderPages
from payrelay.flows.requests.recovery_gate import WITHOUT_RECOVERY, require_recoverable
from payrelay.flows.resolution.resolve import inquire_now
from payrelay.flows.revocations.reapply import compare_revocations, reapply_in_new_incarnation
from payrelay.flows.stores import access_stores, money_stores
from payrelay.flows.subscription_notes import ReadingNotes
from payrelay.gateways.gateway import Gateway
from payrelay.gateways.gateway_kind import CommonSettings, GatewayKind, GatewayResources
from payrelay.gateways.pacing.rate_limiter import RateLimiter
from payrelay.gateways.registry import KINDS
from payrelay.parts import parts
from payrelay.runtime.alert_channels import AlertChannel, AlertChannels, AnchorsOutside, Command
from payrelay.runtime.background import Background
from payrelay.runtime.database.lost_commits import RETURN_MS, LostCommits
from payrelay.runtime.database.mark_files import MarkFiles, remove_marks
from payrelay.runtime.database.marks import Marks
from payrelay.runtime.database.parts import DatabaseParts
from payrelay.runtime.database.revocation_list import RevocationList
from payrelay.runtime.database.server_changes import ServerChanges
from payrelay.runtime.event_delivery import Dispatch
from payrelay.runtime.followers import Followers
from payrelay.runtime.health.gateway_clocks import GatewayClocks
from payrelay.runtime.health.store_heartbeat import StoreHeartbeat
from payrelay.runtime.held_responses import HeldResponses
from payrelay.runtime.hooks import FlowPoint, Hooks, OperationPoint
from payrelay.runtime.ids import new_id
from payrelay.runtime.paused_accounts import PausedAccounts
from payrelay.runtime.read_cache import ReadCache
from payrelay.runtime.webhook_sender import WebhookSender
from payrelay.settings import (
    KEY_IS_MISSING,
    Settings,
    child_environment,
    marks_beside,
    require_serving,
)
from payrelay.settings.file_modes import require_own
from payrelay.store import Connecting, free_bytes_of, open_database, status_of, watch_server
from payrelay.store.access.credentials import Credentials
from payrelay.store.alerts import Alerts, AlertSubject
from payrelay.store.checkouts import Checkouts
from payrelay.store.customers import Customers
from payrelay.store.database.identity import IdentityStore
from payrelay.store.database.last_server import LastServer
from payrelay.store.database.marked_rows import MarkedRows
from payrelay.store.digests.rows import RowDigests
from payrelay.store.engine.database import Database
from payrelay.store.engine.owner_lock import OwnerLock
from payrelay.store.engine.sealing import Seal, is_key_file, load_or_make_key
from payrelay.store.events.deliveries import Deliveries
from payrelay.store.events.endpoints import Endpoints
from payrelay.store.events.feed import Feed
from payrelay.store.gateways.access_tokens import AccessTokens
from payrelay.store.gateways.budget import StoredBudget
from payrelay.store.gateways.pauses import Pauses
from payrelay.store.gateways.readings import ReadingStore
from payrelay.store.heartbeats import Heartbeats
from payrelay.store.inbox import Inbox
from payrelay.store.meta import chain_key, embedded_keys, key_file_is_missing, merchants_of_apps, verify_key
from payrelay.store.opened_store import OpenedStore
from payrelay.store.operators.acts import OperatorActs
from payrelay.store.payments.audit import Trail
from payrelay.store.payments.counts import Counts
from payrelay.store.payments.journal import Journal
from payrelay.store.payments.remembered import COMMITS_MAX, RememberedCommits
from payrelay.store.payments.resolution import ResolutionStore
from payrelay.store.retention.clearing import Clearing
from payrelay.store.signed_texts import SignedTexts
from payrelay.store.subscriptions import Subscriptions
from payrelay.store.upgrades.begin import begin_store
from payrelay.store.upgrades.run import UpgradeContext, require_upgraded, upgrade
from payrelay.tracing.opening import opened_spans
from payrelay.tracing.spans import Spans

ALERT_ADDRESS: Final = "payrelay.runtime.clients.alert_address"
"""Loaded by its name, and only where alerts go to an address."""

KEYED_RETENTION_MS: Final = 30 * DAY_MS
"""How long a finished answer is found by its Idempotency-Key: longer than any client goes on repeating."""
START_WITHIN_S: Final = 30.0
"""How long a start waits for a database server that isn't there yet, as where both start at once after a power cut."""
FINISH_WITHIN_S: Final = 5.0
"""Time for background work at a stop, such as storing a late outcome."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Service:
    """The program while it runs.

    Attributes:
        api: the callable that a server is given.
        relay: what the flows work with.
        credentials: the keys.
        recovered: how many operations of earlier processes were recovered at the start.
        console: None where it is off.
    """

    api: Api
    relay: Relay
    credentials: Credentials
    recovered: int
    console: ConsolePages | None = None


@asynccontextmanager
async def running(
    settings: Settings,
    *,
    clock: Clock,
    log: FilteringBoundLogger,
    finish_s: float = FINISH_WITHIN_S,
    reached: Callable[[OperationPoint | FlowPoint, str], None] | None = None,
    may_upgrade: bool = False,
) -> AsyncIterator[Service]:
    """Runs everything but the server while the context is open.

    Makes a missing database. Brings an old one up to date with ``may_upgrade``, and else refuses it. The marks of
    earlier processes are compared with the database before the context opens. Operations of an earlier process are
    recovered then, unless the database is behind. When the context closes, background work is finished first.
    ``reached`` is called at each crash point, with the id of the object that reached it. Raises SettingsError,
    StoreUnusable, StoreUnavailable.
    """
    require_serving(settings)
    changes = SchemaChanges(may_upgrade=may_upgrade, tell=lambda text: log.info("upgrading", text=text))
    async with AsyncExitStack() as stack:
        spans = await stack.enter_async_context(opened_spans(is_on=settings.tracing))
        log = log if spans is None else spans.on_lines(log)
        shared = await stack.enter_async_context(
            opened_resources(settings, clock, is_owner=True, changes=changes, log=log)
        )
        await require_in_place(IdentityStore(shared.database, shared.seal))
        metrics = Metrics()
        hooks = metrics.hooks if reached is None else replace(metrics.hooks, reached=reached, passed=reached)
        hooks = hooks.traced(spans)
        relay = await stack.enter_async_context(opened_relay(settings, shared, clock=clock, log=log, hooks=hooks))
        watch_writes(relay, shared.database)
        if settings.embedded_path is None:  # it ends before an embedded database is another one
            begin_remembering(relay)
        await relay.database.marks.compare_files()
        await tell_behind(relay)
        await require_recoverable(relay)
        await stack.enter_async_context(relay.database.marks.kept())
        heartbeat = _heartbeat_of(shared.database, relay)
        await stack.enter_async_context(heartbeat.kept())
        await reapply_in_new_incarnation(relay)
        recovered = 0
        if relay.database.lost_commits.behind is None:
            recovered = await recover(relay, is_sole_owner=settings.embedded_path is not None)
        stack.push_async_callback(_finish, relay, finish_s)
        await stack.enter_async_context(worker.working(relay, jobs=jobs()))
        console = _site_of(stack, settings, shared, relay, log)
        identity = await stored_identity(settings.identity, relay.access.principals, log)
        context = ApiContext(
            relay=relay,
            console=None if console is None or settings.console.address else ConsoleDoor(console),
            credentials=relay.access.credentials,
            store_health=heartbeat,
            metrics=metrics,
            exposition=Exposition(
                metrics,
                Counts(shared.database),
                relay,
                _store_sources(shared, heartbeat),
                tuple(part.gauges(relay) for part in parts() if part.gauges is not None),
            ),
            log=log,
            environments={name: gateway.environment for name, gateway in settings.gateways.items()},
            shops={name: gateway.shop for name, gateway in settings.gateways.items()},
            trusted_proxies=settings.trusted_proxies,
            browser_origins=settings.browser_origins,
            metrics_networks=settings.metrics_networks,
            has_metrics_address=settings.metrics_address is not None,
            limits=limits_within(
                connections_max(files_max()),
                address_max=settings.address_connections_max,
                principal_max=settings.principal_connections_max,
            ),
            identity_provider=identity_token_reader(stack, identity, relay.access.person_names, clock, log),
        )
        yield Service(
            api=Api(context), relay=relay, credentials=relay.access.credentials, recovered=recovered, console=console
        )


def _site_of(
    stack: AsyncExitStack, settings: Settings, shared: "SharedResources", relay: Relay, log: FilteringBoundLogger
) -> ConsolePages | None:
    """Makes the pages under ``/console``; None where the settings have them off. Raises SettingsError without any."""
    makers = [part.site for part in parts() if part.site is not None]
    if settings.console.enabled and not makers:
        raise SettingsError("PAYRELAY_CONSOLE__ENABLED is set, and this installation has no payrelay.console")
    sites = (make(stack, settings, shared, relay, log) for make in makers)
    return next((site for site in sites if site is not None), None)


def jobs() -> tuple[worker.Job, ...]:
    """Gives the jobs of the relay and of the parts."""
    return (*worker.JOBS, *(job for part in parts() if part.jobs is not None for job in part.jobs()))


def found_of(store: OpenedStore, settings: Settings) -> dict[type[object], object]:
    """Makes what the parts of the product work with in a process, by its type; and what the flows ask of each other.

    A database that lost commits is recovered from by a part; without it nothing is sent from one.
    """
    opened = [part.opened(store, settings) for part in parts() if part.opened is not None]
    acts = ACTS_OF_RELAY
    for part in parts():
        if part.acts is not None:
            acts = acts.with_those_of(part.acts())
    recoveries = [part.recovery() for part in parts() if part.recovery is not None]
    pages = OrderPages(require_over=require_over, require_none=require_none)
    recovery = next(iter(recoveries), WITHOUT_RECOVERY)
    return {type(each): each for each in (*opened, acts, recovery, pages, Inquiries(begin=inquire_now))}


def _heartbeat_of(database: Database, relay: Relay) -> StoreHeartbeat:
    heartbeats = Heartbeats(database, relay.new_id("process", relay.clock.now_ms()), partial(free_bytes_of, database))
    return StoreHeartbeat(heartbeats, relay.clock, relay.log, compare=relay.database.marks.compare)


def _store_sources(shared: "SharedResources", heartbeat: StoreHeartbeat) -> StoreSources:
    return StoreSources(heartbeat, partial(status_of, shared.database), shared.gateway_clocks.differences_s)


@asynccontextmanager
async def opened_relay(
    settings: Settings,
    shared: "SharedResources",
    *,
    clock: Clock,
    log: FilteringBoundLogger,
    hooks: Hooks,
    kinds: Mapping[str, GatewayKind] = KINDS,
) -> AsyncIterator[Relay]:
    """Makes what the flows work with, for a server and for commands beside it; closes its accounts at the end.

    ``kinds`` are the known kinds of gateway; a simulation brings its own. Raises SettingsError, StoreUnusable.
    """
    database, seal, rows, chain_secret = shared.database, shared.seal, shared.rows, shared.chain.secret
    rows.tell_of_wrong(lambda name: log.error("row_forged", row=name))
    held_responses, background = HeldResponses(limit=held_max(files_max())), Background()
    identities = IdentityStore(database, seal)
    lost_commits = LostCommits(identities.read, clock, log, change=identities.change)
    files, marked = MarkFiles(settings.marks_folder, chain_secret), MarkedRows(database, trail_of(shared))
    marks = Marks(files, marked, lost_commits, clock, log, commits_max=settings.pool_size)
    async with (
        opened_accounts(settings, clock, shared, kinds, spans=hooks.spans) as accounts,
        opened_dispatch(settings, shared, clock, log, hooks, lost_commits=lost_commits) as dispatch,
    ):
        subscriptions = Subscriptions(database, new_id, rows)
        yield Relay(
            journal=Journal(database, seal, rows, chain_key=chain_secret, acknowledged=marks.note_operation),
            resolution=ResolutionStore(database, rows),
            accounts=accounts,
            clock=clock,
            clearing=clearing_of(settings, shared),
            acts=OperatorActs(database, chain_secret),
            found=found_of(shared, settings),
            log=log,
            paused=PausedAccounts(Pauses(database), clock, log),
            alerting=_alerting_of(settings, database),
            held_responses=held_responses,
            read_cache=_read_cache_of(shared, clock, log, background, ReadingNotes(subscriptions, accounts)),
            inbox=Inbox(database, seal, rows),
            subscriptions=subscriptions,
            background=background,
            hooks=hooks.also_on_change(held_responses.notify).also_on_change(lambda _: dispatch.wake()),
            dispatch=dispatch,
            customers=Customers(database, seal, rows, chain_key=chain_secret),
            checkouts=Checkouts(database, seal, rows, acknowledged=marks.note_checkout),
            signed_texts=SignedTexts(database, rows, secret=chain_secret),
            pauses=Pauses(database),
            access=access_stores(shared, clock),
            money=money_stores(shared),
            settings=RelaySettings(
                retention=_repeats_of(settings),
                public_url=settings.public_url,
                return_links=settings.return_links,
                recovery_lag_s=settings.recovery_lag,
                can_apps_charge=settings.identity is not None and Scope.PAYMENTS_CHARGE in settings.identity.scopes,
                apps_principal=_apps_principal(settings),
            ),
            database=DatabaseParts(
                identities=identities,
                lost_commits=lost_commits,
                marks=marks,
                revocations=RevocationList(settings.marks_folder, chain_secret, log),
            ),
        )


def _read_cache_of(
    shared: "SharedResources", clock: Clock, log: FilteringBoundLogger, background: Background, note: ReadingNotes
) -> ReadCache:
    readings = ReadingStore(shared.database, shared.seal, shared.rows)
    return ReadCache(readings, clock, log, start=background.start, note=note)


def _apps_principal(settings: Settings) -> str | None:
    """Returns the principal of an identity provider's tokens; None where these can make nothing."""
    identity = settings.identity
    return None if identity is None or identity.scopes.isdisjoint(MAKING) else identity.principal


def _alerting_of(settings: Settings, database: Database) -> AlertChannels:
    return AlertChannels(
        alerts=tuple(Alerts(database, about) for about in AlertSubject),
        channels=alert_channels_of(settings),
        anchors=AnchorsOutside(settings.anchor_path, is_told=settings.anchor_alerts),
    )


def _repeats_of(settings: Settings) -> Retention:
    # A key stays taken after its answer is gone: whoever repeats a request then must not act again by it.
    return Retention(keyed_ms=KEYED_RETENTION_MS, unkeyed_ms=settings.repeat_window * 1000, are_keys_free_again=False)


@asynccontextmanager
async def opened_dispatch(
    settings: Settings,
    shared: "SharedResources",
    clock: Clock,
    log: FilteringBoundLogger,
    hooks: Hooks,
    *,
    lost_commits: LostCommits,
) -> AsyncIterator[Dispatch]:
    """Makes what publishes and sends events; at the end, waits for attempts under way."""
    feed = Feed(shared.database, shared.rows)
    dispatch = Dispatch(
        feed=feed,
        endpoints=Endpoints(shared.database, shared.seal, shared.rows),
        deliveries=Deliveries(shared.database),
        sender=WebhookSender(settings.events.destinations, clock, spans=hooks.spans),
        followers=Followers(feed, limit=followers_max(files_max())),
        clock=clock,
        log=log,
        incarnation=lost_commits.incarnation,
        counted=hooks.event_tried,
        passed=hooks.passed,
        kept_ms=settings.retention.periods.events,
    )
    try:
        yield dispatch
    finally:
        await dispatch.close()


def alert_channels_of(settings: Settings) -> dict[str, AlertChannel]:
    """Returns the configured alert channels; an alert is logged even where there is none."""
    channels: dict[str, AlertChannel] = {}
    if settings.alert_command is not None:
        channels["command"] = Command(settings.alert_command, child_environment())
    if settings.alert_url is not None:
        address: Callable[[str], AlertChannel] = import_module(ALERT_ADDRESS).Address
        channels["address"] = address(settings.alert_url.reveal())
    return channels


@asynccontextmanager
async def opened_database(
    settings: Settings,
    clock: Clock,
    *,
    is_owner: bool = False,
    changes: SchemaChanges = AS_IT_IS,
    is_patient: bool = False,
    log: FilteringBoundLogger | None = None,
) -> AsyncIterator[Database]:
    """Opens the database and closes it again; a command isn't the owner, and may run beside a server.

    ``changes`` say whether a missing database is made, and an old schema brought up to date. Otherwise raises
    DatabaseNotReady: a command that was started in the wrong directory must not say that there is nothing.
    With ``is_patient`` a statement may read a whole table, for as long as that takes: nobody waits for its answer.
    With ``log`` a server that isn't there yet is waited for, for START_WITHIN_S, and the log says so.
    """
    connecting = Connecting(is_patient=is_patient, pool_size=settings.pool_size)
    if log is not None:
        connecting = connecting._replace(
            wait_s=START_WITHIN_S, told=lambda reason: log.warning("database_not_there", reason=reason)
        )
    database = await open_database(
        settings.database_url.reveal(), clock=clock, owner=is_owner, changes=changes, connecting=connecting
    )
    try:
        yield database
    finally:
        await database.close()


@asynccontextmanager
async def opened_resources(
    settings: Settings,
    clock: Clock,
    *,
    is_owner: bool = False,
    changes: SchemaChanges = AS_IT_IS,
    is_patient: bool = False,
    log: FilteringBoundLogger | None = None,
) -> AsyncIterator["SharedResources"]:
    """Opens the database with its keys, and closes it again; the arguments are those of ``opened_database``.

    What ``changes`` allow is done before, with the lock of the owner: no server may be running on an embedded database
    meanwhile.
    """
    async with AsyncExitStack() as stack:
        ready = partial(_opened_as_it_is, settings, clock, is_owner=is_owner, is_patient=is_patient, log=log)
        try:
            shared = await stack.enter_async_context(ready())
        except DatabaseNotReady as error:
            if not (changes.may_upgrade or (changes.may_make and isinstance(error, DatabaseMissing))):
                raise
            await _upgrade(settings, clock, changes)
            shared = await stack.enter_async_context(ready())
        yield shared


@asynccontextmanager
async def _opened_as_it_is(
    settings: Settings, clock: Clock, *, is_owner: bool, is_patient: bool, log: FilteringBoundLogger | None
) -> AsyncIterator["SharedResources"]:
    async with opened_database(settings, clock, is_owner=is_owner, is_patient=is_patient, log=log) as database:
        yield await resources_of(settings, database, clock)


async def _upgrade(settings: Settings, clock: Clock, changes: SchemaChanges) -> None:
    async with opened_database(settings, clock, is_owner=True, changes=changes, is_patient=True) as database:
        await resources_of(settings, database, clock, changes=changes)


def clearing_of(settings: Settings, shared: "SharedResources") -> Clearing:
    """Makes what the clearing of old data works with."""
    return Clearing(shared.database, shared.seal, shared.rows, trail_of(shared), periods=settings.retention.periods)


def watch_writes(relay: Relay, database: Database) -> None:
    """Begins to watch which server takes the writes: whoever lets anything take effect needs that."""
    changes = ServerChanges(
        relay.database.lost_commits,
        relay.clock,
        relay.log,
        last_server=LastServer(database),
        compare=relay.database.marks.compare,
        compare_list=partial(compare_revocations, relay),
        report=relay.journal.trail.report,
    )
    watch_server(database, changes)


def begin_remembering(relay: Relay) -> None:
    """Begins to remember commits, in a process that may go on over a database that lacks them.

    It then waits, at the beginning of a recovery, until all such processes have stored again what they remember.
    """
    relay.journal.remembered = RememberedCommits(COMMITS_MAX)
    relay.database.lost_commits.return_ms = RETURN_MS


def trail_of(shared: "SharedResources") -> Trail:
    """Makes the audit's view of the journal."""
    return Trail.under(shared.database, shared.seal, shared.chain.secret)


def remove_database(path: Path) -> None:
    """Removes an embedded database, if there is one, with its key and what outlives it.

    Raises StoreUnusable where a process runs on it.
    """
    lock = OwnerLock.of_database(path)
    try:
        for suffix in ("", "-wal", "-shm", ".key"):
            path.with_name(f"{path.name}{suffix}").unlink(missing_ok=True)
        remove_marks(marks_beside(path))
    finally:
        lock.release()


async def resources_of(
    settings: Settings, database: Database, clock: Clock, *, changes: SchemaChanges = AS_IT_IS
) -> "SharedResources":
    """Returns the database with its keys; where ``changes`` allow it, first makes or upgrades what is stored.

    Otherwise raises DatabaseNotReady where a step of the upgrade is missing. Raises SettingsError where there is no
    encryption key; StoreUnusable where a key is the wrong one or is missing from the database; StoreUnavailable.
    """
    seal = await seal_of(settings, database)
    if changes.may_make:
        await begin_store(database, seal, clock)
    await verify_key(database, seal)
    chain = await chain_key(database, seal)
    context = UpgradeContext(database, seal, chain.secret, changes.tell)
    await (upgrade(context) if changes.may_upgrade else require_upgraded(context))
    return SharedResources(database, seal, chain, RowDigests(database, chain.secret, clock), GatewayClocks(clock))


async def seal_of(settings: Settings, database: Database) -> Seal:
    """Returns the seal of the configured key, or of the key file beside an embedded database; makes a missing file.

    Raises SettingsError where there is no key, or others may read it; StoreUnusable where the file is missing although
    the database needs it.
    """
    if settings.encryption_key is None and settings.embedded_path is not None:
        return Seal(await embedded_keys(database, key_file_of(settings.embedded_path)))
    return configured_seal(settings)


def key_file_of(path: Path) -> Path:
    """Returns where the encryption key of an embedded database is, unless the settings have one.

    Raises SettingsError where other users of the machine may read or change the file.
    """
    key_file = path.with_name(f"{path.name}.key")
    require_own(key_file, "the encryption key")
    return key_file


def configured_seal(settings: Settings) -> Seal:
    """Returns the seal of the configured key, or of the key file beside an embedded database, and makes none.

    Raises SettingsError where there is no key; StoreUnusable where the file is missing or can't be read.
    """
    if settings.encryption_key is not None:
        return Seal(parse_keys(settings.encryption_key.reveal()))
    if settings.embedded_path is None:
        raise SettingsError(KEY_IS_MISSING)
    path = key_file_of(settings.embedded_path)
    if not is_key_file(path):
        raise key_file_is_missing(path)
    return Seal(load_or_make_key(path))


@dataclass(frozen=True, slots=True)
class SharedResources(OpenedStore):
    """What processes share that work on a database; ``gateway_clocks`` compares the clocks of gateways with ours."""

    gateway_clocks: GatewayClocks


@asynccontextmanager
async def opened_accounts(
    settings: Settings,
    clock: Clock,
    shared: SharedResources | None,
    kinds: Mapping[str, GatewayKind] = KINDS,
    *,
    shares_access_tokens: bool = True,
    spans: Spans | None = None,
) -> AsyncIterator[dict[str, Gateway]]:
    """Makes the gateway of each configured account, and closes it at the end; no gateway is called yet.

    Without ``shared``, each process has the whole rate limit for itself. Without ``shares_access_tokens`` the process
    asks each gateway for an access token of its own, which shows whether the secrets are right.
    """
    async with AsyncExitStack() as stack:
        accounts = {}
        merchants = {} if shared is None else await _merchants(settings, shared, kinds)
        for name, gateway in settings.gateways.items():
            kind, common = kinds[gateway.kind], gateway.common(name)
            resources = _gateway_resources(common, clock, shared, merchants.get(name))
            if not shares_access_tokens:
                resources = replace(resources, token_store=None)
            if spans is not None:
                resources = replace(resources, begin_span=spans.call)
            accounts[name] = kind.open(common, gateway, resources)
            stack.push_async_callback(accounts[name].close)
        yield accounts


async def _merchants(settings: Settings, shared: SharedResources, kinds: Mapping[str, GatewayKind]) -> dict[str, str]:
    """Gives the merchant of each account, by the account's name."""
    identities = {
        name: kinds[gateway.kind].identity(gateway.common(name), gateway) for name, gateway in settings.gateways.items()
    }
    merchants: dict[str, str] = {}
    for identity in identities.values():
        merchants.setdefault(identity.app, identity.merchant)
    known = await merchants_of_apps(shared.database, shared.seal, merchants)
    return {name: known[identity.app] for name, identity in identities.items()}


def _gateway_resources(
    common: CommonSettings, clock: Clock, shared: SharedResources | None, merchant: str | None
) -> GatewayResources:
    if shared is None or merchant is None:
        rate_limiter = RateLimiter(common.limit, clock, timeout_s=common.timeout_s)
        return GatewayResources(clock=clock, merchant=None, rate_limiter=rate_limiter, token_store=None)
    budget = None
    if common.limit is not None:
        calls, window_s = common.limit.calls, common.limit.window_s
        budget = StoredBudget(shared.database, clock, merchant, calls=calls, window_s=window_s)
    rate_limiter = RateLimiter(common.limit, clock, budget=budget, timeout_s=common.timeout_s)
    token_store = partial(AccessTokens, shared.database, shared.seal, clock)
    return GatewayResources(
        clock=clock,
        merchant=merchant,
        rate_limiter=rate_limiter,
        token_store=token_store,
        date_seen=partial(shared.gateway_clocks.note, common.name),
    )


async def _finish(relay: Relay, within_s: float) -> None:
    unfinished = await relay.background.finish(within_s)
    if unfinished:
        relay.log.warning("work_left_behind", count=unfinished)
