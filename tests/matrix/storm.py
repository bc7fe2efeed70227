"""Storms: very many requests at the same moment, over sockets, to several services on one database: ``make storm``."""

import argparse
import asyncio
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table
from tests.matrix.books import read_books
from tests.matrix.deeds import Ask, charging, plant_customer
from tests.matrix.gateway import Gateway, simulating
from tests.matrix.load import Heard, send_all
from tests.matrix.service import Service
from tests.matrix.stores import Postgresql, Store, database_in
from tests.postgresql_server import running_postgresql
from tests.scenarios.http_client import Raw
from tests.scenarios.stories import fresh

from payrelay.core.payments.operation import State

SERVICES: Final = 3
KEYS: Final = 50
ORDERS: Final = 10
FAILURES_SHOWN_MAX: Final = 10
REPEATS_MAX: Final = 100
"""Rounds in which clients repeat what was answered 409; in each at least one request of each order goes through."""


@dataclass(frozen=True, kw_only=True)
class Fleet:
    """Services that share a database, and the gateway behind them."""

    services: list[Service]
    gateway: Gateway
    key: str

    @property
    def ports(self) -> list[int]:
        """Where they listen."""
        return [service.port for service in self.services]


@dataclass(frozen=True, kw_only=True)
class Report:
    """What a storm came to: how many answers of each status, what was not as promised, and the slowest answers."""

    name: str
    statuses: Counter[int]
    effects: int
    slowest_s: float
    failures: list[str]


@contextmanager
def fleet(store: Store, gateway: Gateway, root: Path, *, count: int = SERVICES, timeout_s: int = 30) -> Iterator[Fleet]:
    """Runs so many services while the context is open."""
    folder = root / fresh("fleet")
    folder.mkdir()
    limits = {"RATE_LIMIT": "off", "TIMEOUT_S": str(timeout_s)}
    account = gateway.account | {f"PAYRELAY_GATEWAYS__GATEWAY__{name}": value for name, value in limits.items()}
    with database_in(store, folder) as environment, ExitStack() as stack:
        services = []
        for number in range(count):
            home = folder / str(number)
            home.mkdir()
            service = Service(home, environment | account)
            stack.callback(service.kill)
            services.append(service.start())
        plant_customer(gateway)
        yield Fleet(services=services, gateway=gateway, key=store.key)


def one_key(fleet: Fleet, requests: int) -> Report:
    """So many equal requests with one key: one effect, and every answer is the same, or a 409."""
    ask = charging()
    heard = asyncio.run(send_all([ask] * requests, fleet.ports, fleet.key))
    return _report("one key", fleet, heard, [ask])


def many_keys(fleet: Fleet, requests: int) -> Report:
    """So many requests with 50 keys on 10 orders, mixed: in the end each key was done once."""
    orders = [fresh("order") for _ in range(ORDERS)]
    asks = [charging(order_id=orders[number % ORDERS], amount=Raw(text=f"{number + 1}.50")) for number in range(KEYS)]
    heard = asyncio.run(send_all([asks[number % KEYS] for number in range(requests)], fleet.ports, fleet.key))
    for _ in range(REPEATS_MAX):
        told = {each.ask.key for each in heard if each.status == 200}
        missing = [ask for ask in asks if ask.key not in told]
        if not missing:
            break
        heard += asyncio.run(send_all(missing, fleet.ports, fleet.key))
    return _report("50 keys on 10 orders", fleet, heard, asks)


def _report(name: str, fleet: Fleet, heard: list[Heard], asks: list[Ask]) -> Report:
    service = fleet.services[0]
    books = read_books(service.environment, service.folder)
    failures = [*books.faults(), *_faults_of_answers(heard)]
    effects = 0
    for ask in asks:
        body = ask.body or {}
        amount = body["amount"]
        assert isinstance(amount, Raw)
        cents = round(float(amount.text) * 100)
        entries = [
            entry
            for entry in fleet.gateway.ledger()
            if (entry["kind"], entry["order_id"], entry["amount_cents"]) == ("charge", body["order_id"], cents)
        ]
        effects += len(entries)
        states = [operation.state for operation in books.under(ask.key)]
        if len(entries) != 1 or states.count(State.SUCCEEDED) != 1:
            failures.append(f"{ask.key} was done {len(entries)} times, and is {states}")
    return Report(
        name=name,
        statuses=Counter(each.status for each in heard),
        effects=effects,
        slowest_s=max(each.elapsed_s for each in heard),
        failures=failures,
    )


def _faults_of_answers(heard: list[Heard]) -> Iterator[str]:
    answers: dict[str, set[bytes]] = {}
    for each in heard:
        if each.status == 200:
            answers.setdefault(each.ask.key, set()).add(each.body)
        elif each.status != 409:
            yield f"{each.ask.key} was answered {each.status}: {each.body[:300]!r}"
    for key, bodies in answers.items():
        if len(bodies) > 1:
            yield f"{key} was answered in {len(bodies)} ways: {bodies}"


STORMS: Final[tuple[Callable[[Fleet, int], Report], ...]] = (one_key, many_keys)


def main() -> int:
    """Reads the arguments, lets the storms pass, prints; 1 where anything was not as promised."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--requests", type=int, default=1_000)
    parser.add_argument("--rounds", type=int, default=3)
    given = parser.parse_args()
    console = Console()
    reports: list[Report] = []
    root = Path(tempfile.mkdtemp(prefix="payrelay-storm-"))
    columns = (TextColumn("storms"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with running_postgresql() as server, simulating() as gateway, Progress(*columns, console=console) as bar:
        storms = STORMS * given.rounds
        task = bar.add_task("storms", total=len(storms))
        for storm in storms:
            with fleet(Postgresql(root, server), gateway, root) as services:
                reports.append(storm(services, given.requests))
            bar.update(task, advance=1)
    table = Table("storm", "answers", "effects", "slowest", "failures", title=f"{given.requests} requests at once")
    for report in reports:
        answers = ", ".join(f"{number} x {status or 'broken'}" for status, number in sorted(report.statuses.items()))
        failures = "\n".join(report.failures[:FAILURES_SHOWN_MAX])
        table.add_row(report.name, answers, str(report.effects), f"{report.slowest_s:.1f} s", failures)
    console.print(table)
    return 1 if any(report.failures for report in reports) else 0


if __name__ == "__main__":
    sys.exit(main())
