"""The way to the simulated gateway: it takes time, loses things on the way there and back, and knows who sent what."""

import asyncio
from collections import defaultdict
from contextvars import ContextVar
from dataclasses import dataclass
from random import Random
from typing import Final, Protocol
from urllib.parse import urlsplit

import msgspec
from tests.simulation.fate import Fate
from tests.simulation.loop import OUTSIDE, Crash, Owner, SimulatedLoop, wait_seconds
from tests.simulation.losses import SHOWN_WITHIN_S

from payrelay.clock import Clock
from payrelay.gateways.http.exchange import CallHeaders, Loss, LossCause, OutgoingRequest, Reply
from payrelay.gateways.payhere.connections import EFFECT_REPLY_BYTES_MAX
from payrelay_simulator.faults import KINDS, RECEIPTS, Arguments, Rule
from payrelay_simulator.ledger import LedgerEntry
from payrelay_simulator.records import Payment
from payrelay_simulator.routes import Route, find
from payrelay_simulator.world import Call, Outcome, World

OPERATION: Final[ContextVar[str | None]] = ContextVar("operation", default=None)
"""Which operation is being carried out; set where the relay announces its stages."""

REQUEST: Final[ContextVar[str | None]] = ContextVar("request", default=None)
"""Which request is being answered, by its id; None for what a worker does by itself."""

NETWORK_FAULTS: Final = ("refuse", "connect_hang", "lost_there", "silent_there", "lost_back", "silent_back", "slow")
HIDING: Final = ("late_visibility",) * 8 + ("pending",) * 3
"""Of the faults that befall what takes money, a good part: they are what proofs have to wait for."""
LIES: Final = frozenset({"other_amount", "other_order", "other_currency"})
"""Faults with which a payment is shown as one that nobody made."""
EFFECTS: Final = frozenset({"charge", "capture", "refund", "retry", "cancel"})
DAY_S: Final = 86_400.0
LATE_S: Final = (5.0, 60.0, 900.0, 900.0, 3 * DAY_S, 3 * DAY_S, 10 * DAY_S)
"""How late a payment shows itself; the last is later than any proof can wait."""
NOTHING_FOUND: Final = Reply(http_status=200, body=b'{"status":-1,"msg":"No payments found","data":null}')
CONNECT_S: Final = 5.0
MASKED_SHARE: Final = 0.6
"""Of the payments that show themselves late, those whose answer is lost too: the ones that hurt."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Arrival:
    """One effect's call, as it came to the gateway.

    Attributes:
        operation_id: which operation it was sent for.
        endpoint: what it asks for.
        at_s: when.
        fault: what befell it.
        entries: what it really did to the money.
        visible_at_s: when what it did can be found.
        is_answered: whether a whole answer was given.
    """

    operation_id: str | None
    endpoint: str
    at_s: float
    fault: str | None
    entries: tuple[LedgerEntry, ...]
    visible_at_s: float
    is_answered: bool


class Witness(Protocol):
    """Whoever is told of what happens on the way."""

    def sending(self, operation_id: str | None, endpoint: str) -> None:
        """An effect is about to be written."""
        ...

    def fault_share(self) -> float:
        """The share of calls that meet a fault at this moment."""
        ...

    def note(self, *words: object) -> None:
        """Something happened."""
        ...

    def tell(self) -> None:
        """The gateway may have something to tell."""
        ...


class Gateway:
    """The gateway's end: the simulator's world, and what befalls calls there and on the way."""

    def __init__(self, world: World, loop: SimulatedLoop, random: Random, fate: Fate, witness: Witness) -> None:
        self.world = world
        self.loop = loop
        self.random = random
        self.witness = witness
        self.latency_s = fate.latency_s
        self.fate = fate
        self.arrivals: list[Arrival] = []
        self.lied_at_s: list[float] = []
        self.searched_at_s: dict[str, list[float]] = defaultdict(list)
        """When searches arrived whose whole and true answers have payments, by the texts of their queries."""
        self.lagging: dict[int, tuple[Payment, float, float]] = {}
        """Payments as a copy shows them: as they were, until when, and of what share of the searches."""
        self.shown_late: set[str] = set()
        """The payments that such a copy has shown."""
        self._copies = fate.chance("copies")
        self.inquiry_numbers: set[int] = set()
        """The calls that were made for an operation, by their numbers in the gateway's log."""
        self.requests: dict[int, str] = {}
        """The requests for whose answers calls were made, by the calls' numbers in the gateway's log."""
        self.faults: dict[str, int] = {}

    def delay_s(self) -> float:
        """Draws how long a way takes."""
        return self.random.uniform(0.2, 1.8) * self.latency_s / 2

    def draw_fault(self, endpoint: str) -> tuple[str, Arguments] | None:
        """Draws what befalls a call, if anything does."""
        if self.random.random() >= self.witness.fault_share():
            return None
        if self.fate.spares_reads and endpoint not in EFFECTS:
            return None
        fitting = [name for name, kind in KINDS.items() if not kind.endpoints or endpoint in kind.endpoints]
        hiding = HIDING if endpoint in RECEIPTS else ()
        name = self.random.choice([*NETWORK_FAULTS, *NETWORK_FAULTS, *hiding, *fitting])
        self.faults[name] = self.faults.get(name, 0) + 1
        return name, self._arguments(name)

    def _arguments(self, name: str) -> Arguments:
        if name == "late_visibility":
            return Arguments(wait_s=self.random.choice(LATE_S))
        if name == "pending":
            return Arguments(wait_s=self.random.choice(LATE_S), settles=self.random.random() < 0.6)
        if name == "drip":
            return Arguments(pause_s=self.random.choice((0.001, 1.0)))
        if name == "enormous_body":
            return Arguments(bytes=EFFECT_REPLY_BYTES_MAX)
        if name in {"hang_before", "hang_after"}:
            return Arguments(wait_s=self.random.choice((None, 3.0, 29.0, 45.0)))
        if name == "other_amount":
            return Arguments(amount=self.random.choice((1.0, 100.5)))
        return Arguments()

    def arrive(self, sent: "Sent") -> None:
        """Lets a call arrive, and its answer set out."""
        route = find(sent.call.method, sent.call.path)
        endpoint = route.endpoint if isinstance(route, Route) else "none"
        fault, args = self._hidden(endpoint, sent.fault) or (None, Arguments())
        if fault is not None and fault in KINDS:
            self.world.faults.add_rules(Rule(fault=fault, args=args))
        outcome = self._handled(sent.call, endpoint)
        if sent.operation_id is not None:
            self.inquiry_numbers.add(self.world.calls.arrived)
        if sent.request_id is not None:
            self.requests[self.world.calls.arrived] = sent.request_id
        self.world.faults.clear()
        self.witness.tell()
        reply, delay_s = self._answer(outcome, fault)
        if endpoint == "search" and self.fate.blind_s[0] <= self.loop.time() < self.fate.blind_s[1]:
            reply = NOTHING_FOUND if isinstance(reply, Reply) and reply.http_status == 200 else reply
        if fault in LIES and isinstance(reply, Reply):
            self.lied_at_s.append(self.loop.time())
        if endpoint == "search" and fault is None and isinstance(reply, Reply) and _has_found(reply):
            self.searched_at_s[sent.call.query].append(self.loop.time())
        is_late = fault in {"late_visibility", "pending"}
        if is_late and fault == "late_visibility" and self.random.random() < MASKED_SHARE:
            reply = Loss(is_sent=True, cause=LossCause.CONNECTION_LOST)
        self.witness.note("arrive", endpoint, sent.operation_id, fault, len(outcome.entries), _shown(reply))
        if endpoint in EFFECTS:
            late_s = (args.wait_s or 60.0) if is_late else 0.0
            self.arrivals.append(
                Arrival(
                    operation_id=sent.operation_id,
                    endpoint=endpoint,
                    at_s=self.loop.time(),
                    fault=fault,
                    entries=outcome.entries,
                    visible_at_s=self.loop.time() + late_s,
                    is_answered=isinstance(reply, Reply),
                )
            )
        if reply is not None:
            self.loop.call_later(delay_s, _settle, sent.answer, reply)

    def _handled(self, call: Call, endpoint: str) -> Outcome:
        """Lets the gateway answer a call, a search also from a copy of its records that lags behind."""
        payments, now_s = self.world.state.payments, self.loop.time()
        lagging = self.lagging if endpoint == "search" else {}
        stale = {key: each for key, (each, until_s, share) in lagging.items() if now_s < until_s and self._is_of(share)}
        self.shown_late |= {str(payment_id) for payment_id in stale}
        newest = {payment_id: payments[payment_id] for payment_id in stale}
        payments.update(stale)
        outcome = self.world.handle(call)
        payments.update(newest)
        return outcome

    def _is_of(self, share: float) -> bool:
        return self._copies.random() < share

    def _hidden(self, endpoint: str, drawn: tuple[str, Arguments] | None) -> tuple[str, Arguments] | None:
        """Gives what befalls a call where commits get lost: then nothing is hidden for longer than the lag allows."""
        loss, now_s = self.fate.loss, self.loop.time()
        if loss is None or endpoint not in RECEIPTS or not loss.is_lost_at(now_s):
            return drawn
        if drawn is None:
            return ("late_visibility", Arguments(wait_s=loss.hides_s)) if loss.hides_s else None
        name, args = drawn
        wait_s = min(args.wait_s or 60.0, SHOWN_WITHIN_S)
        return (name, msgspec.structs.replace(args, wait_s=wait_s)) if name in {"late_visibility", "pending"} else drawn

    def _answer(self, outcome: Outcome, fault: str | None) -> tuple[Reply | Loss | None, float]:
        """Gives what comes back of an outcome, and after how long; None for nothing."""
        delay_s = self.delay_s()
        lost = Loss(is_sent=True, cause=LossCause.CONNECTION_LOST)
        if fault == "silent_back":
            return None, 0.0
        if fault == "lost_back" or outcome.how in {"cut", "refuse"} or outcome.reply is None:
            return (None, 0.0) if outcome.how == "hang" and outcome.args.wait_s is None else (lost, delay_s)
        reply = Reply(http_status=outcome.reply.http_status, body=outcome.reply.encoded())
        if outcome.how == "half":
            return Loss(is_sent=True, cause=LossCause.HALF_REPLY), delay_s
        if outcome.how == "hang":
            return (None, 0.0) if outcome.args.wait_s is None else (reply, outcome.args.wait_s)
        if outcome.how == "drip":
            return reply, delay_s + outcome.args.pause_s * len(reply.body)
        if len(reply.body) > EFFECT_REPLY_BYTES_MAX:
            return Loss(is_sent=True, cause=LossCause.TOO_LARGE), delay_s
        return reply, delay_s


@dataclass(frozen=True, kw_only=True, slots=True)
class Sent:
    """A call on its way; what was written goes on, whatever becomes of its sender."""

    call: Call
    operation_id: str | None
    request_id: str | None
    fault: tuple[str, Arguments] | None
    answer: "asyncio.Future[Reply | Loss]"


def _settle(answer: "asyncio.Future[Reply | Loss]", reply: Reply | Loss) -> None:
    if not answer.done():
        answer.set_result(reply)


def _has_found(reply: Reply) -> bool:
    body: object = msgspec.json.decode(reply.body)
    return reply.http_status == 200 and isinstance(body, dict) and body.get("status") == 1


def _shown(reply: Reply | Loss | None) -> str:
    if reply is None:
        return "silence"
    return str(reply.http_status) if isinstance(reply, Reply) else reply.cause


class SimulatedNetwork:
    """One process's way to the gateway; both lanes are the same."""

    def __init__(self, gateway: Gateway, owner: Owner, clock: Clock, timeout_s: float) -> None:
        self._gateway = gateway
        self._owner = owner
        self._clock = clock
        self._timeout_s = timeout_s
        self._is_closed = False

    @property
    def effects(self) -> "SimulatedNetwork":
        """Carries what changes something."""
        return self

    @property
    def reads(self) -> "SimulatedNetwork":
        """Carries what changes nothing."""
        return self

    async def close(self) -> None:
        """Sends nothing from now on."""
        self._is_closed = True

    async def exchange(
        self, request: OutgoingRequest, headers: CallHeaders, *, send_by_s: float | None = None
    ) -> Reply | Loss:
        """Sends one call; what has been written arrives, whatever becomes of us."""
        self._owner.reach("before_send")
        if self._is_closed:
            return Loss(is_sent=False, cause=LossCause.CLOSED)
        until_s = self._clock.boot_s() + self._timeout_s
        endpoint = _endpoint(request)
        fault = self._gateway.draw_fault(endpoint)
        name = None if fault is None else fault[0]
        await wait_seconds(CONNECT_S if name == "connect_hang" else self._gateway.delay_s())
        if name == "connect_hang":
            return Loss(is_sent=False, cause=LossCause.CONNECT_TIMEOUT)
        if name == "refuse":
            return Loss(is_sent=False, cause=LossCause.NO_CONNECTION)
        if send_by_s is not None and self._clock.boot_s() > send_by_s:
            return Loss(is_sent=False, cause=LossCause.TOO_LATE)
        if self._owner.is_dead:
            raise Crash
        if endpoint in EFFECTS:
            self._gateway.witness.sending(OPERATION.get(), endpoint)
        answer = self._write(request, headers, fault)
        self._owner.reach("after_send")
        return await self._wait(answer, until_s)

    def _write(
        self, request: OutgoingRequest, headers: CallHeaders, fault: tuple[str, Arguments] | None
    ) -> "asyncio.Future[Reply | Loss]":
        loop, name = self._gateway.loop, None if fault is None else fault[0]
        answer: asyncio.Future[Reply | Loss] = loop.create_future()
        outside = OUTSIDE.context()
        delay_s = self._gateway.random.uniform(5, 29) if name == "slow" else self._gateway.delay_s()
        if name == "lost_there":
            loop.call_later(
                delay_s, _settle, answer, Loss(is_sent=True, cause=LossCause.CONNECTION_LOST), context=outside
            )
        elif name != "silent_there":
            sent = Sent(
                call=_call(request, headers),
                operation_id=OPERATION.get(),
                request_id=REQUEST.get(),
                fault=fault,
                answer=answer,
            )
            loop.call_later(delay_s, self._gateway.arrive, sent, context=outside)
        return answer

    async def _wait(self, answer: "asyncio.Future[Reply | Loss]", until_s: float) -> Reply | Loss:
        await asyncio.wait({answer}, timeout=max(0.0, until_s - self._clock.boot_s()))
        return answer.result() if answer.done() else Loss(is_sent=True, cause=LossCause.TIMEOUT)


def _endpoint(request: OutgoingRequest) -> str:
    route = find(request.method, urlsplit(request.path).path)
    return route.endpoint if isinstance(route, Route) else "none"


def _call(request: OutgoingRequest, headers: CallHeaders) -> Call:
    path, _, query = request.path.partition("?")
    return Call(
        method=request.method,
        path=path,
        query=query,
        authorization=headers.authorization,
        content_type=headers.content_type,
        body=request.body or b"",
    )
