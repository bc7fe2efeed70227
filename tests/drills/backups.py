"""A backup is made while clients charge: what it costs them, and how much memory it takes."""

import asyncio
import subprocess
import time
from contextlib import suppress
from pathlib import Path
from typing import Final

from tests.drills.intentions import Intention, Wishes
from tests.drills.row import Row, p99_s
from tests.drills.shop import A_SECOND
from tests.drills.site import Site, embedded_site, postgresql_site
from tests.scenarios.program import PAYRELAY, surroundings

SERVED_WITHIN_S: Final = 120.0
MORE: Final = 8
"""Charges at a time while the backup is made."""


def of_embedded(operations: int, seed: int) -> Row:
    """A backup of an embedded database."""
    with embedded_site() as site:
        return _backed_up("backup-sqlite", site, operations, seed)


def of_postgresql(operations: int, seed: int) -> Row:
    """A backup of a PostgreSQL database."""
    with postgresql_site() as site:
        return _backed_up("backup-postgresql", site, operations, seed)


def _backed_up(name: str, site: Site, operations: int, seed: int) -> Row:
    """Charges for a while without a backup, and as long as a backup takes."""
    shop, wishes = site.new_shop(), Wishes(site.gateway, seed, "thing")
    charges = wishes.charges(operations)
    shop.ports = site.start()
    asyncio.run(shop.bring(charges, within_s=SERVED_WITHIN_S, lasts_s=operations / A_SECOND))
    p99_alone_s, began_s = p99_s(shop), time.monotonic()

    async def go_on() -> tuple[list[Intention], float]:
        made = asyncio.ensure_future(asyncio.to_thread(_back_up, site, "backup"))
        more = await shop.bring_until(made, lambda: wishes.charges(MORE), within_s=SERVED_WITHIN_S)
        return more, await made

    more, peak_mb = asyncio.run(go_on())
    lasted_s = time.monotonic() - began_s
    size_mb = sum(each.stat().st_size for each in (site.folder / "backup").iterdir()) / 1_000_000
    notes = [
        f"p99 without a backup {_ms(p99_alone_s)}",
        f"a backup of {size_mb:.1f} MB took {lasted_s:.1f} s, and {peak_mb:.0f} MB of memory at most",
    ]
    verdict = site.verdict(shop, everything := [*charges, *more])
    return Row(name=name, operations=len(everything), verdict=verdict, p99_s=p99_s(shop, since_s=began_s), notes=notes)


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
