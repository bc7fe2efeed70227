"""One run: the world that a seed makes, from its first request to the last operation settled, and the verdict on it."""

import asyncio
import hashlib
from collections.abc import Coroutine, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from decimal import Decimal
from functools import partial
from pathlib import Path
from random import Random
from typing import Final

import msgspec
from tests.simulation import storage
from tests.simulation.bank import Bank
from tests.simulation.buyers import OWN_ORDERS, Buyer, Paid
from tests.simulation.clients import CUSTOMERS, ORDERS, Ask, Client, Told
from tests.simulation.ends import audit, decide_all
from tests.simulation.fate import Fate
from tests.simulation.hostility import PHONE_ORDERS
from tests.simulation.intruders import HostileBuyer, Meddler, PhoneShop
from tests.simulation.judge import books_of, judge
from tests.simulation.judge_balances import judge_balances
from tests.simulation.judge_chargebacks import judge_chargebacks
from tests.simulation.judge_hostility import judge_hostility
from tests.simulation.judge_pages import judge_pages
from tests.simulation.judge_paid_again import faults_of_paid_again
from tests.simulation.judge_plans import judge_plans
from tests.simulation.judge_ways import faults_of_ways, pages_given_out
from tests.simulation.loop import Endless, new_loop, wait_seconds
from tests.simulation.losses import Loss
from tests.simulation.network import DAY_S, Gateway
from tests.simulation.outside import Outside
from tests.simulation.postman import Postman
from tests.simulation.process import ACCOUNT, START_MS, TIMEOUT_S, Heard, Parts, Process, SimulatedClock, serve
from tests.simulation.receivers import ADDRESS, Receivers
from tests.simulation.recovery import Recovery
from tests.simulation.retention import clear_everything_old, repeat_all, wait_until_quiet
from tests.simulation.tabs import Tabs
from tests.simulation.template import Template
from tests.simulation.witness import Witness

from payrelay.clock import Clock
from payrelay.core.calls import Effect
from payrelay.errors import StoreError
from payrelay.flows.payments.recover_after_crash import GRACE_MS
from payrelay.store.engine.database import Database
from payrelay.store.engine.sqlite import Sqlite
from payrelay_simulator.clock import STANDING_START
from payrelay_simulator.clock import Clock as GatewayClock
from payrelay_simulator.notifications import Notification
from payrelay_simulator.records import Subscription
from payrelay_simulator.seeding import CustomerSeed, PaymentSeed, Seed, SubscriptionSeed, plant
from payrelay_simulator.simulator import DEFAULT_MERCHANT
from payrelay_simulator.world import World

RESOLVED_WITHIN_S: Final = 200 * DAY_S
ROUND_S: Final = 86_400.0
TRACE_LINES_MAX: Final = 20_000

_OPEN = "SELECT count(*) FROM operations WHERE state IN ('accepted','sending','pending','unknown')"
_DUE = (
    "SELECT min(at_ms) FROM (SELECT min(probe_at_ms) AS at_ms FROM operations WHERE probe_at_ms IS NOT NULL "
    "UNION ALL SELECT min(send_by_ms) + ? FROM operations WHERE state IN ('accepted','sending') "
    "UNION ALL SELECT min(next_try_at_ms) FROM alerts WHERE next_try_at_ms IS NOT NULL)"
)
_DUE_OF_PAGES = (
    "SELECT min(at_ms) FROM (SELECT min(next_at_ms) AS at_ms FROM notifications WHERE next_at_ms IS NOT NULL "
    "UNION ALL SELECT min(ends_at_ms) FROM checkouts WHERE state = 'open' "
    "UNION ALL SELECT min(at_ms) FROM outbox "
    "UNION ALL SELECT min(next_try_at_ms) FROM (SELECT next_try_at_ms, min(position) FROM deliveries "
    "WHERE next_try_at_ms IS NOT NULL GROUP BY endpoint_id, subject))"
)
_OPEN_PAGES = (
    "SELECT (SELECT count(*) FROM notifications WHERE state IN ('received', 'waiting')) + "
    "(SELECT count(*) FROM checkouts WHERE state = 'open') + (SELECT count(*) FROM outbox) + "
    "(SELECT count(*) FROM deliveries WHERE next_try_at_ms IS NOT NULL)"
)


@dataclass(kw_only=True, slots=True)
class Report:
    """What a run came to.

    Attributes:
        seed: what it was made of.
        failures: what never should have happened; empty when all is well.
        digest: of everything that happened, in its order.
        counts: how much of everything there was.
        resolved_s: how long each lost reply was open whose effect could be seen at the gateway at once.
        trace: what happened, where it was asked for.
    """

    seed: int
    failures: list[str]
    digest: str
    counts: dict[str, int] = field(default_factory=dict)
    resolved_s: list[float] = field(default_factory=list)
    trace: list[str] = field(default_factory=list)


class Universe:
    """Everything of one run."""

    def __init__(self, fate: Fate, template: Template, parts: Parts) -> None:
        self.fate = fate
        self.parts = parts
        self.path: Path = template.folder / "run.db"
        self.keys = template.keys
        self.spare = template.spare
        self.loop = new_loop(fate.chance("order") if fate.is_shuffled else None)
        self.loop.stalls = dict(fate.stalls)
        self.clock: Clock = SimulatedClock(self.loop)
        self.numbers: Random = fate.chance("ids")
        self.shared: Database | None = None
        self._server: Sqlite | None = None
        self.outside = None if fate.loss is None else Outside()
        self.loss: Loss | None = None
        self.failures: list[str] = []
        self.calls: dict[str, Effect] = {}
        self.trace: list[str] = []
        self.told: list[Told] = []
        self.payment_ids: list[str] = []
        self.subscription_ids: list[str] = []
        self.is_healed = False
        self.is_over = False
        self.are_clients_done = False
        self.processes: list[Process | None] = []
        self.crashes = list(fate.crashes)
        self.counts: dict[str, int] = {}
        self.resolved_s: list[float] = []
        self._requests = 0
        self._client_random = fate.chance("clients' network")
        self._public_random = fate.chance("public network")
        self._digest = hashlib.blake2b(digest_size=16)
        start = STANDING_START + timedelta(seconds=fate.skew_s)
        world = World((DEFAULT_MERCHANT,), GatewayClock(start, self.loop.time), fate.switches, seed=fate.seed)
        self.gateway = Gateway(world, self.loop, fate.chance("gateway"), fate, self)
        storage.copy_database(template.path, self.path)
        self.auditor = storage.open_auditor(self.path)
        self.eyes = Witness(self.auditor)
        self.paid: list[Paid] = []
        self.stolen: list[Notification] = []
        pages = fate.pages
        self.receivers = None if pages is None else Receivers(self, fate.chance("receivers"), pages)
        self.postman = None if pages is None else Postman(self, fate.chance("postman"), pages)
        if self.postman is not None and fate.hostile is not None:
            self.postman.turn_hostile(fate.chance("hostile postman"), fate.hostile)
        self.bank = Bank(self, fate.chance("bank"), fate)
        self.recovery = None if fate.loss is None else Recovery(self, fate.chance("recovery"), fate.loss)

    # What processes and the gateway's end ask.

    @property
    def key_loss_share(self) -> float:
        """The share of the repeats that lose their key from now on."""
        return 0.0 if self.is_healed else self.fate.key_loss_share

    def store_fault_share(self) -> float:
        """The share of writes that fail at this moment."""
        return 0.0 if self.is_calm() else self.fate.store_fault_share

    def fault_share(self) -> float:
        """The share of calls that meet a fault at this moment."""
        return 0.0 if self.is_calm() else self.fate.fault_share * (0.5 if self.are_clients_done else 1.0)

    def is_calm(self) -> bool:
        """Tells whether there are no faults at this moment, or no more."""
        return self.is_healed or self.loop.time() >= self.fate.chaos_s

    def next_due_s(self) -> float:
        """When there is something to do for a worker; a day from now at the latest."""
        due_ms: tuple[int | None, ...] = self.auditor.execute(_DUE, (int(TIMEOUT_S * 1000) + GRACE_MS + 1,)).fetchone()
        if self.fate.pages is not None:
            due_ms += self.auditor.execute(_DUE_OF_PAGES).fetchone()
        if self.loss is not None and self.loss.is_new_at(self.loop.time() - sum(self.fate.stalls.values())):
            return self.loop.time()  # what a beginning recovery asks of a worker, no row tells
        latest_s = self.loop.time() + DAY_S
        return min(latest_s, *((at_ms - START_MS) / 1000 for at_ms in due_ms if at_ms is not None), latest_s)

    def committed(self) -> None:
        """Looks at what was committed just now."""
        for fault in self.eyes.faults_of_commit():
            self.blame(fault)
        if self.fate.pages is not None:
            for process in self.processes:
                if process is not None:
                    process.wake()

    def tell(self) -> None:
        """Says that the gateway may have something to tell."""
        self.bank.look()
        if self.postman is not None:
            self.postman.wake()

    def note(self, *words: object) -> None:
        """Keeps what happened, for the digest and for people."""
        entry = f"{self.loop.time():.4f} {' '.join(map(str, words))}"
        self._digest.update(entry.encode())
        if len(self.trace) < TRACE_LINES_MAX:
            self.trace.append(entry)

    def blame(self, text: str) -> None:
        """Keeps what never should have happened."""
        self.failures.append(text)

    def count(self, what: str) -> None:
        """Counts one more."""
        self.count_up(what, 1)

    def count_up(self, what: str, number: int) -> None:
        """Counts so many more."""
        self.counts[what] = self.counts.get(what, 0) + number

    def sending(self, operation_id: str | None, endpoint: str) -> None:
        """Looks, at the moment of the writing, whether what is written is on disk."""
        if self.loss is not None and self.loss.is_in_flight(operation_id, self.loop.time()):
            return
        for fault in self.eyes.faults_of_sending(operation_id, endpoint, self.clock.now_ms()):
            self.blame(fault)

    # What an operator does.

    def copy_of_database(self) -> bytes:
        """Gives the database's file as of now."""
        return self.auditor.serialize()

    def replace_database(self, image: bytes, *, is_outlived: bool) -> bool:
        """Puts a file in the place of the database, and tells whether processes go on over it.

        All die, unless they share a server and are to go on over the one that takes its place.
        """
        up = [process for process in self.processes if process is not None and not process.owner.is_dead]
        is_outlived &= self._server is not None
        for process in () if is_outlived else up:
            process.owner.kill()
        if self._server is not None:
            storage.tear(self._server)
        self.auditor.close()
        storage.replace_database(self.path, image)
        self.auditor = storage.open_auditor(self.path)
        self.eyes = Witness(self.auditor)
        if self._server is not None:
            self.shared = self._server = self._new_server()
            for process in up if is_outlived else ():
                process.change_server(self._server)
        return is_outlived

    def operators_database(self) -> Sqlite:
        """Opens the database beside no process."""
        disk = storage.Disk(random=self.fate.chance("operator's disk"), longest_s=self.fate.commit_s)
        return storage.open_engine(self.path, self.loop, self.clock, disk)

    # What clients ask.

    async def call(self, ask: Ask, patience_s: float) -> Told:
        """Carries a request to one of the processes, and back what it answers, where nothing gets lost."""
        self._requests += 1
        request_id = f"req-{self._requests}"
        at_s = self.loop.time()
        heard = await self._heard(ask, request_id, patience_s)
        self.note("told", request_id, ask.method, ask.path, None if heard is None else heard.http_status)
        told = Told(ask=ask, request_id=request_id, at_s=at_s, heard_at_s=self.loop.time(), heard=heard)
        self.told.append(told)
        return told

    async def browse(self, path: str) -> Heard | None:
        """Carries a person's browser to a page of ours; what it shows is read there, and goes nowhere."""
        heard = await self._carried(_public_scope("GET", path), b"", 60.0, self._client_random)
        # The secret in the address is made by the program's own chance.
        way = path.rpartition("/")[2]
        self.note("browsed", way if way in {"return", "cancel"} else "", None if heard is None else heard.http_status)
        return heard

    async def slip(self, fields: Mapping[str, str]) -> None:
        """Carries what a hostile customer made of the gateway's news."""
        if self.postman is not None:
            await self.postman.slip(fields)

    async def post(self, body: bytes) -> Heard | None:
        """Carries a notification."""
        return await self._carried(_public_scope("POST", f"/{ACCOUNT}/notifications", len(body)), body, 10.0, None)

    async def _heard(self, ask: Ask, request_id: str, patience_s: float) -> Heard | None:
        self.note("asks", request_id, ask.method, ask.path, ask.key)
        return await self._carried(self._scope(ask, request_id), ask.body, patience_s, self._client_random)

    async def _carried(
        self, scope: dict[str, object], body: bytes, patience_s: float, random: Random | None
    ) -> Heard | None:
        """Carries a request there and its answer back; without chance of its own nothing gets lost on the way."""
        loses = 0.0 if self.is_healed or random is None else self.fate.client_fault_share
        random = random or self._public_random
        fate = random.random()
        await wait_seconds(random.uniform(0, 0.2))
        up = [process for process in self.processes if process is not None and process.is_up]
        if not up or fate < loses / 3:
            return None
        process = random.choice(up)
        answer: asyncio.Future[Heard | None] = self.loop.create_future()
        process.owner.at_death.append(partial(_set, answer))
        work = self.loop.create_task(serve(process, scope, body, answer), context=process.owner.context())
        patience_s = random.uniform(0, 1.0) if fate > 1 - loses / 3 else patience_s
        await asyncio.wait({answer}, timeout=patience_s)
        if not answer.done():
            work.cancel()
            return None
        return None if fate < loses * 2 / 3 else answer.result()

    def _scope(self, ask: Ask, request_id: str) -> dict[str, object]:
        headers = [
            (b"authorization", b"Bearer " + (ask.credential or self.keys[ask.principal]).encode()),
            (b"x-request-id", request_id.encode()),
            (b"content-length", b"%d" % len(ask.body)),
        ]
        if ask.body:
            headers.append((b"content-type", b"application/json"))
        if ask.key is not None:
            headers.append((b"idempotency-key", ask.key.encode()))
        if ask.wait_s:
            headers.append((b"prefer", b"wait=%d" % ask.wait_s))
        path = f"/{ACCOUNT}/api/{ask.path}"
        return {
            "type": "http",
            "method": ask.method,
            "path": path,
            "raw_path": path.encode(),
            "query_string": b"",
            "headers": headers,
            "client": ("192.0.2.1", 1),
        }

    # The run itself.

    async def live(self) -> None:
        """Lives it from beginning to end."""
        self._plant()
        if self.fate.has_two:
            self.shared = self._server = self._new_server()
        self.processes = [None] * (2 if self.fate.has_two else 1)
        keepers = [self.loop.create_task(self._keep(number)) for number in range(len(self.processes))]
        clients = [
            Client(number, self, self.fate.chance(f"client {number}"), is_narrow=self.fate.is_narrow).live()
            for number in range(self.fate.clients)
        ]
        losing = () if self.recovery is None else (self.recovery.live(),)
        await asyncio.gather(*clients, *self._page_stories(), *self._hostile_stories(), *losing)
        self.are_clients_done = True
        self.note("clients are done")
        await wait_seconds(max(0.0, self.fate.chaos_s - self.loop.time()))
        await self._heal()
        if self.recovery is not None:
            await self.recovery.finish()
        await self._settle()
        if self.postman is not None and self.receivers is not None:
            judge_pages(self, self.postman.posted, self.paid)
            await judge_chargebacks(self, self.postman.posted)
            await judge_plans(self, self.postman.posted)
        judge_hostility(self)
        received = None if self.receivers is None else self.receivers.received
        for fault in self.eyes.faults_of_events(received, pages_given_out(self.told)):
            self.blame(fault)
        books = await judge(self)
        relay = next(process.relay for process in self.processes if process is not None)
        if relay is not None:
            await self.bank.take_back_last()
            await judge_balances(self, relay, books, is_shown=True)
            posted = [] if self.postman is None else self.postman.posted
            for fault in (*faults_of_ways(self, books), *faults_of_paid_again(self, books, posted, self.paid)):
                self.blame(fault)
            for fault in (*await decide_all(relay, books), *await audit(relay)):
                self.blame(fault)
            await judge_balances(self, relay, await books_of(self), is_shown=False)
            await wait_until_quiet(relay, self.auditor)
            for fault in (*await clear_everything_old(relay, self.auditor), *await audit(relay)):
                self.blame(fault)
            # What was lost with commits, and acknowledged, is new when it comes again.
            for fault in await repeat_all(self.told if self.loss is None else [], self.call, self.auditor):
                self.blame(fault)
        self.is_over = True
        for process in self.processes:
            if process is not None:
                process.stop()
        await asyncio.gather(*keepers)
        if self.shared is not None:
            await self.shared.close()

    def _new_server(self) -> Sqlite:
        disk = storage.Disk(random=self.fate.chance("disk"), longest_s=self.fate.commit_s, done=self.committed)
        return storage.open_engine(self.path, self.loop, self.clock, disk)

    def _page_stories(self) -> list[Coroutine[None, None, None]]:
        """Gives what goes on beside, in a life with the gateway's pages."""
        pages = self.fate.pages
        if pages is None or self.postman is None:
            return []
        self.loop.create_task(self.postman.work())
        orders = (*OWN_ORDERS, *ORDERS[:1]) if pages.are_orders_shared else OWN_ORDERS
        stories = [
            Buyer(
                100 + number,
                self,
                self.fate.chance(f"buyer {number}"),
                is_narrow=self.fate.is_narrow,
                orders=orders,
                edited_share=pages.edited_share,
            ).live()
            for number in range(pages.buyers)
        ]
        stories += [
            Tabs(150 + number, self, self.fate.chance(f"tabs {number}"), is_narrow=False).live()
            for number in range(pages.tabs)
        ]
        return [*stories, self._register()] if pages.has_endpoint else stories

    def _hostile_stories(self) -> list[Coroutine[None, None, None]]:
        """Gives what those do who mean harm, in a life that has any."""
        hostile = self.fate.hostile
        if hostile is None:
            return []
        stories: list[Client] = [
            HostileBuyer(200 + number, self, self.fate.chance(f"hostile buyer {number}"), is_narrow=False)
            for number in range(hostile.customers)
        ]
        stories += [
            Meddler(300 + number, self, self.fate.chance(f"meddler {number}"), is_narrow=False)
            for number in range(hostile.meddlers)
        ]
        stories += [
            PhoneShop(400 + number, self, self.fate.chance(f"phones {number}"), order_id=PHONE_ORDERS[number])
            for number in range(hostile.phone_orders)
        ]
        return [story.live() for story in stories]

    async def _register(self) -> None:
        """Has the shop's events sent."""
        body = msgspec.json.encode({"url": ADDRESS})
        ask = Ask(principal="shop", method="POST", path="endpoints", body=body)
        await wait_seconds(2.0)
        # Once, whatever comes of it: two would have ids that the program's own chance puts in an order.
        await self.call(ask, 12.0)

    def _plant(self) -> None:
        seed = Seed(
            customers=[
                CustomerSeed(customer_token=CUSTOMERS[0]),
                CustomerSeed(customer_token=CUSTOMERS[1]),
                CustomerSeed(customer_token=CUSTOMERS[2], decline="insufficient_funds"),
            ],
            payments=[
                PaymentSeed(order_id="P-1", amount=Decimal(1000)),
                PaymentSeed(order_id="P-2", amount=Decimal(5)),
            ],
            subscriptions=[
                SubscriptionSeed(order_id="S-1", customer_token=CUSTOMERS[0], amount=Decimal(5), status="FAILED"),
                SubscriptionSeed(order_id="S-2", customer_token=CUSTOMERS[0], amount=Decimal(6)),
            ],
        )
        planted = plant(self.gateway.world, seed)
        self.payment_ids = [str(payment_id) for payment_id in planted.payment_ids]
        self.subscription_ids = [str(subscription_id) for subscription_id in planted.subscription_ids]

    async def _keep(self, number: int) -> None:
        """Keeps one process running: starts it again whenever it has died, until all is over."""
        random = self.fate.chance(f"keeper {number}")
        life = 0
        while True:
            life += 1
            if self.recovery is not None:
                await self.recovery.may_start()
            process = Process(self, f"{number}.{life}")
            self.processes[number] = process
            ending = None if self.is_healed else self._take_ending(process)
            work = self.loop.create_task(self._guarded(process), context=process.owner.context())
            died: asyncio.Future[None] = self.loop.create_future()
            process.owner.at_death.append(partial(_set, died))
            if ending is not None and ending[0] == "stop":
                self.loop.call_later(ending[1], self._stop, process)
            await asyncio.wait({work, died}, return_when=asyncio.FIRST_COMPLETED)
            self.note("down", process.owner.name, "killed" if died.done() else "ended")
            if died.done():
                point = process.owner.dies_at
                self.count(f"crash: {'any step' if point is None else point[0]}")
            else:
                self.count("clean ends")
            process.owner.is_dead = True
            if self.is_over:
                return
            await wait_seconds(random.choice((0.1, 2.0, 60.0)))

    def _stop(self, process: Process) -> None:
        if not self.is_healed:
            process.stop()

    async def _guarded(self, process: Process) -> None:
        try:
            await process.run()
        except StoreError as error:
            self.note("not started", process.owner.name, error)
            process.owner.kill()
        except Exception as error:  # noqa: BLE001, whatever it was, the run is over
            self.loop.fatal = f"a process ended with {error!r}"

    def _take_ending(self, process: Process) -> tuple[str, int] | None:
        if not self.crashes:
            return None
        kind, number = self.crashes.pop(0)
        if kind == "step":
            process.owner.dies_at_step = number
        elif kind != "stop":
            process.owner.dies_at = (kind, number)
        return kind, number

    async def _heal(self) -> None:
        """Ends all faults, and waits until everybody is up."""
        self.is_healed = True
        self.note("healed")
        self.crashes.clear()
        self.loop.stalls.clear()
        while self.loop.time() < self.loop.still_until_s:
            await wait_seconds(self.loop.still_until_s - self.loop.time())
        for process in self.processes:
            if process is not None:
                process.owner.dies_at = process.owner.dies_at_step = None
        while not all(process is not None and process.is_up for process in self.processes):
            await wait_seconds(1.0)
        await self._let_requests_end()

    async def _let_requests_end(self) -> None:
        """Waits for requests whose clients have left, which ends none: what was begun may come to be an operation."""
        while any(process is not None and process.has_work for process in self.processes):
            await wait_seconds(1.0)

    async def _settle(self) -> None:
        """Waits until nothing is open any more, at most RESOLVED_WITHIN_S."""
        await self._let_requests_end()
        until_s = self.loop.time() + RESOLVED_WITHIN_S
        pause_s = 1.0
        while self._is_open() and self.loop.time() < until_s:
            await wait_seconds(pause_s)
            pause_s = min(ROUND_S, pause_s * 1.5)
        # What is hidden for longer than any proof waits shows itself in the end, and is looked for until then.
        shown_s = max((arrival.visible_at_s for arrival in self.gateway.arrivals if arrival.entries), default=0.0)
        await wait_seconds(max(0.0, shown_s + 2 * DAY_S - self.loop.time()) if shown_s > self.loop.time() else 0.0)
        while self._is_open() and self.loop.time() < until_s:
            await wait_seconds(60.0)

    def _is_open(self) -> bool:
        """Tells whether anything goes on by itself."""
        if self.bank.open or self.auditor.execute(_OPEN).fetchone()[0]:
            return True
        if self.postman is None:
            return False
        if not self.postman.is_idle() or self.auditor.execute(_OPEN_PAGES).fetchone()[0]:
            return True
        # A card that fails is tried once a day, until that is given up.
        return any(each.failures and each.status == "ACTIVE" for each in self._plans_begun())

    def _plans_begun(self) -> list[Subscription]:
        plans = self.gateway.world.state.subscriptions
        return [each for key, each in plans.items() if str(key) not in self.subscription_ids]


def _public_scope(method: str, path: str, length: int = 0) -> dict[str, object]:
    """Says a request of somebody who needs no key."""
    headers = [(b"content-length", b"%d" % length)]
    if length:
        headers.append((b"content-type", b"application/x-www-form-urlencoded"))
    return {
        "type": "http",
        "method": method,
        "path": path,
        "raw_path": path.encode(),
        "query_string": b"",
        "headers": headers,
        "client": ("192.0.2.2", 2),
    }


def _set(future: "asyncio.Future[None] | asyncio.Future[Heard | None]") -> None:
    if not future.done():
        future.set_result(None)


def run(seed: int, template: Template, parts: Parts | None = None, fate: Fate | None = None) -> Report:
    """Lives through one seed, and reports; with another fate than the seed's own where one is given."""
    universe = Universe(fate or Fate.of(seed), template, parts or Parts())
    try:
        universe.loop.run(universe.live())
    except Endless as error:
        universe.blame(str(error))
    except Exception as error:  # noqa: BLE001 - one life that can't be told to its end must not end the campaign
        universe.blame(f"{type(error).__name__}: {error}")
    finally:
        universe.auditor.close()
    universe.count_up("steps", universe.loop.steps)
    for name, number in universe.gateway.faults.items():
        universe.count_up(f"fault: {name}", number)
    universe.count_up("calls to the gateway", universe.gateway.world.calls.arrived)
    for trouble in universe.loop.troubles:
        universe.blame(trouble)
    return Report(
        seed=seed,
        failures=universe.failures,
        digest=universe._digest.hexdigest(),
        counts=universe.counts,
        resolved_s=universe.resolved_s,
        trace=universe.trace,
    )
