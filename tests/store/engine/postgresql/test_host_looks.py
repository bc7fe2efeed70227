"""Looks at several hosts: one that doesn't answer holds up no other, and what it shows late counts all the same."""

import asyncio
from typing import Final

import pytest

from payrelay.clock import Clock
from payrelay.store.engine.postgresql.hosts import Host, hosts_of
from payrelay.store.engine.postgresql.servers import Server, Sighting, Verdict
from payrelay.store.engine.postgresql.watching import HostLooks

URL: Final = "postgresql://payrelay@one,two/payrelay"
ONE, TWO = hosts_of(URL)
FIRST: Final = Server("7", 1, 5, 9)
PROMOTED: Final = Server("7", 2, 5, 9)


def _at(host: Host, server: Server | None) -> Sighting:
    return Sighting(host=host, server=server, started="1", is_pooled=False, is_durable=True)


class Scripted:
    """Hosts that answer when a test lets them; ``asked`` counts the looks at each."""

    def __init__(self) -> None:
        self.shown: dict[Host, asyncio.Future[Sighting]] = {}
        self.asked: dict[Host, int] = {}

    async def look(self, host: Host, _timeout_s: float) -> Sighting:
        """Waits for what the host shows."""
        self.asked[host] = self.asked.get(host, 0) + 1
        return await self.shown.setdefault(host, asyncio.get_running_loop().create_future())

    def show(self, host: Host, server: Server | None) -> None:
        """Lets a host answer, now and at each further look."""
        self.shown.setdefault(host, asyncio.get_running_loop().create_future()).set_result(_at(host, server))


async def test_a_host_that_does_not_answer_holds_up_no_other() -> None:
    """After each failover the earlier primary is such a host: no charge may wait for it."""
    access = Scripted()
    looks = HostLooks((ONE, TWO), access.look, Clock())
    access.show(ONE, FIRST)
    for _ in range(2):
        verdict, sighting, _ = await looks.judged(_at(ONE, FIRST))
        assert (verdict, sighting) == (Verdict.SAME, _at(ONE, FIRST))
    assert access.asked == {ONE: 2, TWO: 1}

    access.show(TWO, PROMOTED)
    verdict, sighting, _ = await looks.judged(_at(ONE, FIRST))
    assert (verdict, sighting) == (Verdict.CHANGED, _at(TWO, PROMOTED))
    await looks.end()


async def test_where_no_host_shows_a_server_its_error_is_told() -> None:
    """The operator reads in the log why nothing is stored."""
    access = Scripted()
    looks = HostLooks((ONE, TWO), access.look, Clock())
    for host in (ONE, TWO):
        access.shown[host] = asyncio.get_running_loop().create_future()
        access.shown[host].set_exception(ConnectionRefusedError("refused"))
    with pytest.raises(ConnectionRefusedError):
        await looks.judged(_at(ONE, FIRST))
    await looks.end()
