"""The books go back to a backup, while clients go on: with the recovery as documented, and without it."""

import asyncio
import shutil
import time
from collections.abc import Sequence

from tests.drills.intentions import Intention, Wishes
from tests.drills.operator import recover
from tests.drills.row import Row
from tests.drills.shop import Shop, patience_s
from tests.drills.site import Site, embedded_site, postgresql_site
from tests.scenarios.restoring import commands_of_page, typed_in
from tests.scenarios.waiting import until

BEFORE_S, LOST_S = 120.0, 240.0
KILLED_WITHIN_S = 240.0


def restored_embedded(operations: int, seed: int) -> Row:
    """A backup of an embedded database is restored."""
    with embedded_site() as site:
        return _restored(site, "restore-sqlite", operations, seed)


def restored_postgresql(operations: int, seed: int) -> Row:
    """A backup of a PostgreSQL database is brought back as the page says; two processes serve it."""
    with postgresql_site() as site:
        return _restored(site, "restore-postgresql", operations, seed)


def unrecovered_embedded(operations: int, seed: int) -> Row:
    """A planted mistake: the database file is put back, and the marks with it, and nobody begins a recovery."""
    with embedded_site() as site:
        shop, wishes = site.new_shop(), Wishes(site.gateway, seed, "mistake")
        before, lost = _halves(wishes, operations)
        shop.ports = site.start()
        asyncio.run(shop.bring(before, within_s=BEFORE_S))
        site.stop()
        shutil.copy(site.folder / "payrelay.db", site.folder / "backup.db")
        site.start_again()
        asyncio.run(shop.bring(lost, within_s=LOST_S, loses_answers=True))
        site.kill()
        for path in site.folder.glob("payrelay.db*"):
            path.unlink()
        shutil.rmtree(site.folder / "marks", ignore_errors=True)
        shutil.copy(site.folder / "backup.db", site.folder / "payrelay.db")
        site.start_again()
        asyncio.run(shop.bring([*before, *lost], within_s=BEFORE_S))
        verdict = site.verdict(shop, [*before, *lost])
    return Row(name="mistake: no recovery", operations=operations, verdict=verdict)


def _restored(site: Site, name: str, operations: int, seed: int) -> Row:
    url = site.environment["PAYRELAY_DATABASE_URL"]
    is_embedded = url.startswith("sqlite")
    shop, wishes = site.new_shop(), Wishes(site.gateway, seed, "thing", with_pages=True)
    before, lost = _halves(wishes, operations)
    shop.ports = site.start(1 if is_embedded else 2)
    shop.customers.hesitating |= wishes.hesitating
    asyncio.run(shop.bring(before, within_s=BEFORE_S))
    site.command("backup", str(site.folder / "backup"))
    asyncio.run(_lose(site, shop, lost))
    began_s = time.monotonic()
    site.watch.begin()
    if is_embedded:
        site.command("restore", str(site.folder / "backup"), "--replace", "payrelay.db", "--note", "a drill", "--yes")
    else:
        assert typed_in(site.folder, site.environment, commands_of_page(url, site.folder / "backup")) == 0
    site.start_again()
    everything = wishes.shuffled([*before, *lost])
    recovered = recover(site, shop, everything, began_s)
    verdict, told_by = site.verdict(shop, everything), site.watch.noticed()
    return Row(name=name, operations=operations, verdict=verdict, recovered=recovered, told_by=told_by)


def _halves(wishes: Wishes, operations: int) -> tuple[list[Intention], list[Intention]]:
    """Gives what is done before the backup, and what comes after it; some of that acts on what was made before."""
    drawn = wishes.draw(operations)
    made = operations // 3
    return drawn[:made], drawn[made:]


async def _lose(site: Site, shop: Shop, lost: Sequence[Intention]) -> None:
    """Lets clients go on, and kills the service when most of them have been answered."""
    clients = asyncio.ensure_future(shop.bring(lost, within_s=LOST_S, loses_answers=True))
    enough, limit_s = len(lost) * 9 // 10, patience_s(KILLED_WITHIN_S, len(lost))

    def are_enough() -> bool:
        return clients.done() or sum(each.name in shop.told for each in lost) >= enough

    await asyncio.to_thread(until, are_enough, "most of them were answered", deadline_s=limit_s)
    await asyncio.to_thread(site.kill)
    clients.cancel()
    await asyncio.gather(clients, return_exceptions=True)
