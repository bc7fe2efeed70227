"""Runs the router behind a socket until a signal stops it."""

import asyncio
from contextlib import AsyncExitStack, suppress
from typing import Final

from structlog.typing import FilteringBoundLogger

from payrelay.api import serving
from payrelay.api.http.capacity import raise_files_max
from payrelay.partitions.addresses import addresses_of
from payrelay.partitions.metrics import RouterMetrics
from payrelay.partitions.readiness import watched
from payrelay.partitions.table import PartitionTable
from payrelay.partitions.upstream import Upstream
from payrelay.server import StopSignal, address_of, hangups_logged, stopped_by_signals
from payrelay.settings import Settings

DRAIN_S: Final = 20.0
"""Longer than a partition's own drain, so that its last answers still pass."""


async def route(settings: Settings, host: str, port: int, log: FilteringBoundLogger) -> None:
    """Routes until SIGTERM or SIGINT; raises SettingsError where it can't start."""
    raise_files_max()
    table = PartitionTable(settings.partitions)
    metrics = RouterMetrics()
    async with AsyncExitStack() as stack:
        stop = stack.enter_context(stopped_by_signals())
        stack.enter_context(hangups_logged(log))
        upstream = Upstream()
        stack.push_async_callback(upstream.close)
        router, metrics_address = addresses_of(settings, table, upstream, metrics, log, is_stopping=stop.asked.is_set)
        await stack.enter_async_context(serving.served_beside(metrics_address, settings.metrics_address))
        await stack.enter_async_context(watched(table, upstream, metrics))

        def on_started(bound_host: str, bound_port: int) -> None:
            partitions = [partition.name for partition in table.partitions]
            log.info("routing", address=address_of(bound_host, bound_port), partitions=partitions)

        end = asyncio.Event()
        ending = asyncio.create_task(_end_after(stop, end, settings.shutdown_delay))
        try:
            has_finished = await serving.serve(router, host, port, stop=end, drain_s=DRAIN_S, on_started=on_started)
        finally:
            ending.cancel()
        log.info("stopping", has_finished=has_finished)


async def _end_after(stop: StopSignal, end: asyncio.Event, delay_s: float) -> None:
    """Sets the end ``delay_s`` after the signal to stop, and at once at a second signal."""
    await stop.asked.wait()
    if delay_s:
        with suppress(TimeoutError):
            await asyncio.wait_for(stop.hurried.wait(), delay_s)
    end.set()
