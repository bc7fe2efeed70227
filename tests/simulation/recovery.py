"""The books go back in time: a copy takes the database's place, an operator recovers, and clients repeat it all.

The operator knows what a person knows who looks at the gateway's portal: what really happened to the money.
"""

import asyncio
import sqlite3
from collections.abc import Awaitable, Callable
from dataclasses import replace
from functools import partial
from random import Random
from typing import Any, Final, Protocol, TypeVar

import msgspec
from tests.simulation.clients import Ask, Client, Told, Town
from tests.simulation.hostility import PHONE_ORDERS, RIVAL
from tests.simulation.loop import Crash, wait_seconds
from tests.simulation.losses import LAG_S, REDONE_AFTER_S, Loss, LossFate, LostOperation
from tests.simulation.network import Gateway
from tests.simulation.outside import Outside
from tests.simulation.process import MERCHANT, SEAL, START_MS, TIMEOUT_S, Process

from payrelay.clock import Clock
from payrelay.core.operators.held_decisions import HeldDecision
from payrelay.core.payments.operation import PAYMENT_KINDS, SEND_WITHIN_S, Operation
from payrelay.errors import Outdated, Refusal, StoreError, UndecidedError
from payrelay.flows.access.issue_key import revoke_key
from payrelay.flows.database.begin_recovery import begin_recovery
from payrelay.flows.operators.held.decide_held import HeldFilter, decide_held, held_operations
from payrelay.flows.relay import Relay
from payrelay.recovery.flows.end_recovery import end_recovery
from payrelay.store.database.identity import IdentityStore
from payrelay.store.engine.database import Database

OPERATOR: Final = "dana"
SHOWN_AFTER_S: Final = SEND_WITHIN_S + TIMEOUT_S + LAG_S
"""How long after the lost window the gateway shows all that was sent in it."""
TURN_S: Final = 300.0
"""How often the operator looks at what is held, while a recovery lasts."""
TURNS_MAX: Final = 2_000
STOPPED_WITHIN_S: Final = 40.0
"""How long an operator waits for processes that were stopped."""
PAUSE_MAX_S: Final = 4 * 3_600.0
"""Between two repeats of a request: six of them fit into the time for which one without a key is remembered."""
TRIES_MAX: Final = 40
BLOCKED_TRIES_MAX: Final = 8
"""Repeats of a request to which another one stands in the way, before its client gives it up."""
FINAL: Final = frozenset({400, 401, 402, 403, 404, 415, 422})
"""What a client is told that doesn't ask again."""
ENDED: Final = frozenset({"needs_attention", "not_sent", "refused", "declined", "failed"})
"""The states of an operation after which its client asks no more."""
NEWCOMERS: Final = 500
"""The number of the first client that comes after a recovery."""
_OPERATIONS: Final = (
    "SELECT id, kind, state, principal, idempotency_key, fingerprint, request_id, order_id FROM operations"
)
_HIGHEST: Final = "SELECT 1 FROM operations WHERE id = ? AND version >= ?"

T = TypeVar("T")


class LosingTown(Town, Protocol):
    """What the operator knows of the world."""

    clock: Clock
    gateway: Gateway
    told: list[Told]
    processes: list[Process | None]
    auditor: sqlite3.Connection
    outside: Outside | None
    loss: Loss | None
    is_healed: bool
    spare: tuple[str, str]

    def copy_of_database(self) -> bytes:
        """Gives the database's file as of now."""
        ...

    def replace_database(self, image: bytes, *, is_outlived: bool) -> bool:
        """Puts a file in the place of the database, and lets the processes die or go on; tells whether they go on."""
        ...

    def operators_database(self) -> Database:
        """Opens the database beside no process."""
        ...

    def note(self, *words: object) -> None:
        """Something happened."""
        ...

    def count(self, what: str) -> None:
        """Counts."""
        ...


class Newcomer(Client):
    """A client that comes once all is over, with keys of its own alone."""

    def _ask(self, method: str, path: str, members: dict[str, object] | None = None) -> Ask:
        asked = super()._ask(method, path, members)
        self._keys += 1
        return replace(asked, key=f"new-{self._number}-{self._keys}")


class Recovery:
    """One loss, and all that is done about it.

    Attributes:
        revoked_s: when an operator had revoked the spare key; None where nobody has.
    """

    def __init__(self, town: LosingTown, random: Random, fate: LossFate) -> None:
        self._town = town
        self._random = random
        self._fate = fate
        self._opened: asyncio.Future[None] | None = None
        self._until_s = float("inf")
        self._asks: list[Ask] = []
        self.revoked_s: float | None = None

    async def may_start(self) -> None:
        """Waits until processes may start: not between a loss that nothing shows and the beginning of its recovery."""
        if self._opened is not None:
            await asyncio.shield(self._opened)

    async def live(self) -> None:
        """Loses commits, begins the recovery from that, and lets clients repeat for a while."""
        town, fate = self._town, self._fate
        await self._wait_until(fate.copied_s)
        image, older = town.copy_of_database(), (town.outside or Outside()).copy()
        await self._wait_until((fate.copied_s + fate.lost_s) / 2)
        revoking = town.loop.create_task(self._revoke())
        await self._wait_until(fate.lost_s)
        revoking.cancel()
        self._opened = town.loop.create_future()
        if fate.is_stopped:
            await self._stop_all()
        self._lose(image, older)
        if self._is_shown():
            self._opened.set_result(None)
            town.count("lost commits: shown by marks")
            await wait_seconds(fate.begins_after_s)
            await self._insist(self._begin)
        else:
            town.count(f"lost commits: not shown, marks {fate.outside}")
            await self._begin_alone()
            self._opened.set_result(None)
        self._asks = self._asked()
        town.loop.create_task(self._decide_from_time_to_time())
        repeats = [self._repeat(ask, 6) for ask in self._asks]
        self._stir()
        await asyncio.gather(self._ask_for_lost(0.0), self._ask_for_lost(REDONE_AFTER_S + 5.0), *repeats)

    async def finish(self) -> None:
        """Lets clients repeat until all is told; then principals acknowledge, and the recovery ends."""
        town = self._town
        await self._wait_until(self._until_s + SHOWN_AFTER_S)
        await asyncio.gather(*(self._repeat(ask, TRIES_MAX) for ask in self._asks))
        while await self._insist(self._decide):
            await wait_seconds(TURN_S)
        for principal in ("shop", "app"):
            await self._acknowledge(principal)
        if self._fate.is_ended:
            await self._insist(end_recovery)
            if town.loss is not None:
                town.loss.ended_s = town.loop.time()
        await wait_seconds(2.0)
        newcomers = [
            Newcomer(NEWCOMERS + number, town, Random(self._random.getrandbits(64)), is_narrow=False)  # noqa: S311
            for number in range(2)
        ]
        await asyncio.gather(self._try_spare_key(), *(each.live() for each in newcomers))

    # The loss.

    def _lose(self, image: bytes, older: Outside) -> None:
        town, fate = self._town, self._fate
        before = _operations_in(town.auditor)
        checkouts, removed = _checkouts_in(town.auditor), _customers_in(town.auditor, "removed")
        is_outlived = town.replace_database(image, is_outlived=fate.is_outlived and not fate.is_stopped)
        left, checkouts_left = _operations_in(town.auditor), _checkouts_in(town.auditor)
        operations = {id_: each for id_, each in before.items() if id_ not in left}
        lost_checkouts = {id_: order_id for id_, order_id in checkouts.items() if id_ not in checkouts_left}
        # Where the list of revocations was kept, what was removed is removed again.
        forgotten = frozenset() if fate.outside == "kept" else removed & _customers_in(town.auditor, "active")
        town.loss = Loss(
            copied_s=fate.copied_s,
            lost_s=town.loop.time(),
            operations=operations,
            checkout_ids=frozenset(lost_checkouts),
            order_ids=frozenset(lost_checkouts.values())
            | {each.order_id for each in operations.values() if each.order_id is not None},
            customer_ids=forgotten,
            is_outlived=is_outlived,
        )
        if town.outside is not None and fate.outside != "kept":
            town.outside.become(older if fate.outside == "older" else Outside())
        town.note("lost", len(town.loss.operations), len(town.loss.checkout_ids))
        town.count("books that went back")
        for each in town.loss.operations.values():
            town.count(f"lost {each.kind}")

    async def _stop_all(self) -> None:
        """Stops all processes, which come to a clean end or are killed."""
        for process in self._town.processes:
            if process is not None:
                process.stop()
        until_s = self._town.loop.time() + STOPPED_WITHIN_S
        while self._town.loop.time() < until_s and any(
            process is not None and not process.owner.is_dead for process in self._town.processes
        ):
            await wait_seconds(0.5)

    def _is_shown(self) -> bool:
        """Tells whether a mark names what the database lacks: what was acknowledged at the very last, none may name."""
        marks = {} if self._town.outside is None else self._town.outside.marks
        for _, content in marks.values():
            mark = msgspec.json.decode(content)["mark"]
            for operation_id, version, _digest, _at_ms in mark["operations"]:
                if self._town.auditor.execute(_HIGHEST, (operation_id, version)).fetchone() is None:
                    return True
        return False

    # The operator.

    async def _begin(self, relay: Relay) -> None:
        shown_ms = (await relay.database.marks.shown()).lost_since_ms
        await self._begin_in(relay.database.identities, shown_ms)

    async def _begin_alone(self) -> None:
        database = self._town.operators_database()
        await self._begin_in(IdentityStore(database, SEAL), None)
        await database.close()

    async def _begin_in(self, identities: IdentityStore, shown_ms: int | None) -> None:
        since_ms = START_MS + int(self._fate.copied_s * 1000) if shown_ms is None else shown_ms
        began = await begin_recovery(
            identities,
            self._town.clock,
            lost_since_ms=since_ms,
            operator=OPERATOR,
            note="restored",
            merchants={MERCHANT},
        )
        self._until_s = (began.began_at_ms - START_MS) / 1000
        if self._town.loss is not None:
            self._town.loss.began_s, self._town.loss.since_ms = self._until_s, since_ms
        self._town.note("recovery begun", began.number)

    async def _decide_from_time_to_time(self) -> None:
        await self._wait_until(self._until_s + SHOWN_AFTER_S)
        for _ in range(TURNS_MAX):
            await self._insist(self._decide)
            await wait_seconds(TURN_S if self._town.is_healed else TURN_S * self._random.uniform(0.5, 4))

    async def _decide(self, relay: Relay) -> int:
        """Decides about everything that is held; gives how many there were."""
        held = [operation async for operation in held_operations(relay, HeldFilter())]
        for operation in held:
            for decision, payment_id in self._decisions_on(operation):
                try:
                    await decide_held(
                        relay, operation, decision, operator=OPERATOR, reason="in the portal", payment_id=payment_id
                    )
                except (UndecidedError, Refusal, Outdated) as error:
                    self._town.note("not decided", operation.id, decision, type(error).__name__)
                else:
                    self._town.note("decided", operation.id, decision)
                    self._town.count(f"decided about {operation.kind}: {decision}")
                    break
        return len(held)

    def _decisions_on(self, held: Operation) -> list[tuple[HeldDecision, str | None]]:
        """Gives what a person decides who sees what was done at the gateway, the best first."""
        claim = held.principal, held.idempotency_key, held.fingerprint
        lost = [] if self._town.loss is None else self._town.loss.operations.values()
        entries = [
            entry
            for each in lost
            # What a process that went on has brought back is told by its own row.
            if each.claim == claim and self._state_of(each.id) is None
            for arrival in self._town.gateway.arrivals
            if arrival.operation_id == each.id
            for entry in arrival.entries
        ]
        if entries:
            payment_id = entries[0].payment_id if held.kind in PAYMENT_KINDS else None
            named = [] if payment_id is None else [(HeldDecision.DONE, str(payment_id))]
            return [*named, (HeldDecision.DONE, None)]
        is_paid_by_phone = held.order_id in PHONE_ORDERS and any(
            entry.order_id == held.order_id for entry in self._town.gateway.world.ledger.entries()
        )
        if is_paid_by_phone or self._random.random() < 0.3:
            return [(HeldDecision.REFUSE, None)]
        return [(HeldDecision.SEND, None)]

    async def _revoke(self) -> None:
        """Revokes the spare key."""
        await self._insist(
            lambda relay: revoke_key(
                relay.access.credentials, relay.database.revocations, relay.clock, self._town.spare[0]
            )
        )
        if self._town.loss is None:
            self.revoked_s = self._town.loop.time()

    async def _insist(self, act: Callable[[Relay], Awaitable[T]]) -> T:
        """Runs a command beside the processes, again until it comes to its end."""
        while True:
            process = next((each for each in self._town.processes if each is not None and each.is_up), None)
            if process is None or process.relay is None:
                await wait_seconds(1.0)
                continue
            died: asyncio.Future[None] = self._town.loop.create_future()
            process.owner.at_death.append(partial(_set, died))
            work = self._town.loop.create_task(_run(act, process.relay), context=process.owner.context())
            both: set[asyncio.Future[Any]] = {work, died}
            while not (work.done() or process.owner.is_dead):  # one that comes to a clean end tells nobody
                await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED, timeout=5.0)
            error = work.exception() if work.done() and not work.cancelled() else None
            if work.done() and error is None:
                return work.result()
            if error is not None and not isinstance(error, StoreError | Crash):
                raise error
            await wait_seconds(5.0)

    # The clients.

    def _asked(self) -> list[Ask]:
        """Gives what was asked in the lost window, and no final refusal was told to."""
        loss, answers = self._town.loss, dict[Ask, set[int]]()
        for told in self._town.told:
            if loss is None or told.at_s > loss.lost_s or told.heard_at_s < loss.copied_s:
                continue
            is_new = told.ask.method != "GET" and told.ask.principal != RIVAL and told.ask.path != "endpoints"
            if is_new:
                answers.setdefault(told.ask, set()).add(0 if told.heard is None else told.heard.http_status)
        return [
            ask
            for ask, statuses in answers.items()
            if not statuses & FINAL and (200 not in statuses or self._random.random() < 0.6)
        ]

    async def _repeat(self, ask: Ask, tries: int) -> None:
        """Asks again until it is told what became of it."""
        blocked, pause_s, operation_id = 0, 5.0, ""
        for _ in range(tries):
            await wait_seconds(pause_s * self._random.uniform(0.5, 1.5))
            if self._state_of(operation_id) in ENDED:  # whoever reads the operation is told so
                return
            heard = (await self._town.call(ask, 60.0)).heard
            status = 0 if heard is None else heard.http_status
            blocked += status == 409
            if status not in {0, 202, 409, 503} or blocked > BLOCKED_TRIES_MAX:
                return
            operation_id = "" if heard is None else heard.headers.get("payrelay-operation", "")
            pause_s = min(PAUSE_MAX_S, max(pause_s * 1.7, 30.0))

    def _state_of(self, operation_id: str) -> str | None:
        row = self._town.auditor.execute("SELECT state FROM operations WHERE id = ?", (operation_id,)).fetchone()
        return None if row is None else row[0]

    async def _acknowledge(self, principal: str) -> None:
        shown = Ask(principal=principal, method="GET", path="recovery", body=b"")
        number = 0
        while number == 0:
            heard = (await self._town.call(shown, 60.0)).heard
            if heard is not None and heard.http_status == 200:
                number = msgspec.json.decode(heard.body)["data"]["incarnation"]
        body = msgspec.json.encode({"incarnation": number})
        ask = Ask(principal=principal, method="POST", path="recovery/acknowledgement", body=body)
        while True:
            heard = (await self._town.call(ask, 60.0)).heard
            if heard is not None and heard.http_status in {200, 409}:
                return

    async def _try_spare_key(self) -> None:
        await self._town.call(
            Ask(principal="shop", method="GET", path="recovery", body=b"", credential=self._town.spare[1]), 60.0
        )

    def _stir(self) -> None:
        """Has workers look at what has begun: their rounds in which nothing is due are left out here."""
        for process in self._town.processes:
            if process is not None:
                process.wake()

    async def _ask_for_lost(self, after_s: float) -> None:
        """Asks for what was lost by its ids, which clients were told, and with a key that was revoked."""
        await wait_seconds(after_s)
        await self._try_spare_key()
        loss = self._town.loss
        ids = () if loss is None else (*(f"operations/{id_}" for id_ in loss.operations), *_paths(loss.checkout_ids))
        for path in ids:
            await self._town.call(Ask(principal="shop", method="GET", path=path, body=b""), 60.0)

    async def _wait_until(self, at_s: float) -> None:
        await wait_seconds(max(0.0, at_s - self._town.loop.time()))


async def _run(act: Callable[[Relay], Awaitable[T]], relay: Relay) -> T:
    return await act(relay)


def _paths(checkout_ids: frozenset[str]) -> list[str]:
    return [f"checkouts/{each}" for each in sorted(checkout_ids)]


def _set(future: "asyncio.Future[None]") -> None:
    if not future.done():
        future.set_result(None)


def _operations_in(auditor: sqlite3.Connection) -> dict[str, LostOperation]:
    return {row[0]: LostOperation(*row) for row in auditor.execute(_OPERATIONS)}


def _checkouts_in(auditor: sqlite3.Connection) -> dict[str, str]:
    return dict(auditor.execute("SELECT id, order_id FROM checkouts"))


def _customers_in(auditor: sqlite3.Connection, state: str) -> frozenset[str]:
    return frozenset(row[0] for row in auditor.execute("SELECT id FROM customers WHERE state = ?", (state,)))
