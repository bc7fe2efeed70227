"""A genuine notification that is posted again under made-up payment numbers: what it costs, by the gateway's calls.

Only five fields of a notification are signed. Whoever gets one can post it in any number of disguises, for nothing.
"""

import asyncio
import base64
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

import pytest
from tests.draws import drawn_uuid
from tests.scenarios.program import Program, free_port, simulated_account
from tests.scenarios.test_gateway_notifications import Scene, until
from tests.scenarios.test_notifications import listed, post

import payrelay_simulator

if TYPE_CHECKING:
    from tests.conftest import PostgresqlServer

DISGUISES = 199
"""With the genuine one, as many of an order as are stored in a day."""
HONEST = 5
SLOTS_S = (0.0, 2.0, 7.0, 22.0, 82.0)
"""When an order may be searched for, after the first search: the pauses are 2, 5, 15 and 60 seconds."""
TOLERANCE_S = 0.5
"""By which two calls may arrive closer together than they were made."""


@asynccontextmanager
async def scenes(folder: Path, store: dict[str, str], number: int) -> AsyncIterator[list[Scene]]:
    """Starts services on one database, with the gateway's usual budget; the gateway posts to the first of them."""
    simulator = payrelay_simulator.Simulator()
    async with payrelay_simulator.serve(simulator) as running:
        port = free_port()
        settings = simulated_account(running.base_url, simulator.merchant, RATE_LIMIT="20/10s")
        settings |= store | {"PAYRELAY_PUBLIC_URL": f"http://127.0.0.1:{port}"}
        programs = []
        for place in range(number):
            (folder / str(place)).mkdir()
            programs.append(Program(folder / str(place), settings))
        if store:
            upgraded = await asyncio.to_thread(programs[0].run, "db", "upgrade")
            assert upgraded.returncode == 0, upgraded.stderr
        key = await asyncio.to_thread(programs[0].new_key, "shop")
        try:
            for place, program in enumerate(programs):
                await asyncio.to_thread(program.start, port if place == 0 else None)
            yield [Scene(program=program, gateway=running, client=program.client(key)) for program in programs]
        finally:
            for program in programs:
                await asyncio.to_thread(program.kill)


def searches(scene: Scene, order_id: object) -> list[float]:
    """Gives when the gateway was searched for an order; seconds of its own clock."""
    calls = scene.gateway.simulator.world.calls.records()
    return [each.arrived_monotonic_s for each in calls if (each.method, each.order_id) == ("GET", order_id)]


async def disguised(scenes: Sequence[Scene], fields: dict[str, str]) -> None:
    """Posts a notification of the gateway's under made-up payment numbers, to all services in turn."""
    bodies = [urlencode(fields | {"payment_id": str(320_099_000_000 + number)}).encode() for number in range(DISGUISES)]
    posting = [asyncio.to_thread(post, scenes[number % len(scenes)].client, body) for number, body in enumerate(bodies)]
    assert {reply.status for reply in await asyncio.gather(*posting)} == {200}


async def paid(scene: Scene) -> dict[str, Any]:
    """Opens a checkout, pays it on the gateway's page, and waits until it is completed."""
    checkout = await scene.opened()
    scene.pay(checkout)
    await scene.finished(checkout)
    return checkout


def is_within_slots(calls: list[float]) -> bool:
    """Tells whether no slot of the schedule took two of the calls; any pause may have been longer."""
    pauses = [after - before for before, after in pairwise(SLOTS_S)]
    found = [after - before for before, after in pairwise(calls)]
    return len(found) <= len(pauses) and all(
        pause >= least - TOLERANCE_S for pause, least in zip(found, pauses, strict=False)
    )


async def flood(scenes: list[Scene]) -> None:
    """Has one order's notification disguised two hundred times, and honest customers pay meanwhile."""
    first, last = scenes[0], scenes[-1]
    victim = await paid(first)
    (genuine,) = first.gateway.simulator.world.notifications.records(order_id=victim["order_id"])
    await disguised(scenes, genuine.fields)
    honest = await asyncio.gather(*(paid(scene) for scene in (first, last, first, last, first)[:HONEST]))

    async def rows() -> list[dict[str, Any]]:
        return await asyncio.to_thread(
            listed, first.program, "--order", victim["order_id"], "--state", "waiting", "--limit", "1000"
        )

    waiting = await until(rows, lambda found: len(found) == DISGUISES)
    assert {row["reason"] for row in waiting} <= {"not_shown", "search_waits"}
    assert [len(searches(first, each["order_id"])) for each in honest] == [1] * HONEST
    assert is_within_slots(searches(first, victim["order_id"]))


async def test_two_hundred_disguises_cost_one_search_a_slot(tmp_path: Path) -> None:
    """Else they use up the budget, and every honest customer waits for minutes until the shop hears of the payment."""
    async with scenes(tmp_path, {}, 1) as running:
        await flood(running)


@pytest.mark.postgresql
@pytest.mark.integration
async def test_two_services_share_the_slots(tmp_path: Path, postgresql_server: "PostgresqlServer") -> None:
    """The schedule is the order's and not a process's: more processes make no more calls."""
    name = f"searches_{drawn_uuid().hex}"
    postgresql_server.run("createdb", "-h", str(postgresql_server.folder), "-U", "payrelay", name)
    store = {
        "PAYRELAY_DATABASE_URL": postgresql_server.url(name),
        "PAYRELAY_ENCRYPTION_KEY": base64.b64encode(bytes(range(32))).decode(),
    }
    async with scenes(tmp_path, store, 2) as running:
        await flood(running)
