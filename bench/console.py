"""Measures each page of the console in a database of a million operations: the server's time for one page.

    PYTHONPATH=. python bench/console.py [--pages 60] [--keep-docs]

It asks the console itself, without sockets: finding the session, reading, and rendering. The embedded database is
filled with a million operations and what hangs on them. Beside those are rows that the service wrote itself, since the
console leaves out rows whose digests are wrong: an order with one of each noun, and a queue that is full. The newest
20,000 operations are of the last day, so that the charts count as much as they ever do.
"""

# ruff: noqa: S608 - all texts are our own

import argparse
import sqlite3
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Final

import uvloop
from tests.console.browsing import Window, console_on, signed_in
from tests.databases import sqlite_url
from tests.flows.console.books import PAYMENT, ended, everything, id_at, operation
from tests.flows.console.desk import START_MS, Desk
from tests.store.million.filling import fill_sqlite

import section
from payrelay.clock import Clock
from payrelay.core.operators.roles import Role
from payrelay.core.outcomes import Evidence
from payrelay.core.payments.operation import Event
from payrelay.flows.operators.acts.cases import QUEUE_MAX
from payrelay.store import open_database

PAGES: Final = 60
AIM_MS: Final = 100
NEWEST: Final = 20_000
BETWEEN_MS: Final = 4_000
"""Between two of the newest operations: some 22 hours for all of them."""
HEAD: Final = ["page", "median", "p95", "bytes"]
ADDRESSES: Final = {
    "start": "/console/",
    "overview of an hour": "/console/overview?span=hour",
    "overview of a day": "/console/overview?span=day",
    "overview of a week": "/console/overview?span=week",
    "queue": "/console/queue",
    "find: order id": "/console/find?q=A-1",
    "find: payment id": f"/console/find?q={PAYMENT}",
    "find: nothing fits": "/console/find?q=nobody",
    "find: newest operations": "/console/find?kind=charge",
    "find: an amount, without an index": "/console/find?amount=123456.78",
    "find: a rare state": "/console/find?state=needs_attention",
    "find as CSV": "/console/find.csv?kind=charge",
    "order": "/console/orders/gateway/A-1",
    "operation": f"/console/operations/{id_at('op', START_MS + 5_000, 1)}",
    "act on a payment": f"/console/act/payment/gateway~{PAYMENT}",
    "act on an account": "/console/act/account/gateway",
    "books of a month": "/console/reconciliation",
    "operators": "/console/operators",
    "an operator": "/console/operators/ada@shop.example",
    "history": "/console/acts",
    "your account": "/console/account",
    "set up a second factor": "/console/account/second-factor",
}


def main() -> int:
    """Measures, prints, and writes its section of the docs."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pages", type=int, default=PAGES, help="how often each page is asked for")
    parser.add_argument("--keep-docs", action="store_true", help="leave docs/ alone")
    wanted = parser.parse_args()
    # Not /tmp, which may be memory.
    with tempfile.TemporaryDirectory(prefix="payrelay-bench-", dir="/var/tmp") as folder:
        path = Path(folder) / "payrelay.db"
        url = sqlite_url(path)
        fill(path)
        rows = uvloop.run(measured(url, wanted.pages))
    for row in rows:
        print("   ".join(row))
    slow = [row[0] for row in rows if float(row[1].split()[0]) > AIM_MS]
    print(f"slower than {AIM_MS} ms: {', '.join(slow) or 'none'}")
    if not wanted.keep_docs:
        table = [HEAD, ["---", *["---:"] * (len(HEAD) - 1)], *rows]
        section.write("console", [f"| {' | '.join(row)} |" for row in table])
    return 0


def fill(path: Path) -> None:
    """Makes the million, and the newest, each with two lines of history."""
    connection = sqlite3.connect(path)
    fill_sqlite(connection)
    [last_id] = connection.execute("SELECT id FROM operations ORDER BY id DESC LIMIT 1").fetchone()
    names = [row[1] for row in connection.execute("PRAGMA table_info(operations)")]
    at_ms = f"{START_MS} - n * {BETWEEN_MS}"
    id_ = f"printf('op_%012x%020x', {at_ms}, n)"
    new = {"id": id_, "created_at_ms": at_ms, "updated_at_ms": at_ms, "guard": "NULL", "claim": "NULL"}
    states = "CASE WHEN n % 40 = 1 THEN 'declined' WHEN n % 500 = 2 THEN 'pending' ELSE 'succeeded' END"
    new |= {"state": states, "kind": "CASE WHEN n % 30 = 3 THEN 'refund' ELSE 'charge' END", "order_id": "'N-' || n"}
    series = f"(WITH RECURSIVE s(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM s LIMIT {NEWEST}) SELECT n FROM s)"
    values = ", ".join(new.get(name, name) for name in names)
    connection.execute(
        f"INSERT INTO operations ({', '.join(names)}) SELECT {values} FROM {series}, operations AS o WHERE o.id = ?",
        (last_id,),
    )
    for version, state in ((1, "'sending'"), (2, states)):
        connection.execute(
            f"""INSERT INTO history (operation_id, version, at_ms, event, state, evidence)
            SELECT {id_}, {version}, {at_ms} + {version} * 400, NULL, {state}, '{{}}' FROM {series}"""
        )
    connection.commit()
    connection.close()


async def measured(url: str, count: int) -> list[list[str]]:
    """Signs somebody in, and asks for each page over and over."""
    database = await open_database(url, clock=Clock(), owner=True)
    desk = Desk(database)
    await everything(desk)
    for number in range(100, 100 + QUEUE_MAX):
        row = await operation(desk, number, order_id=f"Q-{number}")
        await ended(desk, row, Event.DIFFERED, START_MS + 900, Evidence(cause="other_amount"))
    desk.clock.at_ms = START_MS + 60_000
    window = await signed_in(desk, console_on(desk), "ada@shop.example", Role.ADMIN)
    rows = []
    for name, address in ADDRESSES.items():
        times, size = [], 0
        await asked(window, address)
        for _ in range(count):
            began_s = time.perf_counter()
            size = await asked(window, address)
            times.append((time.perf_counter() - began_s) * 1000)
        slow = statistics.quantiles(times, n=20)[-1]
        rows.append([name, f"{statistics.median(times):.1f} ms", f"{slow:.1f} ms", f"{size:,}"])
    await database.close()
    return rows


async def asked(window: Window, address: str) -> int:
    """Asks for a page, and gives its size; raises RuntimeError where it has none."""
    answer = await window.send("GET", address)
    if answer.status != 200:
        raise RuntimeError(f"{address} has the status {answer.status}")
    return len(answer.body)


if __name__ == "__main__":
    sys.exit(main())
