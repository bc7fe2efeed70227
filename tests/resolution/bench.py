"""Runs an entry of the table: the real program over the simulated gateway, on one clock."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from decimal import Decimal
from pathlib import Path
from typing import Any, Final, Self
from urllib.parse import urlencode, urlsplit

import structlog
from tests.flows.world import asked
from tests.resolution.table import Fault
from tests.simulation.network import NOTHING_FOUND

from payrelay.app import opened_relay, resources_of
from payrelay.clock import Clock
from payrelay.core.answers import Answer
from payrelay.core.calls import CancelSubscription, Capture, Charge, Refund, RetrySubscription, Void
from payrelay.core.database.schema_changes import ANY
from payrelay.core.payments.operation import JournalEntry, Operation, OperationFilter, State
from payrelay.core.seal_keys import key_text
from payrelay.core.secret import Secret
from payrelay.flows.payments.capture import capture
from payrelay.flows.payments.charge import charge
from payrelay.flows.payments.recover_after_crash import recover
from payrelay.flows.payments.refund import refund
from payrelay.flows.relay import Relay
from payrelay.flows.resolution.resolve import resolve_due
from payrelay.flows.subscriptions.cancel_subscription import cancel_subscription
from payrelay.flows.subscriptions.retry_subscription import retry_subscription
from payrelay.gateways.http.exchange import CallHeaders, Loss, LossCause, OutgoingRequest, Reply
from payrelay.gateways.payhere.account import KIND as PAYHERE
from payrelay.gateways.payhere.kind import PayHereKind
from payrelay.runtime.hooks import Hooks
from payrelay.settings import Settings, gateway_settings
from payrelay.store import open_database
from payrelay.store.engine.sqlite import InlineExecutor
from payrelay_simulator.clock import STANDING_START
from payrelay_simulator.clock import Clock as GatewayClock
from payrelay_simulator.faults import Arguments, Match, Rule
from payrelay_simulator.installments import Course, receive_installment
from payrelay_simulator.routes import Route, find
from payrelay_simulator.seeding import CustomerSeed, PaymentSeed, Seed, SubscriptionSeed, plant
from payrelay_simulator.simulator import DEFAULT_MERCHANT
from payrelay_simulator.switches import Switches
from payrelay_simulator.world import Call, Outcome, World

TIMEOUT_S: Final = 30.0
ORDER: Final = "A-1"
ITEMS: Final = "Tea"
AMOUNT_MINOR: Final = 100_000
AMOUNT: Final = Decimal("1000.00")
RESOLVED_WITHIN_S: Final = 12 * 86_400
"""How long each entry is run: until after the longest time for which the gateway hides a payment."""
ENDPOINTS: Final = {
    "charge": "charge",
    "authorization": "charge",
    "capture": "capture",
    "refund_whole": "refund",
    "refund_part": "refund",
    "void": "refund",
    "retry": "retry",
    "cancel": "cancel",
}
KINDS: Final = {
    "charge": "charge",
    "authorization": "authorization",
    "capture": "capture",
    "refund_whole": "refund",
    "refund_part": "refund",
    "void": "release",
    "retry": "retry",
    "cancel": "cancel",
}
"""What each operation is called in the gateway's ledger."""
SEARCHES: Final = frozenset({"search", "subscription_payments"})
LOSSES: Final = {"cut": LossCause.CONNECTION_LOST, "half": LossCause.HALF_REPLY, "hang": LossCause.TIMEOUT}

Flow = Callable[[Relay], Awaitable[Answer]]


class HandClock(Clock):
    """Stands still until it is moved, and moves the gateway's clock with it."""

    def __init__(self) -> None:
        self.gateway = GatewayClock.standing()
        self.passed_s = 0.0

    def now_ms(self) -> int:
        """Gives the gateway's time."""
        return int(STANDING_START.timestamp() * 1000) + round(self.passed_s * 1000)

    def boot_s(self) -> float:
        """Gives the seconds since the beginning."""
        return self.passed_s

    def pass_s(self, seconds: float) -> None:
        """Lets time pass."""
        if seconds > 0:
            self.passed_s += seconds
            self.gateway.advance(seconds)


class Way:
    """The way to the simulated gateway; the struck call meets its fault there, every other one is answered."""

    def __init__(self, world: World, clock: HandClock) -> None:
        self.world = world
        self.clock = clock
        self.struck: tuple[str, Fault] | None = None
        self.struck_times = 0
        self.is_search_blind = False
        self.sent: list[str] = []
        """The endpoints of the calls that were written, in their order."""
        self.after: Callable[[], None] = lambda: None
        self.down_until_s = 0.0
        self.is_killed = asyncio.Event()
        self._hidden: tuple[str, float, Outcome] | None = None

    @property
    def effects(self) -> "Way":
        """Carries what changes something."""
        return self

    @property
    def reads(self) -> "Way":
        """Carries what changes nothing."""
        return self

    async def close(self) -> None:
        """Does nothing."""

    async def exchange(
        self,
        request: OutgoingRequest,
        headers: CallHeaders,
        *,
        send_by_s: float | None = None,  # noqa: ARG002, it is sent at once
    ) -> Reply | Loss:
        """Sends one call."""
        if self.clock.passed_s < self.down_until_s:
            return Loss(is_sent=False, cause=LossCause.NO_CONNECTION)
        call = call_of(request, headers)
        if self._hidden is not None and call.path + call.query == self._hidden[0]:
            _, until_s, before = self._hidden
            if self.clock.passed_s < until_s:
                return self._answer(before)
        route = find(call.method, call.path)
        if isinstance(route, Route):
            self.sent.append(route.endpoint)
        if self.is_search_blind and isinstance(route, Route) and route.endpoint in SEARCHES:
            return NOTHING_FOUND
        if self.struck is None or not isinstance(route, Route) or route.endpoint != self.struck[0]:
            return self._answer(self.world.handle(call))
        return await self._strike(call, *self.struck)

    async def _strike(self, call: Call, endpoint: str, fault: Fault) -> Reply | Loss:
        self.struck_times += 1
        if self.struck_times == fault.times:
            self.struck = None
        self.is_search_blind = fault.is_search_blind
        outcome = None if fault.killed == "before" else self._meet(call, endpoint, fault)
        self.after()
        if fault.killed is not None or outcome is None:
            self.is_killed.set()
            return await asyncio.get_running_loop().create_future()  # type: ignore[no-any-return]
        if fault.is_lost:
            self.down_until_s = self.clock.passed_s + fault.down_s
            return Loss(is_sent=True, cause=LossCause.CONNECTION_LOST)
        return self._answer(outcome)

    def _meet(self, call: Call, endpoint: str, fault: Fault) -> Outcome:
        name, arguments = fault.struck, fault.arguments
        if fault.hidden_s is not None and endpoint == "refund":
            self._hide(call, fault.hidden_s)
        elif fault.hidden_s is not None and endpoint != "cancel":
            name, arguments = "late_visibility", Arguments(wait_s=fault.hidden_s)
        if name is not None:
            self.world.faults.add_rules(Rule(fault=name, match=Match(), args=arguments))
        outcome = self.world.handle(call)
        self.world.faults.clear()
        return outcome

    def _hide(self, call: Call, seconds: float) -> None:
        """Keeps the order's record as it stands now before everybody's eyes: a refund that shows itself late."""
        search = Call(
            method="GET",
            path="/merchant/v1/payment/search",
            query=urlencode({"order_id": ORDER}),
            authorization=call.authorization,
        )
        self._hidden = (search.path + search.query, self.clock.passed_s + seconds, self.world.handle(search))

    def _answer(self, outcome: Outcome) -> Reply | Loss:
        if outcome.how == "refuse":
            return Loss(is_sent=False, cause=LossCause.NO_CONNECTION)
        if outcome.how == "hang":
            self.clock.pass_s(TIMEOUT_S)
        if outcome.how in LOSSES or outcome.reply is None:
            return Loss(is_sent=True, cause=LOSSES.get(outcome.how, LossCause.CONNECTION_LOST))
        return Reply(http_status=outcome.reply.http_status, body=outcome.reply.encoded())


class Bench:
    """One entry of the table: a gateway, our program before it, and what they came to."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.clock = HandClock()
        switches = Switches(rate_limit_calls=0, installments="calendar")
        self.world = World((DEFAULT_MERCHANT,), self.clock.gateway, switches)
        self.way = Way(self.world, self.clock)
        self.customer = plant(self.world, Seed(customers=[CustomerSeed()])).customer_tokens[0]
        self.relay: Relay
        self.changes: list[tuple[float, State]] = []
        self._stack = AsyncExitStack()

    async def __aenter__(self) -> Self:
        await self._start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._stop()

    async def _start(self) -> None:
        database = await open_database(
            f"sqlite:///{self.path}", clock=self.clock, owner=True, executor=InlineExecutor()
        )
        self._stack.push_async_callback(database.close)
        settings = settings_of(self.path)
        self.relay = await self._stack.enter_async_context(
            opened_relay(
                settings,
                await resources_of(settings, database, self.clock, changes=ANY),
                clock=self.clock,
                log=structlog.wrap_logger(None, processors=[dropped]),
                hooks=Hooks(operation_changed=self._changed),
                kinds={PAYHERE: PayHereKind(lambda _: self.way)},
            )
        )

    async def _stop(self) -> None:
        await self.relay.background.finish(0)
        await self._stack.aclose()
        self._stack = AsyncExitStack()

    def _changed(self, operation: Operation) -> None:
        if not self.changes or self.changes[-1][1] is not operation.state:
            self.changes.append((self.clock.passed_s, operation.state))

    async def prepare(self, operation: str, fault: Fault) -> Flow:
        """Makes what the operation acts on, and gives its flow."""
        if fault.is_control_known:
            await charge(self.relay, asked(self.relay, "control"), self._charge("PAID-1"))
            self.clock.pass_s(3_600)
        if fault.older:
            plant(self.world, Seed(payments=[PaymentSeed(order_id=ORDER, amount=AMOUNT, description=ITEMS)]))
            self.clock.pass_s(86_400)
        flow = await PREPARED[operation](self)
        self.clock.pass_s(60)
        if fault.twin:
            self.way.after = self._pay_the_same
        return flow

    async def live(self, operation: str, fault: Fault, flow: Flow) -> Answer | None:
        """Carries out the operation under the fault; gives the first answer, or None where there was none."""
        self.began_s = self.clock.passed_s
        self.entries_before = len(self.world.ledger)
        self.changes.clear()
        self.way.sent.clear()
        self.way.struck = (ENDPOINTS[operation], fault)
        if fault.killed is None:
            return await flow(self.relay)
        work = asyncio.ensure_future(flow(self.relay))
        await self.way.is_killed.wait()
        work.cancel()
        await asyncio.gather(work, return_exceptions=True)
        await self._stop()
        await self._start()
        await recover(self.relay, is_sole_owner=True)
        return None

    async def resolve(self) -> None:
        """Makes each inquiry when it is due, until none is, or for RESOLVED_WITHIN_S."""
        until_ms = self.clock.now_ms() + RESOLVED_WITHIN_S * 1000
        while (due_ms := await self.relay.resolution.next_due_ms()) is not None and due_ms <= until_ms:
            self.clock.pass_s((due_ms - self.clock.now_ms()) / 1000)
            await resolve_due(self.relay)
        self.clock.pass_s((until_ms - self.clock.now_ms()) / 1000)

    async def newest(self) -> Operation:
        """Gives the operation."""
        return (await self.relay.journal.list(OperationFilter(), before=None, limit=1))[0]

    async def history(self) -> list[JournalEntry]:
        """Gives its history."""
        return await self.relay.journal.history((await self.newest()).id)

    def ended_s(self) -> float:
        """Gives when it came to its present state, in seconds after its sending."""
        return self.changes[-1][0] - self.began_s

    def effects(self, operation: str) -> int:
        """Counts how often the gateway carried it out for Payrelay, and asserts that it did nothing else."""
        entries = self.world.ledger.entries(after=self.entries_before)
        kinds = [entry.kind for entry in entries if entry.arrival is not None]
        assert set(kinds) <= {KINDS[operation]}
        return len(kinds)

    def sendings(self) -> list[str]:
        """Gives the effects that were sent since the operation was begun."""
        return [endpoint for endpoint in self.way.sent if endpoint in ENDPOINTS.values()]

    def _pay_the_same(self) -> None:
        """Somebody else pays the same at the same time."""
        for subscription in list(self.world.state.subscriptions.values()):
            course = Course(state=self.world.state, ledger=self.world.ledger, switches=self.world.switches)
            paid = receive_installment(course, subscription, "installment", self.world.clock.now(), arrival=None)
            self.world.state.subscriptions[paid.subscription_id] = paid
            return
        plant(self.world, Seed(payments=[PaymentSeed(order_id=ORDER, amount=AMOUNT, description=ITEMS)]))

    def _charge(self, order_id: str, *, authorize: bool = False) -> Charge:
        return Charge(
            authorize=authorize,
            order_id=order_id,
            items=ITEMS,
            currency="LKR",
            amount_minor=AMOUNT_MINOR,
            customer_token=self.customer,
            custom_1="first",
        )

    async def of_charge(self) -> Flow:
        """Charges a card."""
        return lambda relay: charge(relay, asked(relay), self._charge(ORDER))

    async def of_authorization(self) -> Flow:
        """Authorizes an amount."""
        return lambda relay: charge(relay, asked(relay), self._charge(ORDER, authorize=True))

    async def of_capture(self) -> Flow:
        """Captures an authorization."""
        call = Capture(authorization_token=await self._authorized(), amount_minor=AMOUNT_MINOR, description="all of it")
        return lambda relay: capture(relay, asked(relay), call)

    async def of_void(self) -> Flow:
        """Voids an authorization."""
        call = Void(authorization_token=await self._authorized(), description="changed my mind")
        return lambda relay: refund(relay, asked(relay), call)

    async def of_refund_whole(self) -> Flow:
        """Refunds a payment in whole."""
        call = Refund(payment_id=await self._paid(), description="returned")
        return lambda relay: refund(relay, asked(relay), call)

    async def of_refund_part(self) -> Flow:
        """Refunds a part of a payment."""
        call = Refund(payment_id=await self._paid(), description="one was broken", amount_minor=10_000)
        return lambda relay: refund(relay, asked(relay), call)

    async def of_retry(self) -> Flow:
        """Charges an installment that failed."""
        call = RetrySubscription(subscription_id=self._subscription("FAILED"))
        return lambda relay: retry_subscription(relay, asked(relay), call)

    async def of_cancel(self) -> Flow:
        """Ends a subscription."""
        call = CancelSubscription(subscription_id=self._subscription("ACTIVE"))
        return lambda relay: cancel_subscription(relay, asked(relay), call)

    async def _authorized(self) -> str:
        answer = await charge(self.relay, asked(self.relay, "authorization"), self._charge(ORDER, authorize=True))
        return str(data_of(answer)["authorization_token"])

    async def _paid(self) -> str:
        answer = await charge(self.relay, asked(self.relay, "paid"), self._charge(ORDER))
        return str(data_of(answer)["payment_id"])

    def _subscription(self, status: Any) -> int:  # noqa: ANN401, one of the simulator's words
        row = SubscriptionSeed(order_id="S-1", customer_token=self.customer, amount=AMOUNT, status=status)
        return plant(self.world, Seed(subscriptions=[row])).subscription_ids[0]


PREPARED: Final[dict[str, Callable[[Bench], Awaitable[Flow]]]] = {
    "charge": Bench.of_charge,
    "authorization": Bench.of_authorization,
    "capture": Bench.of_capture,
    "refund_whole": Bench.of_refund_whole,
    "refund_part": Bench.of_refund_part,
    "void": Bench.of_void,
    "retry": Bench.of_retry,
    "cancel": Bench.of_cancel,
}


def data_of(answer: Answer) -> Any:  # noqa: ANN401, a JSON value
    """Gives the data of an answer."""
    return json.loads(answer.body)["data"]


def dropped(*_: object) -> structlog.typing.EventDict:
    """Throws a line of the log away."""
    raise structlog.DropEvent


def settings_of(path: Path, rate_limit: str = "off") -> Settings:
    """Gives the program's settings."""
    gateway = gateway_settings(
        {
            "base_url": "https://gateway.simulated",
            "app_id": DEFAULT_MERCHANT.app_id,
            "app_secret": DEFAULT_MERCHANT.app_secret,
            "merchant_id": DEFAULT_MERCHANT.merchant_id,
            "rate_limit": rate_limit,
            "timeout_s": TIMEOUT_S,
        }
    )
    return Settings(
        database_url=Secret(f"sqlite:///{path}"),
        encryption_key=Secret(key_text(b"k" * 32)),
        gateways={"gateway": gateway},
    )


def call_of(request: OutgoingRequest, headers: CallHeaders) -> Call:
    """Gives a request as it comes to the gateway."""
    parts = urlsplit(request.path)
    return Call(
        method=request.method,
        path=parts.path,
        query=parts.query,
        authorization=headers.authorization,
        content_type=headers.content_type,
        body=request.body or b"",
    )
