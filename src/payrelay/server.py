"""Runs the service behind a socket until a signal stops it, and ends it cleanly."""

import asyncio
import gc
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

from structlog.typing import FilteringBoundLogger

from payrelay.api import serving
from payrelay.app import running
from payrelay.clock import Clock
from payrelay.runtime.hooks import FlowPoint, OperationPoint
from payrelay.settings import Settings

DRAIN_S: Final = 17.0
"""Time for requests under way at a stop. Together with the end of background work and the server's close, it stays
below the promised 25 s."""
COLLECT_AFTER: Final = (50_000, 20, 100)
"""Thresholds of the garbage collector, by generation. Requests leave hardly any cycles behind: with the usual 700
objects the collector runs several times in each request, and finds nothing."""


async def serve(
    settings: Settings,
    host: str,
    port: int,
    log: FilteringBoundLogger,
    *,
    reached: Callable[[OperationPoint | FlowPoint, str], None] | None = None,
    clock: Clock | None = None,
    may_upgrade: bool = False,
) -> None:
    """Serves until SIGTERM or SIGINT; raises SettingsError, StoreUnusable or StoreUnavailable where it can't start.

    ``reached`` is called at each crash point, with the id of the object that reached it. ``clock`` is the machine's
    where none is given. With ``may_upgrade`` an old database is brought up to date, and otherwise refused.
    """
    with stopped_by_signals() as stop:
        async with running(
            settings, clock=clock or Clock(), log=log, reached=reached, may_upgrade=may_upgrade
        ) as service:

            def on_started(bound_host: str, bound_port: int) -> None:
                log.info(
                    "serving",
                    address=address_of(bound_host, bound_port),
                    database=settings.shown_database,
                    accounts=sorted(settings.gateways),
                    recovered=service.recovered,
                )
                # The objects of the start live as long as the process; the collector need not visit them again.
                gc.collect()
                gc.freeze()
                gc.set_threshold(*COLLECT_AFTER)

            async with serving.metrics_served(service.api.metrics, settings.metrics_address):
                has_finished = await serving.serve(
                    service.api, host, port, stop=stop, on_started=on_started, drain_s=DRAIN_S
                )
            log.info("stopping", has_finished=has_finished)


@contextmanager
def stopped_by_signals() -> Iterator[asyncio.Event]:
    """Gives an event that SIGTERM or SIGINT sets while the context is open."""
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    signals = (signal.SIGINT, signal.SIGTERM)
    for number in signals:
        loop.add_signal_handler(number, stop.set)
    try:
        yield stop
    finally:
        for number in signals:
            loop.remove_signal_handler(number)


def address_of(host: str, port: int) -> str:
    """Returns the URL of an address."""
    return f"http://{f'[{host}]' if ':' in host else host}:{port}"
