"""Measures charges of a thousand accounts in one installation beside charges of one, and which row is written most.

    PYTHONPATH=. python bench/accounts.py [--accounts 1,1000] [--charges 6000] [--keep-docs]

PostgreSQL counts what is written to each table. A row that every charge wrote would keep accounts waiting for each
other; the most that any row of any table was written, for each charge, is in the table. Each number of accounts has a
database of its own. Every account has made a charge before anything is counted.
"""

import argparse
import asyncio
import contextlib
import sys
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Final, NamedTuple

import asyncpg

import postgresql
import programs
import section
import upstream
from contenders import Served, made_key
from load import CHARGE_HEAD, CHARGE_TAIL
from many import account, served, store_at, wait_for
from measure import memory_mb, tree_cpu_s

SIZES: Final = "1,1000"
CHARGES: Final = 6_000
CONNECTIONS: Final = 64
MEMORY_MB_MAX: Final = 150
COUNTED_AFTER_S: Final = 2.0
"""PostgreSQL's counts are as old as a second."""
UPDATES: Final = "SELECT relname::text, n_tup_upd FROM pg_stat_user_tables"
HEAD: Final = [
    "accounts",
    "CPU of a charge",
    "database's",
    "memory",
    "at most",
    "verdict",
    "row written most, a charge",
]


class Bench(NamedTuple):
    """What is charged, and where it is counted."""

    served: Served
    database_pid: int
    url: str
    accounts: int


def main() -> int:
    """Measures, prints, and writes its section of the docs."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--accounts", default=SIZES, help=f"how many, by comma ({SIZES})")
    parser.add_argument("--charges", type=int, default=CHARGES)
    parser.add_argument("--keep-docs", action="store_true", help="leave docs/ alone")
    wanted = parser.parse_args()
    rows = [HEAD, ["---:"] * (len(HEAD) - 2) + ["---", "---"]]
    for number in map(int, wanted.accounts.split(",")):
        # Not /tmp, which may be memory.
        with tempfile.TemporaryDirectory(prefix="payrelay-bench-", dir="/var/tmp") as name:
            rows.append(row_of(Path(name), number, wanted.charges))
            print("   ".join(rows[-1]), flush=True)
    if not wanted.keep_docs:
        section.write("accounts", [f"| {' | '.join(row)} |" for row in rows])
    return 0


def row_of(folder: Path, accounts: int, charges: int) -> list[str]:
    """Runs an installation with so many accounts; gives its row of the table."""
    folder.chmod(0o711)  # the database runs as a user of its own when the bench is root
    core, cluster = programs.cores().load, postgresql.Cluster(folder)
    with upstream.running(folder, core) as gateway, cluster.running(core) as database_pid:
        config = folder / "accounts.toml"
        config.write_text("".join(account(number, gateway.url) for number in range(accounts)))
        config.chmod(0o600)
        environment = {"PAYRELAY_CONFIG": str(config), **store_at(cluster.url)}
        key = made_key(environment, folder)
        with served(folder, environment, "service") as (pid, port, _):
            service = Served(port=port, key=key, pid=pid)
            wait_for([service])
            return asyncio.run(measured(Bench(service, database_pid, cluster.url, accounts), charges))


async def measured(bench: Bench, charges: int) -> list[str]:
    """Charges each account once, then all in turn; gives the row of the table."""
    await _charged(bench, "first", bench.accounts)
    async with _counting(bench) as written:
        before = tree_cpu_s(bench.served.pid), tree_cpu_s(bench.database_pid)
        await _charged(bench, "then", charges)
        service_s = tree_cpu_s(bench.served.pid) - before[0]
        database_s = tree_cpu_s(bench.database_pid) - before[1]
    pss_mb, _ = memory_mb(bench.served.pid)
    table, updates = max(written.items(), key=lambda each: each[1])
    return [
        *(f"{bench.accounts:,}", f"{service_s / charges * 1e6:,.0f} µs", f"{database_s / charges * 1e6:,.0f} µs"),
        *(f"{pss_mb:.0f} MB", f"{MEMORY_MB_MAX} MB", "met" if pss_mb <= MEMORY_MB_MAX else "short"),
        f"of `{table}`, {updates / charges:.3f} times",
    ]


@contextlib.asynccontextmanager
async def _counting(bench: Bench) -> AsyncIterator[dict[str, float]]:
    """Counts, for each table, how often a row of it is written while the context is open; filled in at its end."""
    found: dict[str, float] = {}
    connection = await asyncpg.connect(bench.url)
    await asyncio.sleep(COUNTED_AFTER_S)
    before = dict(await connection.fetch(UPDATES))
    yield found
    await asyncio.sleep(COUNTED_AFTER_S)
    for table, updates in await connection.fetch(UPDATES):
        rows = await connection.fetchval(f'SELECT count(*) FROM "{table}"')  # noqa: S608 - the database names it
        found[table] = (updates - before[table]) / max(rows, 1)
    await connection.close()


async def _charged(bench: Bench, name: str, count: int) -> None:
    """Charges so many orders, of one account after the other; raises ProgramError where one isn't a success."""
    waiting = list(range(count))
    await asyncio.gather(*(_charge(bench, name, waiting) for _ in range(CONNECTIONS)))


async def _charge(bench: Bench, name: str, waiting: list[int]) -> None:
    reader, writer = await asyncio.open_connection(programs.HOST, bench.served.port)
    while waiting:
        number = waiting.pop()
        body = f"{CHARGE_HEAD}{name}-{number}{CHARGE_TAIL}"
        head = [
            f"POST /shop-{number % bench.accounts}/api/payments/charge HTTP/1.1",
            f"Host: {programs.HOST}",
            f"Authorization: Bearer {bench.served.key}",
            f"Idempotency-Key: {name}-{number}",
            "Content-Type: application/json",
            f"Content-Length: {len(body)}",
        ]
        writer.write("\r\n".join([*head, "", body]).encode())
        answer = (await reader.readuntil(b"\r\n\r\n")).lower()
        content = await reader.readexactly(int(answer.partition(b"content-length: ")[2].partition(b"\r\n")[0]))
        if not answer.startswith(b"http/1.1 200"):
            raise programs.ProgramError(f"a charge was answered with {answer + content!r}")
    writer.close()


if __name__ == "__main__":
    sys.exit(main())
