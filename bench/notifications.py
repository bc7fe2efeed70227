"""Measures how soon a gateway's notification is answered, which is when it is stored, at a given rate.

    python bench/notifications.py [--rates 100,300] [--seconds 10] [--only sqlite,postgresql] [--keep-docs]

The real program takes them, on a core of its own, with all that is on in service; it looks at the gateway for each of
them meanwhile, as it does in service. They come at their moments whether earlier ones were answered or not, and the
time of each counts from the moment at which it should have come: a stall makes all that come in it late. It fails where
one was not answered 200, or not stored; an aim that is missed is reported and no error, and on a busy machine it is not
judged.
"""

import argparse
import asyncio
import hashlib
import os
import re
import secrets
import statistics
import sys
import tempfile
import time
import urllib.parse
from collections.abc import Callable
from pathlib import Path

import aiohttp
import msgspec

import measure
import programs
import results
import section
import upstream
from contenders import Contender, PayrelayPostgresql, PayrelaySqlite, Served, Setting

AIM_MS = 50.0
"""At most, of the 99th percentile."""
WARM_UP_S = 8.0
"""PostgreSQL is busy with itself for some seconds after its start; in service that is long over."""
CONNECTIONS = 32
"""The gateway has several servers; more than are ever under way at once, or the client would wait for itself."""
STORES: dict[str, Callable[[Setting], Contender]] = {"sqlite": PayrelaySqlite, "postgresql": PayrelayPostgresql}
MERCHANT_ID, MERCHANT_SECRET = "1210000", "bench"
"""As in ``contenders``."""
STORED = re.compile(r"^payrelay_notifications_total\{[^}]*genuine[^}]*\} (\S+)$", re.MULTILINE)


class Found(msgspec.Struct, frozen=True, kw_only=True):
    """What one measurement came to, with the processor time of each notification and of all that follows from it."""

    store: str
    rate: int
    count: int
    p50_ms: float
    p99_ms: float
    max_ms: float
    cpu_us: float
    database_cpu_us: float
    foreign_share: float

    @property
    def cells(self) -> list[str]:
        """One row of the table."""
        times = [f"{value:.1f} ms" for value in (self.p50_ms, self.p99_ms, self.max_ms)]
        is_judged = self.foreign_share <= results.CALM_SHARE
        verdict = "met" if self.p99_ms <= AIM_MS else "missed" if is_judged else "not judged: the machine was busy"
        database = f"{self.database_cpu_us:,.0f} µs" if self.database_cpu_us else "-"
        cpu = [f"{self.cpu_us:,.0f} µs", database, f"{self.foreign_share:.0%}"]
        return [self.store, f"{self.rate}/s", f"{self.count:,}", *times, verdict, *cpu]


HEAD = [
    *("store", "rate", "notifications", "p50", "p99", "longest", f"p99 of at most {AIM_MS:.0f} ms"),
    *("CPU each", "database's", "other work"),
]


def main() -> int:
    """Measures, prints, and writes its section of the docs."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rates", default="100,300", help="notifications a second, by comma")
    parser.add_argument("--seconds", type=int, default=10)
    parser.add_argument("--only", default=",".join(STORES), help=f"which stores, by comma ({','.join(STORES)})")
    parser.add_argument("--keep-docs", action="store_true", help="leave docs/ alone")
    wanted = parser.parse_args()
    rates = [int(rate) for rate in wanted.rates.split(",")]
    try:
        found = measured(wanted.only.split(","), rates, wanted.seconds)
    except programs.ProgramError as error:
        print(f"bench: {error}", file=sys.stderr)
        return 1
    if not wanted.keep_docs:
        rows = [HEAD, ["---", *["---:"] * (len(HEAD) - 1)], *(one.cells for one in found)]
        section.write("notifications", [f"| {' | '.join(row)} |" for row in rows])
    return 0


def measured(stores: list[str], rates: list[int], seconds: int) -> list[Found]:
    """Measures each store at each rate, and prints what it comes to."""
    found = []
    # Not /tmp, which may be memory: a durable write must cost here what it costs in service.
    with tempfile.TemporaryDirectory(prefix="payrelay-bench-", dir="/var/tmp", ignore_cleanup_errors=True) as name:
        folder, cores = Path(name), programs.cores()
        folder.chmod(0o711)
        os.sched_setaffinity(0, {cores.load})
        with upstream.running(folder, cores.load) as gateway:
            setting = Setting(folder=folder, cores=cores, gateway=gateway)
            for store in stores:
                with STORES[store](setting).served() as served:
                    asyncio.run(load(served, 50, WARM_UP_S))
                    for rate in rates:
                        before = measure.clocks(served, gateway)
                        times_ms = asyncio.run(load(served, rate, seconds))
                        spent = (before, measure.clocks(served, gateway))
                        found.append(one := found_of(store, rate, times_ms, spent))
                        print("   ".join(one.cells))
    return found


def found_of(store: str, rate: int, times_ms: list[float], spent: tuple[measure.Clocks, measure.Clocks]) -> Found:
    """Gives what the times come to."""
    before, after = spent
    percentiles = statistics.quantiles(times_ms, n=100, method="inclusive")
    return Found(
        store=store,
        rate=rate,
        count=len(times_ms),
        p50_ms=percentiles[49],
        p99_ms=percentiles[98],
        max_ms=max(times_ms),
        cpu_us=(after.server_s - before.server_s) / len(times_ms) * 1e6,
        database_cpu_us=(after.database_s - before.database_s) / len(times_ms) * 1e6,
        foreign_share=measure.foreign_share(before, after),
    )


async def load(served: Served, rate: int, seconds: float) -> list[float]:
    """Posts notifications at a rate; gives how long each took, in milliseconds. Each must be answered and stored."""
    before = stored(served.port)
    bodies = [notification() for _ in range(int(rate * seconds))]
    url = f"http://{programs.HOST}:{served.port}/gateway/notifications"
    connector = aiohttp.TCPConnector(limit=CONNECTIONS)
    async with aiohttp.ClientSession(connector=connector, timeout=aiohttp.ClientTimeout(total=30)) as session:

        async def post(body: bytes, at_s: float) -> float:
            await asyncio.sleep(max(0.0, at_s - time.perf_counter()))
            headers = {"Content-Type": "application/x-www-form-urlencoded"}
            async with session.post(url, data=body, headers=headers) as response:
                await response.read()
                assert response.status == 200, f"answered with HTTP {response.status}"
            return (time.perf_counter() - at_s) * 1000

        begins_s = time.perf_counter() + 0.2
        times_ms = await asyncio.gather(*(post(body, begins_s + n / rate) for n, body in enumerate(bodies)))
    lacking = len(bodies) - (stored(served.port) - before)
    assert lacking == 0, f"{lacking} notifications were answered and not stored"
    return list(times_ms)


def stored(port: int) -> int:
    """Asks how many notifications were stored as the gateway's own."""
    text = programs.fetch(port, "/metrics").body.decode()
    return int(sum(float(value) for value in STORED.findall(text)))


def notification() -> bytes:
    """Writes the notification of a payment, signed, for an order of its own."""
    order_id = f"Order{secrets.token_hex(8)}"
    signed = [MERCHANT_ID, order_id, "345.67", "LKR", "2", _md5(MERCHANT_SECRET)]
    fields = {
        "merchant_id": MERCHANT_ID,
        "order_id": order_id,
        "payment_id": "320025071278",
        "payhere_amount": "345.67",
        "payhere_currency": "LKR",
        "status_code": "2",
        "md5sig": _md5("".join(signed)),
        "custom_1": "",
        "custom_2": "",
        "method": "VISA",
        "status_message": "Successfully completed the payment.",
        "card_holder_name": "S Perera",
        "card_no": "************1292",
        "card_expiry": "01/30",
    }
    return urllib.parse.urlencode(fields).encode()


def _md5(text: str) -> str:
    return hashlib.md5(text.encode(), usedforsecurity=False).hexdigest().upper()


if __name__ == "__main__":
    sys.exit(main())
