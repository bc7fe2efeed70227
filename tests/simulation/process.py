"""One process of Payrelay: everything from the door to the database as the program has it, over a simulated outside.

It is put together as ``payrelay.app`` does it. What is brought in is what the seed decides: clock, network, disk, the
ids of operations, and how the worker waits between its rounds.
"""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random
from typing import Any, Final, Protocol

import msgspec
import structlog
from tests.heartbeats import heartbeat_of, sources_of
from tests.simulation import storage
from tests.simulation.fate import Fate
from tests.simulation.loop import OWNER, Owner, SimulatedLoop, wait_seconds
from tests.simulation.network import OPERATION, REQUEST, Gateway, SimulatedNetwork
from tests.simulation.outside import Outside, VirtualMarkFiles, VirtualRevocations
from tests.simulation.receivers import Receivers, SimulatedSender
from tests.simulation.remembering import remembering

from payrelay import app, worker
from payrelay.api.app import Api
from payrelay.api.context import ApiContext
from payrelay.api.metrics.counters import Metrics
from payrelay.api.metrics.exposition import Exposition
from payrelay.api.requests.route import Route
from payrelay.api.routes.table import ROUTES
from payrelay.app import begin_remembering, opened_relay, resources_of
from payrelay.clock import Clock
from payrelay.core.calls import Effect
from payrelay.core.database.schema_changes import ANY
from payrelay.core.payments.operation import Operation
from payrelay.core.retention import Periods
from payrelay.core.seal_keys import key_text
from payrelay.core.secret import Secret
from payrelay.errors import StoreError
from payrelay.flows.alerts.alert import tell_behind
from payrelay.flows.payments.recover_after_crash import recover
from payrelay.flows.relay import Relay
from payrelay.flows.revocations.reapply import reapply_in_new_incarnation
from payrelay.gateways.payhere.account import KIND as PAYHERE
from payrelay.gateways.payhere.account import Account, merchant_of
from payrelay.gateways.payhere.kind import PayHereKind
from payrelay.runtime.database.revocation_list import RevocationList
from payrelay.runtime.hooks import Hooks, OperationPoint
from payrelay.settings import Settings, gateway_settings
from payrelay.store.access.credentials import Credentials
from payrelay.store.engine.database import Database
from payrelay.store.engine.sealing import Seal
from payrelay.store.payments.counts import Counts
from payrelay_simulator.simulator import DEFAULT_MERCHANT

START_MS: Final = 1_788_244_200_000
"""The simulated gateway's standing clock begins then too."""
TIMEOUT_S: Final = 30.0
QUEUE_S: Final = 5.0
FINISH_S: Final = 20.0
PUBLIC_URL: Final = "https://pay.simulated"
KEY: Final = b"k" * 32
SEAL: Final = Seal((KEY,))
ACCOUNT: Final = "gateway"
BASE_URL: Final = "https://gateway.simulated"
TORN: Final = "Cannot operate on a closed database"
"""What a process is told whose server has just died."""
LOCKED: Final = "database is locked"
"""What a process is told while an operator's command writes beside it: for its lock nobody waits in simulated time."""
NEVER: Final = Periods(answers=None, calls=None, histories=None, notifications=None, events=None)
SHORT: Final = NEVER._replace(calls=1)
"""In lives in which the clearing goes on meanwhile: the judge reads answers, histories and notifications at the end."""
MAINTENANCE_ROUNDS, MAINTENANCE_EVERY = 20, 10
"""What the program does as seldom as that is done here every so many rounds."""
ALARMING: Final = frozenset(
    {
        "alert_failed",
        "delivering_failed",
        "effect_raised",
        "job_failed",
        "notification_failed",
        "order_failed",
        "request_failed",
        "resolution_failed",
        "waiting_failed",
    }
)
"""Events of the log that report an exception which the program did not expect."""


class SimulatedClock(Clock):
    """Tells the loop's time on both clocks."""

    def __init__(self, loop: SimulatedLoop) -> None:
        self._loop = loop

    def now_ms(self) -> int:
        """Gives the time since START_MS."""
        return START_MS + int(self._loop.time() * 1000)

    def boot_s(self) -> float:
        """Gives the seconds since the beginning."""
        return self._loop.time()


class Around(Protocol):
    """What a process finds around it."""

    fate: Fate
    loop: SimulatedLoop
    clock: Clock
    gateway: Gateway
    path: Path
    parts: "Parts"
    shared: Database | None
    numbers: Random
    receivers: Receivers | None
    outside: Outside | None
    calls: dict[str, Effect]

    def store_fault_share(self) -> float:
        """The share of writes that fail at this moment."""
        ...

    def next_due_s(self) -> float:
        """When there is something to do for the worker, as far as the database tells."""
        ...

    def committed(self) -> None:
        """Something was committed."""
        ...

    def note(self, *words: object) -> None:
        """Something happened."""
        ...

    def blame(self, text: str) -> None:
        """Something happened that never should."""
        ...


def unchanged(relay: Relay, _: Database) -> Relay:
    """Leaves what the stories work with as it is."""
    return relay


@dataclass(frozen=True, kw_only=True, slots=True)
class Parts:
    """What a process is made of; a mistake is seeded by putting another one in its place."""

    network: type[SimulatedNetwork] = SimulatedNetwork
    recover: Callable[..., Awaitable[int]] = recover
    change: Callable[[Relay, Database], Relay] = unchanged
    routes: tuple[Route, ...] = ROUTES


class Process:
    """Runs from ``run`` to its death, or to its clean end after ``stop``."""

    def __init__(self, around: Around, name: str) -> None:
        self._around = around
        self.owner = Owner(name)
        self.relay: Relay | None = None
        self.api: Api | None = None
        self._database: storage.SimulatedDatabase | None = None
        self._stopping: asyncio.Future[None] = around.loop.create_future()
        self._woken: asyncio.Future[None] | None = None
        self._log = structlog.wrap_logger(None, processors=[self._heard])
        around.loop.owners.append(self.owner)

    @property
    def is_up(self) -> bool:
        """Whether it takes requests."""
        return self.api is not None and not self.owner.is_dead and not self._stopping.done()

    @property
    def has_work(self) -> bool:
        """Whether there is work that goes on although nobody may be waiting for it."""
        return self.relay is not None and self.relay.background.under_way > 0

    def stop(self) -> None:
        """Lets it come to a clean end."""
        if not self._stopping.done():
            self._stopping.set_result(None)

    async def run(self) -> None:
        """Starts, serves until it is stopped, and ends as the program does."""
        around = self._around
        async with AsyncExitStack() as stack:
            database = self._database = self._opened()
            stack.push_async_callback(database.close)
            self.relay = await self._relay(database, stack)
            jobs = app.jobs() if around.outside is None else await self._compared(self.relay, stack)
            if self.relay.database.lost_commits.behind is None:
                await around.parts.recover(self.relay, is_sole_owner=around.shared is None)
            stack.push_async_callback(self.relay.background.finish, FINISH_S)
            chores = tuple(job._replace(rounds=_rounds_of(job)) for job in jobs)
            await stack.enter_async_context(worker.working(self.relay, self._pause, chores))
            self.api = Api(self._context(database, self.relay))
            around.note("up", self.owner.name)
            await self._stopping
        self.owner.is_dead = True

    def change_server(self, engine: Database) -> None:
        """Goes on over another server of its database, once it has compared what it was told of."""
        if self._database is None or self.relay is None:
            self.owner.kill()  # it was about to start
            return
        self._database.change_server(engine)
        self._around.loop.create_task(self._compare(self._database, self.relay), context=self.owner.context())

    async def _compare(self, database: storage.SimulatedDatabase, relay: Relay) -> None:
        storage.COMPARING.set(True)
        while True:
            try:
                await relay.database.marks.compare()
                await relay.database.lost_commits.store_behind()
            except StoreError:
                await wait_seconds(1.0)
            else:
                break
        self._around.note("compared", self.owner.name, relay.database.lost_commits.behind is not None)
        await wait_seconds(5.0)
        database.compared()
        self.wake()

    async def _compared(self, relay: Relay, stack: AsyncExitStack) -> tuple[worker.Job, ...]:
        """Compares what lies beside the database with it, keeps that from then on, and gives the worker's jobs."""
        await relay.database.marks.compare_files()
        await tell_behind(relay)
        await stack.enter_async_context(relay.database.marks.kept())
        await reapply_in_new_incarnation(relay)
        return (*app.jobs(), worker.Job(2, reapply_in_new_incarnation))

    def _opened(self) -> storage.SimulatedDatabase:
        around = self._around
        random = around.fate.chance(f"storage of {self.owner.name}")
        disk = storage.Disk(random=random, longest_s=around.fate.commit_s, done=around.committed)
        engine = around.shared or storage.open_engine(around.path, around.loop, around.clock, disk)
        return storage.SimulatedDatabase(
            engine, self.owner, random, around.store_fault_share, is_shared=around.shared is not None
        )

    async def _relay(self, database: Database, stack: AsyncExitStack) -> Relay:
        around = self._around

        def ways(_: Account) -> SimulatedNetwork:
            return around.parts.network(around.gateway, self.owner, around.clock, TIMEOUT_S)

        settings = _settings(around.path, around.fate)
        resources = await resources_of(settings, database, around.clock, changes=ANY)
        relay = await stack.enter_async_context(
            opened_relay(
                settings,
                resources,
                clock=around.clock,
                log=self._log,
                hooks=Hooks(reached=self._reached, operation_changed=self._changed),
                kinds={PAYHERE: PayHereKind(ways)},
            )
        )
        if around.receivers is not None:
            relay.dispatch.sender = SimulatedSender(around.receivers, around.clock)
            relay.dispatch.chance = around.numbers.random
        revocations = RevocationList(None, b"")  # where the database never goes back, nothing lies beside it
        if around.outside is not None:
            secret = resources.chain.secret
            revocations = VirtualRevocations(around.outside, secret)
            relay.database.marks._files = VirtualMarkFiles(around.outside, f"{self.owner.name}.mark", secret)
        if around.shared is not None:  # it may outlive its server
            begin_remembering(relay)
        relay.clearing.periods = SHORT if around.fate.clears else NEVER
        relay = replace(relay, clearing=remembering(relay, around.calls))
        return around.parts.change(
            replace(relay, new_id=self._new_id, database=replace(relay.database, revocations=revocations)), database
        )

    def _context(self, database: Database, relay: Relay) -> ApiContext:
        metrics, heartbeat = Metrics(), heartbeat_of(self._around.clock)
        return ApiContext(
            relay=relay,
            credentials=Credentials(database, relay.checkouts.rows),
            store_health=heartbeat,
            metrics=metrics,
            exposition=Exposition(metrics, Counts(database), relay, sources_of(heartbeat)),
            log=self._log,
            environments={ACCOUNT: "sandbox"},
            routes=self._around.parts.routes,
        )

    def _reached(self, crash_point: OperationPoint, operation_id: str) -> None:
        OPERATION.set(operation_id)
        self._around.note(crash_point, operation_id)
        self.wake()
        self.owner.reach(crash_point)

    def _changed(self, operation: Operation) -> None:
        self._around.note("changed", operation.id, operation.version, operation.state)

    def _new_id(self, prefix: str, now_ms: int) -> str:
        return f"{prefix}_{now_ms:012x}{self._around.numbers.getrandbits(80):020x}"

    async def _pause(self, seconds: float) -> None:
        """Waits between two rounds of the worker, and leaves those out in which there is nothing to do."""
        loop = self._around.loop
        await wait_seconds(seconds)
        while self.relay is not None:
            wait_s = self._around.next_due_s() - loop.time()
            if wait_s <= 0:
                return
            if self.relay.under_way.being_resolved:
                wait_s = min(wait_s, 5.0)
            self._woken = loop.create_future()
            await asyncio.wait({self._woken}, timeout=wait_s)
            if not self._woken.done():
                return

    def wake(self) -> None:
        """Has the worker look whether there is something to do."""
        if self._woken is not None and not self._woken.done():
            self._woken.set_result(None)

    def _heard(self, _logger: object, _method: str, event: structlog.typing.EventDict) -> structlog.typing.EventDict:
        if event["event"] in ALARMING and not _is_expected(event):
            self._around.blame(f"the log says {event['event']}: {event.get('errors') or event.get('reason')}")
        raise structlog.DropEvent


def _rounds_of(job: worker.Job) -> int:
    """Gives the rounds between two runs of a job: fewer than in the program, since idle rounds are left out here."""
    return 1 if job.rounds < MAINTENANCE_ROUNDS else MAINTENANCE_EVERY


MERCHANT: Final = merchant_of(
    Account(
        name=ACCOUNT,
        environment="sandbox",
        base_url=BASE_URL,
        app_id=DEFAULT_MERCHANT.app_id,
        app_secret=Secret(DEFAULT_MERCHANT.app_secret),
        merchant_id=DEFAULT_MERCHANT.merchant_id,
    )
)
"""The merchant as an operator's command knows it from the settings, whatever the database has."""


def _is_expected(event: structlog.typing.EventDict) -> bool:
    reason = str(event.get("reason"))
    return "simulated" in reason or TORN in reason or LOCKED in reason


def _settings(path: Path, fate: Fate) -> Settings:
    limit = fate.limit
    # Where no address of ours is known to the gateway, it notifies nobody.
    secret = {} if fate.pages is None else {"merchant_secret": DEFAULT_MERCHANT.merchant_secret}
    gateway = gateway_settings(
        {
            "base_url": BASE_URL,
            "app_id": DEFAULT_MERCHANT.app_id,
            "app_secret": DEFAULT_MERCHANT.app_secret,
            "merchant_id": DEFAULT_MERCHANT.merchant_id,
            "rate_limit": f"{limit[0]}/{limit[1]}s" if limit[0] else "off",
            "timeout_s": TIMEOUT_S,
            "queue_s": QUEUE_S,
            "signs_elsewhere": False,
            **secret,
        }
    )
    return Settings(
        database_url=Secret(f"sqlite:///{path}"),
        encryption_key=Secret(key_text(KEY)),
        gateways={ACCOUNT: gateway},
        public_url=None if fate.pages is None else PUBLIC_URL,
    )


class Heard(msgspec.Struct, frozen=True, kw_only=True):
    """What a client was answered."""

    http_status: int
    headers: dict[str, str]
    body: bytes


async def serve(process: Process, scope: dict[str, Any], body: bytes, answer: "asyncio.Future[Heard | None]") -> None:
    """Carries one request to a process and its answer back, as a server would."""
    started: dict[str, Any] = {}
    REQUEST.set(dict(scope["headers"]).get(b"x-request-id", b"").decode() or None)

    async def receive() -> dict[str, Any]:
        if started.get("is_read"):
            await asyncio.get_running_loop().create_future()
        started["is_read"] = True
        return {"type": "http.request", "body": body, "more_body": False}

    async def send(message: Any) -> None:  # noqa: ANN401, the server's own form
        if message["type"] == "http.response.start":
            started.update(message)
        elif not answer.done():
            headers = {name.decode(): value.decode("latin-1") for name, value in started["headers"]}
            answer.set_result(Heard(http_status=started["status"], headers=headers, body=message["body"]))

    api = process.api
    if api is not None and not OWNER.get().is_dead:
        await api(scope, receive, send)
