"""Any sequence of requests, against a model of a few lines: what each is answered, and what happened to the money.

The program is the real one, and so is the simulator that stands for the gateway; both are started once. Every run has
orders and keys of its own.
"""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar, Final, NamedTuple

import hypothesis.strategies as st
import pytest
from hypothesis import HealthCheck, settings
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule, run_state_machine_as_test
from tests.draws import examples
from tests.scenarios.http_client import Client, Raw, Reply
from tests.scenarios.program import Program, account, free_port, surroundings
from tests.scenarios.stories import assert_envelope, fresh
from tests.scenarios.waiting import until

from payrelay_simulator import DEFAULT_MERCHANT

CUSTOMER: Final = "D3A0" * 8
RESOLVED_S: Final = 10.0
"""The first look at the gateway comes within 2 s, and two busy cores take their time."""
AMOUNTS: Final = ("1.00", "2.50")
FAULTS: Final = ("none", "none", "none", "decline", "cut_before", "cut_after", "html_502_after")


class Gateway:
    """The simulator, as a program of its own."""

    def __init__(self) -> None:
        self.port = free_port()
        self._process = subprocess.Popen(
            [sys.executable, "-m", "payrelay_simulator", "--port", str(self.port), "--demo"],
            env=surroundings({}),
            stdout=subprocess.DEVNULL,
        )
        until(self._is_up, "the simulator answers")
        self.control("POST", "switches", {"rate_limit_calls": 0})

    def control(self, method: str, path: str, body: object = None) -> Any:  # noqa: ANN401, JSON
        """Orders something of it, or asks."""
        content = None if body is None else json.dumps(body).encode()
        reply = Client(port=self.port, key=None).send(method, f"/_sim/{path}", content)
        assert reply.status == 200, str(reply)
        return json.loads(reply.body)

    def strike(self, fault: str, order_id: str, endpoint: str = "charge") -> None:
        """Lets the next call about an order meet a fault."""
        match = {"endpoint": endpoint, "order_id": order_id}
        self.control("POST", "faults", {"script": [{"fault": fault, "match": match, "times": 1}]})

    def entries(self, order_id: str, kind: str) -> int:
        """Counts what really happened to an order."""
        ledger = self.control("GET", "ledger?after=0&count=10000")
        return sum(entry["order_id"] == order_id and entry["kind"] == kind for entry in ledger["entries"])

    def end(self) -> None:
        """Ends it."""
        self._process.terminate()
        self._process.wait(10)

    def _is_up(self) -> bool:
        try:
            return Client(port=self.port, key=None).send("GET", "/_sim/clock").status == 200
        except OSError:
            return False


class Told(NamedTuple):
    """What a request under a key was, and what it came to: None while that is open."""

    order: int
    amount: str
    reply: Reply | None


class Relayed(RuleBasedStateMachine):
    """Requests in any order; the model keeps what each order paid, and what each key was told."""

    gateway: ClassVar[Gateway]
    client: ClassVar[Client]

    def __init__(self) -> None:
        super().__init__()
        self.orders = [fresh("order") for _ in range(3)]
        self.keys = [fresh("key") for _ in range(4)]
        self.paid = [0, 0, 0]
        self.refunded = [0, 0, 0]
        self.stuck: set[int] = set()
        self.told: dict[int, Told] = {}
        self.payments: list[tuple[int, int]] = []

    @rule(
        order=st.integers(0, 2), key=st.integers(0, 3), amount=st.sampled_from(AMOUNTS), fault=st.sampled_from(FAULTS)
    )
    def charge(self, order: int, key: int, amount: str, fault: str) -> None:
        """A new key begins a charge, a known one only ever tells what it came to."""
        earlier = self.told.get(key)
        if earlier is not None:
            self._repeat(earlier, order, key, amount)
        elif order in self.stuck:
            self._refused(self._charge(order, key, amount), 409, "in_progress")
        else:
            self._begin(order, key, amount, fault)

    @rule(order=st.integers(0, 2))
    def read(self, order: int) -> None:
        """The order shows what was paid."""
        reply = self.client.get(f"payments/{self.orders[order]}", [("Cache-Control", "no-cache")])
        assert_envelope(reply)
        left = self.paid[order] - self.refunded[order]
        received = [record for record in reply.json["data"] or [] if record["status"] == "RECEIVED"]
        assert (reply.status, len(received)) == (200 if self.paid[order] else 404, left), str(reply)

    @precondition(lambda self: bool(self.payments))
    @rule(number=st.integers(0, 9), fault=st.sampled_from(("none", "none", "cut_after")))
    def refund(self, number: int, fault: str) -> None:
        """A payment goes back once, also when the answer to that is lost."""
        order, payment_id = self.payments[number % len(self.payments)]
        if fault != "none":
            self.gateway.strike(fault, self.orders[order], "refund")
        body = {"payment_id": str(payment_id), "description": "back"}
        key = fresh("key")
        reply = self.client.post("payments/refund", body, key=key)
        if reply.status == 202:
            reply = self._resolved(lambda: self.client.post("payments/refund", body, key=key))
        assert reply.status == 200, str(reply)
        self.refunded[order] += 1
        self.payments.remove((order, payment_id))
        again = self.client.post("payments/refund", body, key=fresh("key"))
        self._refused(again, 409, "conflict")

    @invariant()
    def every_key_tells_its_state(self) -> None:
        """What a killed app reads by its key is what it would have been told."""
        for key, told in self.told.items():
            operation = self.client.get(f"operations/by-key/{self.keys[key]}").json["data"]
            expected = {200: "succeeded", 402: "declined"}.get(told.reply.status, "?") if told.reply else "unknown"
            assert operation["state"] == expected, operation

    def teardown(self) -> None:
        """The gateway's own ledger is the judge."""
        for order, order_id in enumerate(self.orders):
            assert self.gateway.entries(order_id, "charge") == self.paid[order]
            assert self.gateway.entries(order_id, "refund") == self.refunded[order]

    def _begin(self, order: int, key: int, amount: str, fault: str) -> None:
        if fault != "none":
            self.gateway.strike(fault, self.orders[order])
        reply: Reply | None = self._charge(order, key, amount)
        assert reply is not None
        assert_envelope(reply)
        is_paid = fault in {"none", "cut_after", "html_502_after"}
        self.paid[order] += is_paid
        if fault == "cut_before":
            assert reply.status == 202, str(reply)
            self.stuck.add(order)
            reply = None
        elif is_paid and fault != "none":
            assert reply.status == 202, str(reply)
            reply = self._resolved(lambda: self._charge(order, key, amount))
            assert reply.json["msg"] == "Resolved by proof"
        else:
            assert reply.status == (200 if is_paid else 402), str(reply)
        self.told[key] = Told(order, amount, reply)
        if is_paid and reply is not None:
            self.payments.append((order, reply.json["data"]["payment_id"]))

    def _repeat(self, earlier: Told, order: int, key: int, amount: str) -> None:
        reply = self._charge(order, key, amount)
        if (order, amount) != (earlier.order, earlier.amount):
            self._refused(reply, 422, "idempotency_mismatch")
        elif earlier.reply is None:
            assert (reply.status, reply.code) == (202, "outcome_unknown"), str(reply)
        else:
            assert (reply.status, reply.body) == (earlier.reply.status, earlier.reply.body)
            assert reply.header("idempotent-replayed") == "true"

    def _charge(self, order: int, key: int, amount: str) -> Reply:
        body = {
            "type": "PAYMENT",
            "order_id": self.orders[order],
            "items": "Tea",
            "currency": "LKR",
            "amount": Raw(text=amount),
            "customer_token": CUSTOMER,
        }
        return self.client.charge(body, key=self.keys[key])

    @staticmethod
    def _resolved(ask: Any) -> Reply:  # noqa: ANN401, a call without arguments
        replies: list[Reply] = []

        def is_final() -> bool:
            replies.append(ask())
            return replies[-1].status != 202

        until(is_final, "it is settled", deadline_s=RESOLVED_S)
        return replies[-1]

    @staticmethod
    def _refused(reply: Reply, status: int, code: str) -> None:
        assert (reply.status, reply.code) == (status, code), str(reply)


@pytest.fixture(scope="module")
def relayed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[type[Relayed]]:
    """The machine, with the program and the simulator behind it."""
    gateway = Gateway()
    folder: Path = tmp_path_factory.mktemp("model")
    pair = {"APP_ID": DEFAULT_MERCHANT.app_id, "APP_SECRET": DEFAULT_MERCHANT.app_secret}
    program = Program(folder, account("gateway", f"http://127.0.0.1:{gateway.port}", **pair))
    key = program.new_key("shop")
    program.start()
    Relayed.gateway, Relayed.client = gateway, program.client(key)
    yield Relayed
    program.stop()
    gateway.end()


@pytest.mark.integration
@pytest.mark.fuzz
def test_any_sequence_of_requests_is_answered_as_the_model_says(relayed: type[Relayed]) -> None:
    """Repeats, races in time, declines and lost answers: each order pays for what was told, and for nothing else."""
    plan = settings(max_examples=examples(20), stateful_step_count=12, suppress_health_check=list(HealthCheck))
    run_state_machine_as_test(relayed, settings=plan)
