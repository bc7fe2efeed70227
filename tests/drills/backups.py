"""A backup is made while clients charge: what it costs them, and how much memory it takes."""

import asyncio
import sqlite3
import subprocess
import time
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path
from typing import Final

import asyncpg
from tests.drills.intentions import Intention, Wishes
from tests.drills.row import Row, p99_s
from tests.drills.shop import A_SECOND
from tests.drills.site import Site, embedded_site, postgresql_site
from tests.scenarios.program import PAYRELAY, surroundings

SERVED_WITHIN_S: Final = 120.0
MORE: Final = 8
"""Charges at a time while the backup is made."""
BACKED_UP_WITHIN_S: Final = 600.0
ROWS_OF_MB: Final = 1_000
FILL_SQLITE: Final = """INSERT INTO readings (merchant, subject, sealed, read_at_ms)
    WITH RECURSIVE s(n) AS (SELECT 1 WHERE :rows > 0 UNION ALL SELECT n + 1 FROM s WHERE n < :rows)
    SELECT 'ballast', 'ballast/' || n, randomblob(950), :now_ms FROM s"""
FILL_POSTGRESQL: Final = """INSERT INTO readings (merchant, subject, sealed, read_at_ms)
    SELECT 'ballast', 'ballast/' || n,
        (SELECT string_agg(sha512((n || '/' || i)::bytea), '') FROM generate_series(1, 15) AS i), $2
    FROM generate_series(1::bigint, $1::bigint) AS n"""
"""Rows of a kilobyte that can't be compressed, in a table that nobody's charge reads."""


def of_embedded(operations: int, seed: int, megabytes: int = 0) -> Row:
    """A backup of an embedded database, with so much in it already."""
    with embedded_site() as site:
        return _backed_up("backup-sqlite", site, (operations, seed), lambda: _fill_embedded(site, megabytes))


def of_postgresql(operations: int, seed: int, megabytes: int = 0) -> Row:
    """A backup of a PostgreSQL database, with so much in it already."""
    with postgresql_site() as site:
        return _backed_up("backup-postgresql", site, (operations, seed), lambda: _fill_shared(site, megabytes))


def _fill_embedded(site: Site, megabytes: int) -> None:
    with closing(sqlite3.connect(site.folder / "payrelay.db", isolation_level=None)) as connection:
        connection.execute(FILL_SQLITE, {"rows": megabytes * ROWS_OF_MB, "now_ms": time.time_ns() // 1_000_000})
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")


def _fill_shared(site: Site, megabytes: int) -> None:
    async def fill() -> None:
        connection = await asyncpg.connect(site.environment["PAYRELAY_DATABASE_URL"])
        try:
            await connection.execute(FILL_POSTGRESQL, megabytes * ROWS_OF_MB, time.time_ns() // 1_000_000)
        finally:
            await connection.close()

    asyncio.run(fill())


def _backed_up(name: str, site: Site, size: tuple[int, int], fill: Callable[[], None]) -> Row:
    """Charges for a while without a backup, and as long as a backup takes."""
    operations, seed = size
    shop, wishes = site.new_shop(), Wishes(site.gateway, seed, "thing")
    fill()
    charges = wishes.charges(operations)
    shop.ports = site.start()
    asyncio.run(shop.bring(charges, within_s=SERVED_WITHIN_S, lasts_s=operations / A_SECOND))
    p99_alone_s, began_s = p99_s(shop), time.monotonic()

    async def go_on() -> tuple[list[Intention], float]:
        made = asyncio.ensure_future(asyncio.to_thread(_back_up, site, "backup"))
        more = await shop.bring_until(made, lambda: wishes.charges(MORE), within_s=BACKED_UP_WITHIN_S)
        return more, await made

    more, peak_mb = asyncio.run(go_on())
    lasted_s = time.monotonic() - began_s
    size_mb = sum(each.stat().st_size for each in (site.folder / "backup").iterdir()) / 1_000_000
    notes = [
        f"p99 without a backup {_ms(p99_alone_s)}",
        f"a backup of {size_mb:.1f} MB took {lasted_s:.1f} s, and {peak_mb:.0f} MB of memory at most",
    ]
    verdict = site.verdict(shop, everything := [*charges, *more])
    return Row(
        name=name,
        operations=len(everything),
        verdict=verdict,
        p99_s=p99_s(shop, since_s=began_s),
        harms=False,
        told_by=site.watch.noticed(),
        notes=notes,
    )


def _back_up(site: Site, folder: str) -> float:
    """Makes a backup; gives the most memory that it took, in megabytes."""
    command = [str(PAYRELAY), "backup", folder]
    peak_kb = 0
    with subprocess.Popen(
        command,
        cwd=site.folder,
        env=surroundings(site.environment),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    ) as process:
        status = Path(f"/proc/{process.pid}/status")
        while process.poll() is None:
            with suppress(OSError, StopIteration):  # it ends meanwhile
                line = next(each for each in status.read_text().splitlines() if each.startswith("VmHWM"))
                peak_kb = int(line.split()[1])
            time.sleep(0.02)  # nothing tells of memory
    if process.returncode:
        raise AssertionError(f"the backup ended with {process.returncode}")
    return peak_kb / 1024


def _ms(seconds: float | None) -> str:
    return "unknown" if seconds is None else f"{seconds * 1000:.0f} ms"
