"""A relay over a real SQLite store and a gateway account that does what a script says and keeps a ledger of it."""

import asyncio
import itertools
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Iterator, Sequence
from concurrent.futures import Executor, Future
from dataclasses import replace
from pathlib import Path
from typing import Final, NamedTuple, ParamSpec, TypeVar

import msgspec
import structlog
from tests.databases import sqlite_url
from tests.digests import digests_of
from tests.gateways.still_gateway import StillGateway
from tests.relays import CHAIN_KEY, SEAL, relay_over

from payrelay.clock import Clock
from payrelay.core.access.credential import DEFAULT_SCOPES, Credential
from payrelay.core.answers import Answer, Trace, of_outcome
from payrelay.core.calls import Charge, Effect, PaymentsOfOrder, PaymentsOfSubscription, Read
from payrelay.core.gateways.fair_shares import PAYRELAY, Requester
from payrelay.core.gateways.rate_limit import RateLimit
from payrelay.core.outcomes import CODES_OF_KIND, Evidence, Facts, Outcome, OutcomeKind, Reading
from payrelay.core.payments.operation import (
    EVENT_OF_OUTCOME,
    Event,
    JournalEntry,
    Operation,
    OperationFilter,
    Retention,
    State,
    advance,
)
from payrelay.core.payments.payment import NothingShown, Observation
from payrelay.flows.relay import Request
from payrelay.gateways.gateway import ExpectedReply, Gateway, Sending
from payrelay.gateways.pacing.rate_limiter import Priority, TimerHandle
from payrelay.store import open_database
from payrelay.store.engine.database import Database, Statement
from payrelay.store.payments.journal import STRANDED_MAX, Acceptance, ClaimedOperation, Condition, Journal

START_MS: Final = 1_700_000_000_000
KEYED_MS: Final = 30 * 86_400_000
UNKEYED_MS: Final = 86_400_000
EXECUTED: Final = {OutcomeKind.SUCCEEDED, OutcomeKind.DIFFERED, OutcomeKind.UNKNOWN, OutcomeKind.PENDING}

CHARGE: Final = Charge(
    authorize=False, order_id="A-1", items="Tea", currency="LKR", amount_minor=100_000, customer_token="cust-token"
)
CREDENTIAL: Final = Credential(
    id="000000000001",
    principal="shop",
    key_hash=b"",
    scopes=DEFAULT_SCOPES,
    accounts=None,
    amount_max_minor=None,
    rate=None,
    created_at_ms=0,
    expires_at_ms=None,
    revoked_at_ms=None,
)

P = ParamSpec("P")
R = TypeVar("R")

Fault = Callable[[], Awaitable[None]]


class Crash(BaseException):
    """The end of the process, as far as the code under it can tell."""


class HandClock(Clock):
    """Stands still until it is moved."""

    def __init__(self) -> None:
        self.passed_ms = 0

    def now_ms(self) -> int:
        """Gives the time since START_MS."""
        return START_MS + self.passed_ms

    def boot_s(self) -> float:
        """Gives the seconds since START_MS."""
        return self.passed_ms / 1000


class Bell(NamedTuple):
    """A timer that was set."""

    ring: Callable[[], None]

    def cancel(self) -> None:
        """Does nothing: nobody rings it but a test."""


class HandTimer:
    """Rings when a test says so; tells when somebody has begun to wait."""

    def __init__(self) -> None:
        self.bells: list[Bell] = []
        self.is_set = asyncio.Event()

    def __call__(self, _delay_s: float, ring: Callable[[], None]) -> TimerHandle:
        """Sets it."""
        self.bells.append(Bell(ring))
        self.is_set.set()
        return self.bells[-1]


class Gate:
    """Holds a flow at one step until it is opened."""

    def __init__(self) -> None:
        self.reached = asyncio.Event()
        self.opened = asyncio.Event()

    async def __call__(self) -> None:
        """Waits until it is opened."""
        self.reached.set()
        await self.opened.wait()


class Raising:
    """Raises at one step."""

    def __init__(self, error: BaseException) -> None:
        self.error = error

    async def __call__(self) -> None:
        """Raises."""
        raise self.error


class Steps:
    """The steps of a flow by name, in their order; a fault may be put at the n-th time that one is reached."""

    def __init__(self) -> None:
        self.passed: list[str] = []
        self.faults: dict[tuple[str, int], Fault] = {}
        self.turns: Iterator[int] = itertools.repeat(0)
        """How many turns of the event loop each step takes: what mixes flows that run at once."""

    def put(self, name: str, fault: Fault, *, times: int = 1, first: int = 1) -> None:
        """Puts a fault at a step, from its first-th time on, for so many times."""
        for number in range(first, first + times):
            self.faults[name, number] = fault

    async def reach(self, name: str) -> None:
        """Notes the step; whatever was put there happens."""
        self.passed.append(name)
        for _ in range(next(self.turns, 0)):
            await asyncio.sleep(0)
        fault = self.faults.pop((name, self.passed.count(name)), None)
        if fault is not None:
            await fault()


class SteppingJournal(Journal):
    """The journal, with a step before each call (a fault there: nothing is stored) and one after it (it is)."""

    def __init__(self, database: Database, steps: Steps) -> None:
        super().__init__(database, SEAL, digests_of(database), chain_key=CHAIN_KEY)
        self._steps = steps
        self.is_forgetful = False
        self.stranded_max = STRANDED_MAX

    async def find_claim(self, principal: str, claim: str, *, now_ms: int) -> ClaimedOperation | None:
        """Searches, after a step."""
        await self._steps.reach("find")
        return await super().find_claim(principal, claim, now_ms=now_ms)

    async def accept(
        self,
        operation: Operation,
        entry: JournalEntry,
        call: Effect,
        *,
        conflicts_with: str | None,
        now_ms: int,
        beside: Sequence[Statement] = (),
        condition: Condition | None = None,
    ) -> Acceptance:
        """Stores, between two steps."""
        await self._steps.reach("accept")
        acceptance = await super().accept(
            operation,
            entry,
            call,
            conflicts_with=conflicts_with,
            now_ms=now_ms,
            beside=beside,
            condition=condition,
        )
        await self._steps.reach("accepted")
        return acceptance

    async def get(self, operation_id: str) -> Operation | None:
        """Reads, after a step."""
        await self._steps.reach("get")
        return None if self.is_forgetful else await super().get(operation_id)

    async def stranded(self, *, before_ms: int) -> list[Operation]:
        """Finds, but not more than its own limit."""
        return (await super().stranded(before_ms=before_ms))[: self.stranded_max]

    async def record(
        self, operation: Operation, entry: JournalEntry, answer: Answer | None, *, may_be_paid_again: bool = True
    ) -> Operation:
        """Stores, between two steps."""
        await self._steps.reach("record")
        stored = await super().record(operation, entry, answer, may_be_paid_again=may_be_paid_again)
        await self._steps.reach("recorded")
        return stored


class ScriptedAccount(StillGateway):
    """A gateway account without a gateway behind it. ``ledger`` is what really happened there."""

    def __init__(self, clock: Clock, steps: Steps, journal: Journal, *, limit: RateLimit | None = None) -> None:
        self.timer = HandTimer()
        super().__init__(clock, limit=limit, timer=self.timer)
        self.script: deque[Outcome | Exception] = deque()
        self.readings: deque[Reading] = deque()
        self.observations: deque[Observation] = deque()
        self.ledger: list[Effect] = []
        self.resendings: list[bool] = []
        self.has_dead_token = False
        self.sent: list[Sending] = []
        self.expected: list[ExpectedReply] = []
        self.states_when_sent: list[State] = []
        self._steps = steps
        self._journal = journal

    async def effect(self, call: Effect, expected: ExpectedReply, sending: Sending) -> Outcome:
        """Carries out what the script says, and keeps to what an adapter promises about its permit."""
        self.sent.append(sending)
        self.expected.append(expected)
        try:
            newest = await self._journal.list(OperationFilter(), before=None, limit=1)
        except asyncio.CancelledError:
            sending.permit.release_unused()
            raise
        self.states_when_sent += [operation.state for operation in newest]
        await self._steps.reach("effect")
        if self.has_dead_token:
            self.resendings.append(await sending.journal_resend(NO_TOKEN.evidence))
        outcome = self._next() if all(self.resendings) else NO_TOKEN
        if isinstance(outcome, Exception):
            raise outcome
        if outcome.kind in EXECUTED:
            self.ledger.append(call)
        await self._steps.reach("executed")
        sending.permit.done()
        return outcome

    async def inquire(
        self,
        call: PaymentsOfOrder | PaymentsOfSubscription,  # noqa: ARG002, the interface of a gateway
        *,
        until_s: float,  # noqa: ARG002, the interface of a gateway
        priority: Priority = Priority.RESOLUTION,  # noqa: ARG002, the interface of a gateway
        requester: Requester = PAYRELAY,  # noqa: ARG002, the interface of a gateway
    ) -> Observation:
        """Gives the next of the observations; an empty subscription or order where there is none."""
        await self._steps.reach("observe")
        return self.observations.popleft() if self.observations else NothingShown(evidence=Evidence())

    async def read(
        self,
        call: Read,
        *,
        priority: Priority = Priority.READ,
        until_s: float | None = None,
        requester: Requester = PAYRELAY,
    ) -> Reading:
        """Gives the next of the readings; where there is none, the gateway can't be reached."""
        if self.readings:
            return self.readings.popleft()
        return await super().read(call, priority=priority, until_s=until_s, requester=requester)

    def _next(self) -> Outcome | Exception:
        return self.script.popleft() if self.script else outcome_of(OutcomeKind.SUCCEEDED)


def outcome_of(kind: OutcomeKind, **facts: str | None) -> Outcome:
    """Gives an outcome with the gateway's words where it would have some."""
    code = min(CODES_OF_KIND[kind], key=str)
    is_spoken = kind in {OutcomeKind.SUCCEEDED, OutcomeKind.DECLINED, OutcomeKind.REFUSED}
    return Outcome(
        kind=kind,
        code=code,
        msg=f"it is {kind}",
        raw_msg=b'"gateway says"' if is_spoken else None,
        raw_data=b'{"amount":1000.0}' if is_spoken else None,
        facts=msgspec.convert(facts, Facts),
    )


NO_TOKEN: Final = outcome_of(OutcomeKind.NOT_EXECUTED)


class World:
    """Everything that one test has in its hands."""

    def __init__(self, database: Database, path: Path) -> None:
        self.path = path
        self.database = database
        self.clock = HandClock()
        self.steps = Steps()
        self.numbers = itertools.count(1)
        self.pauses: list[float] = []
        self.log_events: list[str] = []
        self.log_records: list[structlog.typing.EventDict] = []
        self.limit_to(None)

    def limit_to(
        self, limit: RateLimit | None, database: Database | None = None, *, unkeyed_ms: int = UNKEYED_MS
    ) -> None:
        """Begins with a new relay: on another database, with another budget or repeat window."""
        self.database = database or self.database
        self.journal = SteppingJournal(self.database, self.steps)
        self.account = ScriptedAccount(self.clock, self.steps, self.journal, limit=limit)
        self.accounts: dict[str, Gateway] = {"gateway": self.account}
        log = structlog.wrap_logger(
            None, processors=[self._note], wrapper_class=structlog.make_filtering_bound_logger(logging.NOTSET)
        )
        relay = relay_over(
            self.database,
            self.accounts,
            clock=self.clock,
            log=log,
            retention=Retention(keyed_ms=KEYED_MS, unkeyed_ms=unkeyed_ms),
            ids=self._new_id,
        )
        self.relay = replace(relay, journal=self.journal, pause=self._pause)

    @property
    def states_when_sent(self) -> list[State]:
        """The states of the rows at the moments when something was sent."""
        return self.account.states_when_sent

    async def reopen(self) -> None:
        """Dies and starts again: what is not on disk is gone."""
        await self.relay.background.finish(0)
        await self.database.close()
        self.steps = Steps()
        gateway = self.account
        self.limit_to(None, await opened(self.path))
        self.account.ledger = gateway.ledger
        self.account.states_when_sent = gateway.states_when_sent

    async def operations(self) -> list[Operation]:
        """Gives all operations, newest first."""
        return await self.journal.list(OperationFilter(), before=None, limit=100)

    async def operation(self) -> Operation:
        """Gives the newest operation."""
        return (await self.operations())[0]

    async def states(self) -> list[State]:
        """Gives the states that the newest operation has been in."""
        return [entry.state for entry in await self.journal.history((await self.operation()).id)]

    @staticmethod
    def charge_of(number: int) -> Charge:
        """Gives a charge of another order."""
        return msgspec.structs.replace(CHARGE, order_id=f"A-{number}")

    async def resolve(self, kind: OutcomeKind, row: Operation | None = None, **members: object) -> None:
        """Resolves an operation, as another process or an operator would: the newest, unless one is given.

        ``members`` are what becomes known of it.
        """
        row = row or await self.operation()
        event = EVENT_OF_OUTCOME[kind]
        resolved, entry = advance(
            row,
            event,
            at_ms=self.clock.now_ms(),
            retention=self.relay.settings.retention,
            evidence=Evidence(cause="resolved"),
        )
        answer = of_outcome(outcome_of(kind), Trace(request_id="req_9", operation_id=row.id))
        await self.journal.record(msgspec.structs.replace(resolved, **members), entry, answer)

    async def journal_resending(self) -> None:
        """Journals that the newest operation is about to be resent, as the resolution does."""
        resending, entry = advance(
            await self.operation(),
            Event.RESENT_TO_RESOLVE,
            at_ms=self.clock.now_ms(),
            retention=self.relay.settings.retention,
            evidence=Evidence(),
        )
        await self.journal.record(resending, entry, None)

    async def forget(self) -> None:
        """Loses every row, as far as the journal tells."""
        self.journal.is_forgetful = True

    def _new_id(self, prefix: str, now_ms: int) -> str:
        return f"{prefix}_{now_ms:012x}{next(self.numbers):020}"

    async def _pause(self, seconds: float) -> None:
        self.pauses.append(seconds)

    def _note(self, _logger: object, _method: str, event: structlog.typing.EventDict) -> structlog.typing.EventDict:
        self.log_events.append(event["event"])
        self.log_records.append(event)
        raise structlog.DropEvent


class Inline(Executor):
    """Runs everything at once, so that a plan always runs in one order."""

    def submit(self, fn: Callable[P, R], /, *args: P.args, **kwargs: P.kwargs) -> "Future[R]":
        """Runs it."""
        future: Future[R] = Future()
        future.set_result(fn(*args, **kwargs))
        return future


async def opened(path: Path, executor: Executor | None = None) -> Database:
    """Opens the store as the server does."""
    return await open_database(sqlite_url(path), clock=Clock(), owner=True, executor=executor)


def asked(key: str | None = "k-1", **members: object) -> Request:
    """Gives a request of the shop's, with what is named of its credential."""
    credential = msgspec.structs.replace(CREDENTIAL, **members)
    return Request(account="gateway", credential=credential, request_id="req_1", idempotency_key=key)
