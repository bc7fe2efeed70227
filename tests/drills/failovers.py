"""Another PostgreSQL server takes over while clients go on: commits are lost, none is, or the old one lives on."""

import asyncio
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.drills.intentions import Wishes
from tests.drills.operator import begin_if_behind, recover
from tests.drills.pausing import ORDER
from tests.drills.row import Row
from tests.drills.shop import Shop
from tests.drills.site import Edition, Site, lead, shared_site
from tests.drills.told import Meaning
from tests.postgresql_server import PostgresqlServer, running_postgresql, running_standby
from tests.scenarios.waiting import until

PROCESSES = 2
BEFORE_S = 120.0
LAG_S = 3.0
LOAD_S = 7.0
"""How long first tries go on: from the time when the standby falls behind until well after the failover."""
ALARM_S: Final = 20.0
"""How long clients go on before an operator answers the alert."""
PAUSED: Final = 2
RESUMED_AFTER_S: Final = 8.0
"""Less than the ten seconds in which an intent may be sent, and long enough for the failover."""
PAUSING: Final = Edition(
    command=(sys.executable, "-m", "tests.drills.pausing"), settings={"PYTHONPATH": str(Path(__file__).parents[2])}
)


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


class Paused:
    """The first two processes of a site, which stand still between an intent and its sending."""

    def __init__(self, site: Site) -> None:
        self._site = site
        self._since_s = 0.0

    def stop(self, shop: Shop) -> None:
        """Has both stop with their next operation, and clients sent elsewhere."""
        programs = self._site.programs[:PAUSED]
        for program in programs:
            (program.folder / ORDER).touch()
        pids = self._site.pids()[:PAUSED]
        self._since_s = time.monotonic()
        until(lambda: all(map(_stands_still, pids)), "both have stopped", deadline_s=LOAD_S)
        for program in programs:
            shop.ports.remove(program.port)

    def resume_early(self, shop: Shop) -> None:
        """Has the first one go on while it may still send what it had stored."""
        time.sleep(max(0.0, self._since_s + RESUMED_AFTER_S - time.monotonic()))  # the pause is what is drilled
        self._resume(0, shop)

    def resume_late(self, shop: Shop) -> None:
        """Has the second one go on."""
        self._resume(1, shop)

    def _resume(self, place: int, shop: Shop) -> None:
        os.kill(self._site.pids()[place], signal.SIGCONT)
        shop.ports.append(self._site.programs[place].port)


def _stands_still(pid: int) -> bool:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "T"


def asynchronous(operations: int, seed: int) -> Row:
    """The primary dies, and the standby is three seconds behind."""
    with _pair() as pair, ExitStack() as stack:

        def fail(_shop: Shop) -> None:
            pair.primary.kill()
            stack.callback(pair.primary.start)  # so that it can be stopped like any other
            pair.take_over()

        return _failed_over("failover-asynchronous", pair, (operations, seed), fail, is_behind=True)


def synchronous(operations: int, seed: int) -> Row:
    """The primary dies, and each commit waited for the standby."""
    with _pair() as pair, ExitStack() as stack:
        pair.primary.set("synchronous_standby_names", "*")

        def fail(_shop: Shop) -> None:
            pair.primary.kill()
            stack.callback(pair.primary.start)
            pair.take_over()

        return _failed_over("failover-synchronous", pair, (operations, seed), fail)


def moved_writable(operations: int, seed: int) -> Row:
    """The address moves to a promoted standby, and the old primary goes on taking writes."""
    with _pair() as pair:
        return _failed_over("moved-writable", pair, (operations, seed), lambda _shop: pair.take_over())


def moved_read_only(operations: int, seed: int) -> Row:
    """The address moves to a promoted standby, and the old primary was made read-only before."""
    with _pair() as pair:

        def fail(_shop: Shop) -> None:
            pair.primary.set("default_transaction_read_only", "on")
            pair.take_over()

        return _failed_over("moved-read-only", pair, (operations, seed), fail)


def paused(operations: int, seed: int) -> Row:
    """As the asynchronous one; and two processes stand still between an intent, which is lost, and its sending.

    One goes on while it may still send, and the other one when its request was repeated and the recovery is over.
    """
    with _pair() as pair, ExitStack() as stack:
        stopped = Paused(pair.site)

        def fail(shop: Shop) -> None:
            stopped.stop(shop)
            pair.primary.kill()
            stack.callback(pair.primary.start)
            pair.take_over()
            stopped.resume_early(shop)

        return _failed_over("failover-paused", pair, (operations, seed), fail, is_behind=True, paused=stopped)


@contextmanager
def _pair() -> Iterator[Pair]:
    with running_postgresql() as primary, shared_site(primary) as site, running_standby(primary) as standby:
        yield Pair(site, primary, standby)
        site.kill()


def _failed_over(
    name: str,
    pair: Pair,
    size: tuple[int, int],
    fail: Callable[[Shop], None],
    *,
    is_behind: bool = False,
    paused: Paused | None = None,
) -> Row:
    """Tells one failover, from its load to its verdict; the standby is cut off before it where it is behind."""
    (operations, seed), site = size, pair.site
    shop, wishes = site.new_shop(), Wishes(site.gateway, seed, "thing", with_pages=True)
    everything = wishes.draw(operations)
    before, during = everything[: operations // 3], everything[operations // 3 :]
    shop.customers.hesitating |= wishes.hesitating
    if paused is not None:
        site.start(PAUSED, PAUSING)
    shop.ports = site.start(PROCESSES if paused is None else 1)
    asyncio.run(shop.bring(before, within_s=BEFORE_S))

    async def go_on() -> float:
        if is_behind:
            await asyncio.to_thread(pair.standby.set, "primary_conninfo", "")
        clients = asyncio.ensure_future(
            shop.bring(during, within_s=LOAD_S + ALARM_S, lasts_s=LOAD_S, loses_answers=True)
        )
        await asyncio.sleep(LAG_S)  # the lag is what is drilled
        began_s = time.monotonic()
        site.watch.begin()
        await asyncio.to_thread(fail, shop)
        await _look_again(shop)
        await clients
        return began_s

    began_s = asyncio.run(go_on())
    answers = shop.answers()
    site.watch.hold()
    lost = begin_if_behind(site)
    recovered = recover(site, shop, wishes.shuffled(everything), began_s)
    if paused is not None:
        paused.resume_late(shop)
        again = [each for each in everything if shop.last(each) is not Meaning.NEVER]
        asyncio.run(shop.bring(wishes.shuffled(again), within_s=BEFORE_S))
    notes = ["a recovery was begun" if lost else "no commit was missing, and no recovery was begun"]
    notes.append(f"until then: {answers}")
    notes.append(f"brought back: {_brought_back(site)}")
    verdict = site.verdict(shop, everything)
    told_by = site.watch.noticed()
    return Row(name=name, operations=operations, verdict=verdict, recovered=recovered, told_by=told_by, notes=notes)


def _brought_back(site: Site) -> int:
    """Counts the operations that processes which outlived the primary have stored again."""
    lines = [line for program in site.programs for line in program.log_lines()]
    return sum(line["count"] for line in lines if line["event"] == "operations_brought_back")


async def _look_again(shop: Shop) -> None:
    """Has clients ask for what they were told of, while the service finds out."""
    for _ in range(3):
        await shop.read_all(shop.operation_ids())
