"""Asks each partition every few seconds whether it is ready, for the metrics alone: no request waits for that."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from typing import Final

from payrelay.partitions.metrics import RouterMetrics
from payrelay.partitions.table import Partition, PartitionTable
from payrelay.partitions.upstream import AnswerLostError, UnreachableError, Upstream

ASKED_EVERY_S: Final = 5.0
ANSWER_WITHIN_S: Final = 4.0
OK: Final = 200


async def is_ready(upstream: Upstream, partition: Partition) -> bool:
    """Tells whether a process of the partition calls itself ready; raises nothing."""
    with suppress(UnreachableError, AnswerLostError, TimeoutError):
        async with (
            asyncio.timeout(ANSWER_WITHIN_S),
            upstream.answered(partition, "GET", "/health/ready", (), b"") as response,
        ):
            return response.status == OK
    return False


@asynccontextmanager
async def watched(
    table: PartitionTable,
    upstream: Upstream,
    metrics: RouterMetrics,
    pause: Callable[[float], Awaitable[None]] = asyncio.sleep,
) -> AsyncIterator[None]:
    """Keeps the metrics of readiness while the context is open; each partition was asked once before it opens."""

    async def ask(partition: Partition) -> None:
        metrics.ready(partition.name, is_ready=await is_ready(upstream, partition))

    async def keep(partition: Partition) -> None:
        while True:
            await pause(ASKED_EVERY_S)
            await ask(partition)

    await asyncio.gather(*map(ask, table.partitions))
    keeping = [asyncio.create_task(keep(partition)) for partition in table.partitions]
    try:
        yield
    finally:
        for task in keeping:
            task.cancel()
        await asyncio.gather(*keeping, return_exceptions=True)
