"""A backup is made while clients charge: what it costs them, and how much memory it takes."""

import asyncio
import subprocess
import time
from contextlib import suppress
from pathlib import Path
from typing import Final

from tests.drills.intentions import Intention, Wishes
from tests.drills.row import Row, p99_s
from tests.drills.shop import Shop
from tests.drills.site import Site, embedded_site, postgresql_site
from tests.scenarios.program import PAYRELAY, surroundings

LOAD_S: Final = 6.0
SERVED_WITHIN_S: Final = 120.0
BACKUPS_MAX: Final = 50


def of_embedded(operations: int, seed: int) -> Row:
    """A backup of an embedded database."""
    with embedded_site() as site:
        return _backed_up("backup-sqlite", site, operations, seed)


def of_postgresql(operations: int, seed: int) -> Row:
    """A backup of a PostgreSQL database."""
    with postgresql_site() as site:
        return _backed_up("backup-postgresql", site, operations, seed)


def _backed_up(name: str, site: Site, operations: int, seed: int) -> Row:
    """Charges for a while without a backup, and for a while beside one after the other."""
    shop, wishes = site.new_shop(), Wishes(site.gateway, seed, "thing")
    charges = wishes.charges(operations)
    alone, beside = charges[: operations // 2], charges[operations // 2 :]
    shop.ports = site.start()
    asyncio.run(shop.bring(alone, within_s=SERVED_WITHIN_S, lasts_s=LOAD_S))
    p99_alone_s, began_s = p99_s(shop), time.monotonic()
    times_s, peak_mb = asyncio.run(_charge_beside(site, shop, beside))
    p99_beside_s = p99_s(shop, since_s=began_s)
    notes = [
        f"p99 without a backup {_ms(p99_alone_s)}",
        f"{len(times_s)} backups, the longest of {max(times_s):.1f} s, with {peak_mb:.0f} MB of memory at most",
    ]
    verdict = site.verdict(shop, charges)
    return Row(name=name, operations=operations, verdict=verdict, p99_s=p99_beside_s, notes=notes)


async def _charge_beside(site: Site, shop: Shop, charges: list[Intention]) -> tuple[list[float], float]:
    """Charges while backups are made, one after the other; gives how long each took, and the most memory of one."""
    clients = asyncio.ensure_future(shop.bring(charges, within_s=SERVED_WITHIN_S, lasts_s=LOAD_S))
    times_s: list[float] = []
    peak_mb = 0.0
    for number in range(BACKUPS_MAX):
        began_s = time.monotonic()
        peak_mb = max(peak_mb, await asyncio.to_thread(_back_up, site, f"backup-{number}"))
        times_s.append(time.monotonic() - began_s)
        if clients.done():
            break
    await clients
    return times_s, peak_mb


def _back_up(site: Site, folder: str) -> float:
    """Makes a backup; gives the most memory that it took, in megabytes."""
    command = [PAYRELAY, "backup", folder]
    peak_kb = 0
    with subprocess.Popen(
        command, cwd=site.folder, env=surroundings(site.environment), stdout=subprocess.DEVNULL
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
