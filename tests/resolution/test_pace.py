import asyncio
from collections.abc import Callable
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Final

import msgspec
import pytest
import structlog
from tests.flows.world import asked
from tests.resolution.bench import call_of, dropped, settings_of
from tests.simulation.loop import SimulatedLoop, new_loop, wait_seconds

from payrelay import worker
from payrelay.app import opened_relay, resources_of
from payrelay.clock import Clock
from payrelay.core.calls import Charge
from payrelay.core.database.schema_changes import ANY
from payrelay.core.payments.operation import Operation, State
from payrelay.flows.payments.charge import charge
from payrelay.flows.resolution.resolve import begin_due
from payrelay.gateways.http.exchange import CallHeaders, Loss, LossCause, OutgoingRequest, Reply
from payrelay.gateways.payhere.account import KIND as PAYHERE
from payrelay.gateways.payhere.kind import PayHereKind
from payrelay.runtime.hooks import Hooks, OperationPoint
from payrelay.store import open_database
from payrelay.store.engine.sqlite import InlineExecutor
from payrelay_simulator.clock import STANDING_START
from payrelay_simulator.clock import Clock as GatewayClock
from payrelay_simulator.faults import Arguments, Rule
from payrelay_simulator.seeding import CustomerSeed, Seed, plant
from payrelay_simulator.simulator import DEFAULT_MERCHANT
from payrelay_simulator.switches import Switches
from payrelay_simulator.world import World

CHARGES: Final = 400
"""One every two seconds; the reply to every second one is lost."""
APART_S: Final = 2.0
HANGS_EVERY: Final = 10
"""Of the charges that are lost one in five hangs until the time-out, which keeps its permit for 40 s."""
LATENCY_S: Final = 0.3
LATE_EVERY: Final = 14
"""Of the charges that are lost one in seven is shown only later."""
SHOWN_LATE_S: Final = 20.0
BUDGET: Final = "20/10s"


class LoopClock(Clock):
    """Tells the simulated loop's time."""

    def __init__(self, loop: SimulatedLoop) -> None:
        self._loop = loop

    def now_ms(self) -> int:
        """Gives the gateway's time."""
        return int((STANDING_START.timestamp() + self._loop.time()) * 1000)

    def boot_s(self) -> float:
        """Gives the seconds since the beginning."""
        return self._loop.time()


class LossyWay:
    """The way to a gateway whose every second charge is made and its reply lost: cut, or not heard of any more."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.charges = 0

    @property
    def effects(self) -> "LossyWay":
        """Carries what changes something."""
        return self

    @property
    def reads(self) -> "LossyWay":
        """Carries what changes nothing."""
        return self

    async def close(self) -> None:
        """Does nothing."""

    async def exchange(
        self,
        request: OutgoingRequest,
        headers: CallHeaders,
        *,
        send_by_s: float | None = None,  # noqa: ARG002, there is always time
    ) -> Reply | Loss:
        """Sends one call."""
        await wait_seconds(LATENCY_S)
        call = call_of(request, headers)
        is_charge = call.path.endswith("/charge")
        self.charges += is_charge
        if is_charge and self.charges % LATE_EVERY == 0:
            self.world.faults.add_rules(Rule(fault="late_visibility", args=Arguments(wait_s=SHOWN_LATE_S)))
        outcome = self.world.handle(call)
        self.world.faults.clear()
        if is_charge and self.charges % 2 == 0:
            is_hanging = self.charges % HANGS_EVERY == 0
            await wait_seconds(30.0 - LATENCY_S if is_hanging else LATENCY_S)
            return Loss(is_sent=True, cause=LossCause.TIMEOUT if is_hanging else LossCause.CONNECTION_LOST)
        await wait_seconds(LATENCY_S)
        assert outcome.reply is not None
        return Reply(http_status=outcome.reply.http_status, body=outcome.reply.encoded())


class Pace(msgspec.Struct, kw_only=True):
    """When each outcome was lost, first inquired about and resolved; seconds, by operation."""

    lost_s: dict[str, float] = {}
    inquired_s: dict[str, float] = {}
    proved_s: dict[str, float] = {}
    blocked: int = 0


async def _measure(loop: SimulatedLoop, path: Path, principals: int) -> Pace:
    pace = Pace()
    gateway_clock = GatewayClock(STANDING_START, loop.time)
    world = World((DEFAULT_MERCHANT,), gateway_clock, Switches())
    customer = plant(world, Seed(customers=[CustomerSeed()])).customer_tokens[0]
    way, clock = LossyWay(world), LoopClock(loop)

    def changed(operation: Operation) -> None:
        if operation.state is State.UNKNOWN:
            pace.lost_s.setdefault(operation.id, loop.time())
        elif operation.state is State.SUCCEEDED and operation.id in pace.lost_s:
            pace.proved_s[operation.id] = loop.time() - pace.lost_s[operation.id]

    def reached(crash_point: OperationPoint, operation_id: str) -> None:
        if crash_point is OperationPoint.INQUIRING:
            pace.inquired_s.setdefault(operation_id, loop.time() - pace.lost_s[operation_id])

    async with AsyncExitStack() as stack:
        database = await open_database(f"sqlite:///{path}", clock=clock, owner=True, executor=InlineExecutor())
        stack.push_async_callback(database.close)
        settings = settings_of(path, BUDGET)
        relay = await stack.enter_async_context(
            opened_relay(
                settings,
                await resources_of(settings, database, clock, changes=ANY),
                clock=clock,
                log=structlog.wrap_logger(None, processors=[dropped]),
                hooks=Hooks(operation_changed=changed, reached=reached),
                kinds={PAYHERE: PayHereKind(lambda _: way)},
            )
        )
        await stack.enter_async_context(worker.working(relay, jobs=(worker.Job(1, begin_due),)))
        asking = []
        for number in range(CHARGES):
            call = Charge(
                authorize=False,
                order_id=f"A-{number}",
                items="Tea",
                currency="LKR",
                amount_minor=100_000,
                customer_token=customer,
            )
            asking.append(
                asyncio.ensure_future(
                    charge(relay, asked(relay, f"k-{number}", principal=f"shop-{number % principals}"), call)
                )
            )
            await wait_seconds(APART_S)
        await asyncio.gather(*asking)
        await wait_seconds(150.0)
    pace.blocked = sum(record.is_budget_blocked for record in world.calls.records())
    return pace


@pytest.mark.parametrize("principals", [1, 5])
def test_lost_replies_are_resolved_within_a_minute(
    folder: Path, record_property: Callable[[str, object], None], principals: int
) -> None:
    """With the gateway up: inquired about within 2 s, 95 % resolved within 60 s, never over the budget.

    What the principals keep of the budget for their own calls leaves enough for that, however many they are.
    """
    loop = new_loop(None)
    pace = loop.run(_measure(loop, folder / "payrelay.db", principals))
    resolved = sorted(pace.proved_s.values())
    first = sorted(pace.inquired_s.values())
    for share in (50, 95, 99):
        record_property(f"resolved_{share}_percent_s", round(resolved[len(resolved) * share // 100], 1))
    record_property("first_inquiry_latest_s", round(first[-1], 1))
    assert len(pace.lost_s) == len(resolved) == CHARGES // 2
    assert first[-1] <= 2.0
    assert sum(seconds <= 60 for seconds in resolved) >= 0.95 * len(pace.lost_s)
    assert pace.blocked == 0
