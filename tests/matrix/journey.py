"""One cell lived through: a service dies, another one takes up what it left, and the client repeats until it knows.

What is true is in the simulator's ledger; the books, and everything that the client was told, are held against it.
"""

import http.client
import shutil
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from tests.matrix.books import UNDER_WAY, Books, read_books
from tests.matrix.cells import FAULTS, IN_FLIGHT, Cell, Way, stages_of
from tests.matrix.deeds import Ask, Deed
from tests.matrix.errand_cells import ErrandCell
from tests.matrix.errand_journey import ErrandJourney, quiet_port, settings_on
from tests.matrix.gateway import Gateway
from tests.matrix.recovery_cells import RecoveryCell
from tests.matrix.recovery_journey import RecoveryJourney
from tests.matrix.result import Result
from tests.matrix.service import NEVER, Service
from tests.matrix.stores import Store, database_in
from tests.scenarios.http_client import Client, Reply, encode
from tests.scenarios.stories import fresh
from tests.scenarios.waiting import until

from payrelay.core.payments.operation import Event, State
from payrelay.core.payments.sentences import EVENT_SENTENCES

DIES_WITHIN_S: Final = 30.0
"""From the request on: the wait for a place, the sending and two looks, on a machine that does everything else too."""
KNOWN_WITHIN_S: Final = 60.0
"""From the second start on. On the shared database what is left in ``sending`` is taken up when its time is over."""
REPEATED_EVERY_S: Final = 0.3
REPEATS_MAX: Final = 400
FINAL_STATUSES: Final = frozenset({200})
"""The gateway of these cells declines nothing: whatever ends, ends well."""
UNTOLD: Final = frozenset({202, 409})
"""Answers that claim nothing about the effect."""
NOT_DONE: Final = frozenset({State.NOT_SENT, State.DECLINED, State.REFUSED, State.FAILED})
LIMITS: Final = {Way.WAITING: "1/2s"}
TIMEOUT_S: Final = "4"
LIMIT: Final = "PAYRELAY_GATEWAYS__GATEWAY__RATE_LIMIT"
TIMEOUT: Final = "PAYRELAY_GATEWAYS__GATEWAY__TIMEOUT_S"


def live_through(cell: Cell | ErrandCell | RecoveryCell, store: Store, gateway: Gateway, root: Path) -> Result:
    """Lives through a cell; the folder is kept where anything was not as promised."""
    began_s = time.monotonic()
    result = Result(cell=cell)
    folder = root / fresh("cell")
    folder.mkdir()
    try:
        with database_in(store, folder) as environment:
            if isinstance(cell, ErrandCell):
                own = gateway.account | {LIMIT: "off", TIMEOUT: TIMEOUT_S} | settings_on(quiet_port())
                ErrandJourney(cell, gateway, Service(folder, environment | own), store.key, result).go()
            elif isinstance(cell, RecoveryCell):
                own = gateway.account | {LIMIT: "off", TIMEOUT: TIMEOUT_S}
                RecoveryJourney(cell, gateway, Service(folder, environment | own), store, result).go()
            else:
                own = settings_of(cell, gateway)
                Journey(cell, gateway, Service(folder, environment | own), store.key, result).go()
    except (AssertionError, OSError, http.client.HTTPException) as error:
        result.failures.append(f"{type(error).__name__}: {error}")
    result.elapsed_s = time.monotonic() - began_s
    if result.failures:
        result.failures.append(f"its log is {folder}/serve.log")
    else:
        shutil.rmtree(folder)
    return result


def settings_of(cell: Cell, gateway: Gateway) -> dict[str, str]:
    """Gives the account's settings."""
    return gateway.account | {LIMIT: LIMITS.get(cell.way, "off"), TIMEOUT: TIMEOUT_S}


class Journey:
    """The steps of a cell, in their order."""

    def __init__(self, cell: Cell, gateway: Gateway, service: Service, key: str, result: Result) -> None:
        self._cell = cell
        self._gateway = gateway
        self._service = service
        self._key = key
        self._result = result
        self._ledger_begins = 0
        self._told: list[Reply] = []

    def go(self) -> None:
        """Goes all the way."""
        try:
            self._gateway.reset()
            self._service.start()
            ask = self._prepare()
            if self._cell.is_rehearsal:
                self._rehearse(ask)
            else:
                self._die(ask)
                self._service.start()
            self._repeat(ask)
            self._ask_about(ask)
        finally:
            self._service.kill()
        self._judge(ask)

    @property
    def _deed(self) -> Deed:
        return self._cell.deed

    @property
    def _client(self) -> Client:
        return self._service.client(self._key)

    def _prepare(self) -> Ask:
        ask = self._deed.prepare(self._client, self._gateway)
        if self._cell.way is Way.WAITING:
            reply = self._client.get(f"payments/{fresh('order')}")  # takes the only place
            assert reply.status in {200, 404}, str(reply)
        fault = FAULTS.get(self._cell.way)
        if fault is not None:
            self._gateway.fail_once(fault, self._deed.endpoint)
        self._ledger_begins = len(self._gateway.ledger())
        self._service.arm(NEVER if self._cell.crash_point is None else f"{self._cell.crash_point} {self._cell.time}")
        return ask

    def _rehearse(self, ask: Ask) -> None:
        """Nobody dies: the stages are those that are written down."""
        self._send(ask)
        stages = list(stages_of(self._deed, self._cell.way))
        until(lambda: len(self._service.passed()) >= len(stages), "all stages are passed", deadline_s=DIES_WITHIN_S)
        passed = self._service.passed()
        assert passed == stages, f"it passed {' '.join(passed)}"
        self._service.disarm()

    def _die(self, ask: Ask) -> None:
        """Sends the request, and waits for the death, which takes the process, its port and its lock with it."""
        if self._cell.way in IN_FLIGHT:
            self._kill_in_flight(ask)
        else:
            self._send(ask)
        until(self._service.is_dead, f"it dies; it passed {self._service.passed()}", deadline_s=DIES_WITHIN_S)
        code = self._service.exit_code()
        assert code == -signal.SIGKILL, f"it ended with {code}"
        assert not self._service.is_listening(), "somebody still listens on its port"
        self._service.disarm()

    def _kill_in_flight(self, ask: Ask) -> None:
        """Kills it from outside, when the gateway has the call."""
        is_done = self._cell.way is Way.IN_FLIGHT_DONE
        arrived = self._gateway.arrived()
        with self._client.connected() as wire:
            content = b"" if ask.body is None else encode(ask.body).encode()
            wire.sendall(self._client.request(ask.method, ask.path, content, [("Idempotency-Key", ask.key)]))
            until(
                lambda: bool(self._effects()) if is_done else self._gateway.arrived() - arrived >= self._deed.calls,
                "the call arrives",
                deadline_s=DIES_WITHIN_S,
            )
            self._service.kill()

    def _send(self, ask: Ask) -> Reply | None:
        """Sends the request once; what is answered must be true at that moment."""
        try:
            reply = ask.send(self._client)
        except (OSError, http.client.HTTPException):
            return None
        self._told.append(reply)
        effects = len(self._effects())
        if reply.status in FINAL_STATUSES and effects == 0:
            self._fail(f"a success was told and nothing was done: {reply}")
        if reply.status not in FINAL_STATUSES | UNTOLD and effects > 0:
            self._fail(f"a failure was told and it was done: {reply}")
        return reply

    def _repeat(self, ask: Ask) -> None:
        """The client repeats the very same request, until it has a final answer, or one that honestly can't be."""
        end_s = time.monotonic() + KNOWN_WITHIN_S
        reply = None
        for _ in range(REPEATS_MAX):
            reply = self._send(ask)
            if reply is not None and reply.status in FINAL_STATUSES:
                self._replay(ask, reply)
                return
            if reply is not None and reply.status == http.HTTPStatus.ACCEPTED and self._is_open_for_long(ask):
                return
            if time.monotonic() > end_s:
                break
            time.sleep(REPEATED_EVERY_S)  # a client's pause
        self._fail(f"after {KNOWN_WITHIN_S:.0f} s the client hears {reply}")

    def _replay(self, ask: Ask, first: Reply) -> None:
        again = ask.send(self._client)
        if (again.status, again.body) != (first.status, first.body):
            self._fail(f"a repeat was answered {again} after {first}")

    def _is_open_for_long(self, ask: Ask) -> bool:
        """Whether nothing that the gateway shows within a minute can settle it."""
        if self._deed.is_repeatable:
            # Where the reply to the second sending is lost too it takes its time, or a person.
            shown = self._shown(ask)
            newest: str = shown["history"][-1]["text"]
            return (
                newest.startswith(EVENT_SENTENCES[Event.RESENT_TO_RESOLVE]) or shown["state"] == State.NEEDS_ATTENTION
            )
        return not self._deed.is_provable or not self._effects()

    def _ask_about(self, ask: Ask) -> None:
        """What isn't settled is listed, and explained."""
        shown = self._shown(ask)
        listed = self._client.get(f"operations?state={shown['state']}").json["data"]
        is_listed = shown["id"] in [operation["id"] for operation in listed]
        now = self._shown(ask)
        self._result.state = now["state"]
        if not is_listed and now["state"] == shown["state"]:  # otherwise it has just been settled
            self._fail(f"{shown['state']} and not listed")
        if not now["explanation"] or not all(line["text"] for line in now["history"]):
            self._fail(f"not explained: {now}")

    def _shown(self, ask: Ask) -> dict[str, Any]:
        reply = self._client.get(f"operations/by-key/{ask.key}")
        assert reply.status == http.HTTPStatus.OK, str(reply)
        data = reply.json["data"]
        assert isinstance(data, dict)
        return data

    def _judge(self, ask: Ask) -> None:
        """The ledger against the books, and against what was told."""
        books = read_books(self._service.environment, self._service.folder)
        effects = self._effects()
        self._result.effects = len(effects)
        for fault in (*books.faults(), *self._faults(ask, books, effects)):
            self._fail(fault)

    def _faults(self, ask: Ask, books: Books, effects: list[dict[str, Any]]) -> Iterator[str]:
        others = [entry["kind"] for entry in self._new_entries() if entry not in effects]
        if others:
            yield f"besides, the gateway did {others}"
        if len(effects) > 1:
            yield f"done {len(effects)} times"
        own = books.under(ask.key)
        if not own:
            yield "nothing of it is in the books"
        yield from (f"left behind as {each.state}" for each in books.operations if each.state in UNDER_WAY)
        done = [operation for operation in own if operation.state not in NOT_DONE]
        if effects and len(done) != 1:
            yield f"done, and in the books it is {[operation.state for operation in own]}"
        if not effects and any(operation.state is State.SUCCEEDED for operation in own):
            yield "in the books as done, and it wasn't"
        told_done = any(reply.status in FINAL_STATUSES for reply in self._told)
        if told_done and not any(operation.state is State.SUCCEEDED for operation in own):
            yield "told as done, and not so in the books"

    def _effects(self) -> list[dict[str, Any]]:
        return [entry for entry in self._new_entries() if entry["kind"] == self._deed.entry]

    def _new_entries(self) -> list[dict[str, Any]]:
        return self._gateway.ledger()[self._ledger_begins :]

    def _fail(self, failure: str) -> None:
        self._result.failures.append(failure)
