"""Another PostgreSQL server takes over while clients go on: commits are lost, none is, or the old one lives on."""

import asyncio
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

from tests.drills.intentions import Wishes
from tests.drills.operator import begin_if_behind, recover
from tests.drills.row import Row
from tests.drills.shop import Shop
from tests.drills.site import Site, lead, shared_site
from tests.postgresql_server import PostgresqlServer, running_postgresql, running_standby

PROCESSES = 2
BEFORE_S = 120.0
LAG_S = 3.0
LOAD_S = 7.0
"""How long first tries go on: from the time when the standby falls behind until well after the failover."""
ALARM_S = 20.0
"""How long clients go on before an operator answers the alert."""


@dataclass(frozen=True)
class Pair:
    """A primary, its standby, and the service on the one that its address leads to."""

    site: Site
    primary: PostgresqlServer
    standby: PostgresqlServer

    def take_over(self) -> None:
        """Promotes the standby, and has the address lead to it."""
        self.standby.promote()
        lead(self.site, self.standby)


def asynchronous(operations: int, seed: int) -> Row:
    """The primary dies, and the standby is three seconds behind."""
    with _pair() as pair, ExitStack() as stack:

        def fail() -> None:
            pair.primary.kill()
            stack.callback(pair.primary.start)  # so that it can be stopped like any other
            pair.take_over()

        return _failed_over("failover-asynchronous", pair, (operations, seed), fail, is_behind=True)


def synchronous(operations: int, seed: int) -> Row:
    """The primary dies, and each commit waited for the standby."""
    with _pair() as pair, ExitStack() as stack:
        pair.primary.set("synchronous_standby_names", "*")

        def fail() -> None:
            pair.primary.kill()
            stack.callback(pair.primary.start)
            pair.take_over()

        return _failed_over("failover-synchronous", pair, (operations, seed), fail)


def moved_writable(operations: int, seed: int) -> Row:
    """The address moves to a promoted standby, and the old primary goes on taking writes."""
    with _pair() as pair:
        return _failed_over("moved-writable", pair, (operations, seed), pair.take_over)


def moved_read_only(operations: int, seed: int) -> Row:
    """The address moves to a promoted standby, and the old primary was made read-only before."""
    with _pair() as pair:

        def fail() -> None:
            pair.primary.set("default_transaction_read_only", "on")
            pair.take_over()

        return _failed_over("moved-read-only", pair, (operations, seed), fail)


@contextmanager
def _pair() -> Iterator[Pair]:
    with running_postgresql() as primary, shared_site(primary) as site, running_standby(primary) as standby:
        yield Pair(site, primary, standby)
        site.kill()


def _failed_over(
    name: str, pair: Pair, size: tuple[int, int], fail: Callable[[], None], *, is_behind: bool = False
) -> Row:
    """Tells one failover, from its load to its verdict; the standby is cut off before it where it is behind."""
    (operations, seed), site = size, pair.site
    shop, wishes = site.new_shop(), Wishes(site.gateway, seed, "thing", with_pages=True)
    everything = wishes.draw(operations)
    before, during = everything[: operations // 3], everything[operations // 3 :]
    shop.customers.hesitating |= wishes.hesitating
    shop.ports = site.start(PROCESSES)
    asyncio.run(shop.bring(before, within_s=BEFORE_S))

    async def go_on() -> float:
        if is_behind:
            await asyncio.to_thread(pair.standby.set, "primary_conninfo", "")
        clients = asyncio.ensure_future(
            shop.bring(during, within_s=LOAD_S + ALARM_S, lasts_s=LOAD_S, loses_answers=True)
        )
        await asyncio.sleep(LAG_S)  # the lag is what is drilled
        began_s = time.monotonic()
        await asyncio.to_thread(fail)
        await _look_again(shop)
        await clients
        return began_s

    began_s = asyncio.run(go_on())
    answers = shop.answers()
    lost = begin_if_behind(site)
    recovered = recover(site, shop, wishes.shuffled(everything), began_s)
    notes = ["a recovery was begun" if lost else "no commit was missing, and no recovery was begun"]
    notes.append(f"until then: {answers}")
    verdict = site.verdict(shop, everything)
    return Row(name=name, operations=operations, verdict=verdict, recovered=recovered, notes=notes)


async def _look_again(shop: Shop) -> None:
    """Has clients ask for what they were told of, while the service finds out."""
    for _ in range(3):
        await shop.read_all(shop.operation_ids())
