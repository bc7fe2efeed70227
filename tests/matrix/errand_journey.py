"""One errand lived through: the service dies somewhere, another one takes up what it left, and all comes to its end.

Whoever has to do with the service is patient: the shop asks again, the gateway notifies again, the endpoint listens.
"""

import http.client
import itertools
import os
import signal
import socket
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from typing import Any, Final

from standardwebhooks import Webhook
from tests.matrix.books import UNDER_WAY, Books, read_books
from tests.matrix.errand_cells import ErrandCell
from tests.matrix.errands import Shop, client_sends
from tests.matrix.gateway import Gateway
from tests.matrix.result import Result
from tests.matrix.service import NEVER, Service
from tests.scenarios.event_receiver import EventReceiver
from tests.scenarios.http_client import Client
from tests.scenarios.stories import fresh

from payrelay.core.notifications.notification import UNFINISHED, NotificationState
from payrelay.runtime.hooks import FlowPoint

DONE_WITHIN_S: Final = 90.0
"""From the beginning on, on a machine that does everything else too."""
POLLED_EVERY_S: Final = 0.1
LATE_S: Final = {"sqlite": 60, "postgresql": 200}
"""How much later the second process begins by its clock. What a dead process had taken of events comes back after 45 s,
and of notifications after 180 s; the sole owner of a store takes those up at once."""
PORTS: Final = range(20_000, 32_000)
"""Below those that connections are given, so that nobody has the dead one's port when the next one comes."""
BESIDE: Final = frozenset({"operation.unknown"})
"""Told besides, where the process died while the gateway had a charge."""


_BEGIN: Final = os.getpid() * 100 % len(PORTS)
"""Programs that run beside each other begin elsewhere."""
_ports: Final[Iterator[int]] = itertools.cycle([*PORTS[_BEGIN:], *PORTS[:_BEGIN]])


def quiet_port() -> int:
    """Gives a port that nobody listens on, that no connection is given, and no other cell for a long time."""
    for port in itertools.islice(_ports, 1_000):
        with socket.socket() as tried:
            try:
                tried.bind(("127.0.0.1", port))
            except OSError:
                continue
        return port
    raise AssertionError("all ports are taken")


def settings_on(port: int) -> dict[str, str]:
    """Gives the settings with which the gateway finds the service, and events may go to this machine."""
    return {"PAYRELAY_PUBLIC_URL": f"http://127.0.0.1:{port}", "PAYRELAY_EVENTS__ALLOWED_HOSTS": "127.0.0.1"}


class ErrandJourney:
    """The steps of an errand's cell, in their order."""

    def __init__(self, cell: ErrandCell, gateway: Gateway, service: Service, key: str, result: Result) -> None:
        self._cell = cell
        self._gateway = gateway
        self._service = service
        self._key = key
        self._result = result
        self._port = int(service.environment["PAYRELAY_PUBLIC_URL"].rpartition(":")[2])
        self._receiver = EventReceiver()
        self._has_died = False
        self._ends_s = time.monotonic() + DONE_WITHIN_S
        self._webhook: Webhook | None = None
        self._endpoint_id = ""

    def go(self) -> None:
        """Goes all the way."""
        with self._receiver:
            try:
                self._gateway.reset()
                self._service.start(self._port)
                self._live()
            finally:
                self._service.kill()

    def _live(self) -> None:
        errand = self._cell.errand
        shop = Shop(
            ask=self._ask, heard=self._heard, settled=self._settle, gateway=self._gateway, receiver=self._receiver
        )
        endpoint = self._ask("POST", "endpoints", {"url": self._receiver.url, "types": ["*"]}, fresh("key"))
        self._endpoint_id, self._webhook = endpoint["id"], Webhook(endpoint["secret"])
        errand.prepare(shop)
        self._settle()
        before = {event["id"] for event in self._feed()}
        ledger_begins = len(self._gateway.ledger())
        order = NEVER if self._cell.crash_point is None else f"{self._cell.crash_point} {self._cell.time}"
        self._service.arm(order, FlowPoint)
        errand.go(shop)
        self._wait(lambda: self._cell.is_rehearsal or self._has_died, "it dies")
        self._wait(lambda: self._has_told(before) and self._is_quiet(), "all has been told")
        self._service.disarm()
        if self._cell.is_rehearsal:
            self._compare_passages()
        for fault in (*errand.check(shop), *self._faults(before, ledger_begins)):
            self._result.failures.append(fault)
        self._result.effects = len(self._gateway.ledger()) - ledger_begins
        self._result.state = "done"

    def _compare_passages(self) -> None:
        """Nobody died: the passages are those that are written down, each at least as often."""
        passed, written = Counter(self._service.passed()), Counter(map(str, self._cell.errand.passages))
        assert passed >= written, f"it did not pass {written - passed}"
        assert set(passed) == set(written), f"it passed besides {set(passed) - set(written)}"

    def _client(self) -> Client:
        """Gives a caller of the service, which is started again where it has died as it should."""
        if self._service.is_dead():
            code = self._service.exit_code()
            assert code == -signal.SIGKILL, f"it ended with {code}"
            assert not self._cell.is_rehearsal, "it died in a rehearsal"
            assert not self._has_died, "it died twice"
            self._has_died = True
            self._service.disarm()
            self._receiver.statuses.clear()  # a third try comes five minutes after the second: nobody waits for that
            self._service.start(self._port, late_s=LATE_S[self._cell.store])
        return self._service.client(self._key)

    def _ask(self, method: str, path: str, body: object, key: str | None) -> Any:  # noqa: ANN401, of any JSON
        answers: list[Any] = []

        def is_answered() -> bool:
            try:
                answers.append(client_sends(self._client(), method, path, body, key))
            except (OSError, http.client.HTTPException):
                return False
            return answers[-1] is not None

        self._wait(is_answered, f"{method} {path} is answered with 200")
        return answers[-1]

    def _heard(self, type_: str, count: int) -> list[dict[str, Any]]:
        def told() -> dict[str, dict[str, Any]]:
            arrived = [one for one in self._receiver.received if one.message["type"] == type_]
            return {one.headers["webhook-id"]: one.message for one in arrived}

        self._wait(lambda: len(told()) >= count, f"{count} of {type_} have been heard")
        return list(told().values())

    def _settle(self) -> None:
        self._wait(self._is_quiet, "nothing is worked on, and all has been told")

    def _wait(self, condition: Callable[[], bool], what: str) -> None:
        while not condition():
            self._client()
            assert time.monotonic() < self._ends_s, f"not in time: {what}; it passed {self._service.passed()}"
            time.sleep(POLLED_EVERY_S)  # a client's pause

    def _feed(self) -> list[dict[str, Any]]:
        events: list[dict[str, Any]] = self._ask("GET", "events?limit=1000", None, None)["events"]
        return events

    def _has_told(self, before: set[str]) -> bool:
        """Whether all events that must come of it are in the feed."""
        types = Counter(event["type"] for event in self._feed() if event["id"] not in before)
        return types >= self._cell.errand.told

    def _is_quiet(self) -> bool:
        """Whether nothing waits to be sent to the endpoint, or to be worked on."""
        path = f"endpoints/{self._endpoint_id}/deliveries?limit=100"
        deliveries = self._ask("GET", path, None, None)
        if len(deliveries) < len(self._feed()) or any(one["state"] != "delivered" for one in deliveries):
            return False
        if not all(one["state"] in {"delivered", "lost"} for one in self._gateway.notifications()):
            return False
        return not any(each.state is NotificationState.RECEIVED for each in self._books().notifications)

    def _books(self) -> Books:
        return read_books(self._service.environment, self._service.folder)

    def _faults(self, before: set[str], ledger_begins: int) -> Iterator[str]:
        feed, books, errand = self._feed(), self._books(), self._cell.errand
        yield from books.faults()
        yield from (f"left behind as {each.state}" for each in books.operations if each.state in UNDER_WAY)
        types = Counter(event["type"] for event in feed if event["id"] not in before)
        if Counter({type_: n for type_, n in types.items() if type_ not in BESIDE}) != errand.told:
            yield f"told were {dict(types)}"
        entries = Counter(entry["kind"] for entry in self._gateway.ledger()[ledger_begins:])
        if entries != errand.entries:
            yield f"in the gateway's ledger are {dict(entries)}"
        yield from self._faults_of_arrivals([event["id"] for event in feed])
        yield from self._faults_of_inbox(books)

    def _faults_of_arrivals(self, feed: list[str]) -> Iterator[str]:
        """Each event came at least once, always the same and signed, in the order of its subject; and no other."""
        bodies: dict[str, set[bytes]] = defaultdict(set)
        places: dict[str, list[int]] = defaultdict(list)
        for one in self._receiver.received:
            assert self._webhook is not None
            self._webhook.verify(one.body, one.headers)
            event_id = one.headers["webhook-id"]
            bodies[event_id].add(one.body)
            if event_id not in feed:
                yield f"{event_id} was sent, and is no event"
                continue
            places[one.message["subject"]].append(feed.index(event_id))
        yield from (f"{event_id} was never sent" for event_id in feed if event_id not in bodies)
        yield from (f"{event_id} came with several bodies" for event_id, said in bodies.items() if len(said) > 1)
        yield from (f"{subject} came as {order}" for subject, order in places.items() if order != sorted(order))

    def _faults_of_inbox(self, books: Books) -> Iterator[str]:
        """What was answered is stored, once; all of it is genuine, and was taken up."""
        sent = [one for one in self._gateway.notifications() if one["state"] != "lost"]
        stored = Counter(each.order_id for each in books.notifications)
        if stored != Counter(one["fields"]["order_id"] for one in sent):
            yield f"{len(sent)} notifications were answered, and {dict(stored)} are stored"
        for each in books.notifications:
            # A charge of ours may be told of before its answer is stored: that one is looked at again later.
            is_well = each.state is NotificationState.APPLIED or each.state in UNFINISHED
            if not is_well:
                yield f"a notification is {each.state}: {each.reason}"
