"""One cell of a recovery lived through: books that lack the newest rows, a request that comes again, and a death."""

import http.client
import signal
import time
from collections.abc import Iterator
from typing import Any, Final

from tests.matrix.books import UNDER_WAY, Books, read_books
from tests.matrix.decider import Decided, decide
from tests.matrix.deeds import Ask
from tests.matrix.gateway import Gateway
from tests.matrix.program import Start
from tests.matrix.recovery_cells import DECISIONS, STAGES, RecoveryCell, RecoveryWay
from tests.matrix.restored import LATE_S, begin_recovery_of
from tests.matrix.result import Result
from tests.matrix.service import NEVER, Service
from tests.matrix.stores import Store, database_in
from tests.scenarios.http_client import Reply
from tests.scenarios.waiting import until

from payrelay.core.payments.operation import State

ENDS_WITHIN_S: Final = 90.0
"""From the death on. What was left in ``sending`` is taken up when its time is over."""
REPEATED_EVERY_S: Final = 0.3
EFFECTS: Final = {RecoveryWay.HELD: {0}, RecoveryWay.ADOPTED: {1}, RecoveryWay.DONE: {0}, RecoveryWay.REFUSED: {0}}
"""How often the gateway does it; a decision *send* at most once."""
STATES: Final = {
    RecoveryWay.HELD: {State.HELD},
    RecoveryWay.ADOPTED: {State.SUCCEEDED},
    RecoveryWay.DONE: {State.SUCCEEDED},
    RecoveryWay.REFUSED: {State.NOT_SENT},
    RecoveryWay.SEND: {State.SUCCEEDED, State.UNKNOWN, State.PENDING, State.NEEDS_ATTENTION},
}
"""The states in which it may end."""
FINAL: Final = frozenset({State.SUCCEEDED, State.NOT_SENT})


class RecoveryJourney:
    """The steps of a cell, in their order."""

    def __init__(self, cell: RecoveryCell, gateway: Gateway, service: Service, store: Store, result: Result) -> None:
        self._cell = cell
        self._gateway = gateway
        self._service = service
        self._store = store
        self._result = result
        self._ledger_begins = 0
        self._told: list[Reply] = []

    def go(self) -> None:
        """Goes all the way."""
        try:
            self._gateway.reset()
            ask = self._prepare()
            self._service.start(late_s=LATE_S)
            if self._cell.way in DECISIONS:
                self._send(ask)
                assert [reply.status for reply in self._told] == [202], f"it is not held: {self._told}"
                self._decide(ask)
            else:
                self._come_again(ask)
            self._wait_for_the_end(ask)
        finally:
            self._service.kill()
        self._judge(ask)

    @property
    def _stages(self) -> list[str]:
        return [str(stage) for stage in STAGES[self._cell.way]]

    @property
    def _order(self) -> str:
        return NEVER if self._cell.crash_point is None else f"{self._cell.crash_point} {self._cell.time}"

    def _prepare(self) -> Ask:
        """Makes what the backup has, and what came after it; then begins the recovery."""
        self._service.start()
        ask = self._cell.deed.prepare(self._service.client(self._store.key), self._gateway)
        self._service.ask_to_stop()
        until(self._service.is_dead, "the service has stopped")
        self._ledger_begins = len(self._gateway.ledger())
        if self._cell.way is RecoveryWay.ADOPTED:
            self._carry_out_elsewhere(ask)
        begin_recovery_of(self._service.environment, self._service.folder)
        return ask

    def _carry_out_elsewhere(self, ask: Ask) -> None:
        """Carries the request out with books of which nothing is left."""
        folder = self._service.folder / "lost"
        folder.mkdir()
        with database_in(self._store, folder) as environment:
            lost = Service(folder, self._service.environment | environment).start()
            try:
                reply = ask.send(lost.client(self._store.key))
                assert reply.status == http.HTTPStatus.OK, str(reply)
            finally:
                lost.kill()

    def _come_again(self, ask: Ask) -> None:
        """The request comes, and the service dies where it is told to; another one is started."""
        self._service.arm(self._order)
        self._send(ask)
        if self._cell.is_rehearsal:
            assert self._service.passed() == self._stages, f"it passed {self._service.passed()}"
            self._service.disarm()
            return
        until(self._service.is_dead, f"it dies; it passed {self._service.passed()}")
        assert self._service.exit_code() == -signal.SIGKILL, self._service.exit_code()
        self._service.disarm()
        self._service.start(late_s=LATE_S)

    def _decide(self, ask: Ask) -> None:
        """The operator's command dies where it is told to, and the operator types it once more."""
        first = self._decided(ask, self._order)
        if self._cell.is_rehearsal:
            assert first == Decided(0, self._stages), f"it ended with {first}"
            return
        assert first.exit_code == -signal.SIGKILL, f"it ended with {first}"
        again = self._decided(ask, NEVER)
        assert again.exit_code == 0, f"the second command ended with {again}"

    def _decided(self, ask: Ask, order: str) -> Decided:
        start = Start(self._service.folder, self._service.environment, late_s=LATE_S)
        return decide(start, ask.key, DECISIONS[self._cell.way], order)

    def _send(self, ask: Ask) -> Reply | None:
        try:
            reply = ask.send(self._service.client(self._store.key))
        except (OSError, http.client.HTTPException):
            return None
        self._told.append(reply)
        return reply

    def _wait_for_the_end(self, ask: Ask) -> None:
        """Waits until the operation is in a state that nothing changes within a minute, and repeats where that is safe.

        A request that was refused may be sent again by its client, as a new one: this client doesn't.
        """
        end_s = time.monotonic() + ENDS_WITHIN_S
        wanted = STATES[self._cell.way]
        while (state := self._state(ask)) not in wanted:
            assert time.monotonic() < end_s, f"it is {state}"
            if state is None:
                self._send(ask)
            time.sleep(REPEATED_EVERY_S)  # a client's pause
        if self._cell.way is not RecoveryWay.REFUSED:
            self._send(ask)

    def _state(self, ask: Ask) -> State | None:
        """The state of the operation; None where there is none, and while the service can't say so."""
        reply = self._service.client(self._store.key).get(f"operations/by-key/{ask.key}")
        return State(reply.json["data"]["state"]) if reply.status == http.HTTPStatus.OK else None

    def _judge(self, ask: Ask) -> None:
        """The ledger against the books, and against what was told."""
        books = read_books(self._service.environment, self._service.folder)
        effects = [entry for entry in self._new_entries() if entry["kind"] == self._cell.deed.entry]
        self._result.effects = len(effects)
        for fault in (*books.faults(), *self._faults(ask, books, len(effects))):
            self._result.failures.append(fault)

    def _new_entries(self) -> list[dict[str, Any]]:
        return self._gateway.ledger()[self._ledger_begins :]

    def _faults(self, ask: Ask, books: Books, effects: int) -> Iterator[str]:
        operations = books.under(ask.key)
        states = [operation.state for operation in operations]
        self._result.state = " ".join(states)
        if len(states) != 1 or states[0] not in STATES[self._cell.way]:
            yield f"the books have {states}"
        if effects not in EFFECTS.get(self._cell.way, {0, 1}):
            yield f"it was done {effects} times"
        if self._cell.way is RecoveryWay.SEND and states == [State.SUCCEEDED] and effects != 1:
            yield f"it was told as done, and was done {effects} times"
        if any(operation.state in UNDER_WAY for operation in books.operations):
            yield "something was left behind"
        for reply in self._told:
            if reply.status == http.HTTPStatus.OK and states != [State.SUCCEEDED]:
                yield f"a success was told: {reply}"
            if reply.status not in {200, 202, 409, 503}:
                yield f"it was told {reply}"
