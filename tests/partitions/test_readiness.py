"""The watch over partitions: what the router's metrics say of each, at the start and from then on."""

import asyncio
from collections.abc import AsyncIterator

import pytest
from tests.partitions.partition_double import PartitionDouble, nobody, partition_at

from payrelay.partitions.metrics import RouterMetrics
from payrelay.partitions.readiness import ASKED_EVERY_S, is_ready, watched
from payrelay.partitions.table import Partition, PartitionTable
from payrelay.partitions.upstream import Upstream
from payrelay.settings import Settings

STOPPING = b"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\n\r\n"


@pytest.fixture
async def upstream() -> AsyncIterator[Upstream]:
    """The router's connections."""
    made = Upstream(silence_s=5)
    yield made
    await made.close()


@pytest.fixture
async def east() -> AsyncIterator[PartitionDouble]:
    """A partition that answers 200."""
    async with partition_at() as double:
        yield double


async def shown(metrics: RouterMetrics) -> dict[str, str]:
    """Gives what the metrics say of each partition."""
    lines = (await metrics.text()).decode().splitlines()
    ready = [line for line in lines if line.startswith("payrelay_router_partition_ready{")]
    return {line.split('"')[1]: line.rpartition(" ")[2] for line in ready}


@pytest.mark.parametrize(("reply", "said"), [(b"", False), (STOPPING, False), (None, True)])
async def test_a_partition_is_ready_where_it_says_so(
    upstream: Upstream, east: PartitionDouble, reply: bytes | None, *, said: bool
) -> None:
    """One that answers, but says that it stops, or hangs up, must not be shown as well."""
    east.reply = east.reply if reply is None else reply

    assert await is_ready(upstream, Partition(name="east", addresses=(east.address,))) is said
    assert east.heads()[0] == "GET /health/ready HTTP/1.1"


async def test_a_partition_that_is_away_is_not_ready(upstream: Upstream) -> None:
    """It is noted, and raises nothing: the watch over the others goes on."""
    assert await is_ready(upstream, Partition(name="east", addresses=(nobody(),))) is False


async def test_each_partition_is_asked_at_the_start_and_every_few_seconds(
    upstream: Upstream, east: PartitionDouble
) -> None:
    """An alert rests on it: a partition that comes back, or goes, must be shown so without a request to it."""
    settings = Settings.model_validate(
        {
            "partitions": {
                "east": {"address": east.address, "accounts": "shop"},
                "west": {"address": nobody(), "accounts": "club"},
            }
        }
    )
    pauses: list[float] = []
    turns: dict[str, asyncio.Event] = {name: asyncio.Event() for name in ("begun", "go", "again")}

    async def pause(seconds: float) -> None:
        pauses.append(seconds)
        if len(pauses) == len(settings.partitions):
            turns["begun"].set()
        if len(pauses) == 2 * len(settings.partitions):
            turns["again"].set()
        if len(pauses) > len(settings.partitions):
            await asyncio.Event().wait()
        await turns["go"].wait()

    metrics = RouterMetrics()
    async with asyncio.timeout(30), watched(PartitionTable(settings.partitions), upstream, metrics, pause):
        assert await shown(metrics) == {"east": "1.0", "west": "0.0"}
        await turns["begun"].wait()
        east.reply = STOPPING
        turns["go"].set()
        await turns["again"].wait()
        assert await shown(metrics) == {"east": "0.0", "west": "0.0"}
        assert set(pauses) == {ASKED_EVERY_S}
    assert [task for task in asyncio.all_tasks() if "watched" in repr(task)] == []
