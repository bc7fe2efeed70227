"""Runs the service behind a socket until a signal stops it, and ends it cleanly."""

import asyncio
import gc
import signal
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from typing import Final

from structlog.typing import FilteringBoundLogger

from payrelay.api import serving
from payrelay.api.address import AddressBeside
from payrelay.api.console_door import ConsoleDoor
from payrelay.api.http.capacity import raise_files_max
from payrelay.app import Service, running
from payrelay.clock import Clock
from payrelay.runtime.background import Background
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
    raise_files_max()
    with stopped_by_signals() as stop, hangups_logged(log):
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

            async with (
                serving.served_beside(AddressBeside(service.api.metrics, service.api), settings.metrics_address),
                _served_console(service, settings),
                announced_stop(stop, service.relay.background, log, settings.shutdown_delay) as end,
            ):
                has_finished = await serving.serve(
                    service.api, host, port, stop=end, on_started=on_started, drain_s=DRAIN_S
                )
            log.info("stopping", has_finished=has_finished)


@asynccontextmanager
async def _served_console(service: Service, settings: Settings) -> AsyncIterator[None]:
    """Serves the console on its own address while the context is open, where it is on and has one."""
    if service.console is None:
        yield
        return
    address = AddressBeside(ConsoleDoor(service.console), service.api, settings.trusted_proxies)
    async with serving.served_beside(address, settings.console.address):
        yield


class StopSignal:
    """The signals that ask the program to stop.

    Attributes:
        asked: set at the first signal.
        hurried: set at the second one: whoever sends it doesn't want to wait.
    """

    def __init__(self) -> None:
        self.asked = asyncio.Event()
        self.hurried = asyncio.Event()

    def set(self) -> None:
        """Notes a signal."""
        if self.asked.is_set():
            self.hurried.set()
        self.asked.set()


@contextmanager
def stopped_by_signals() -> Iterator[StopSignal]:
    """Gives what SIGTERM or SIGINT set while the context is open."""
    stop = StopSignal()
    loop = asyncio.get_running_loop()
    signals = (signal.SIGINT, signal.SIGTERM)
    for number in signals:
        loop.add_signal_handler(number, stop.set)
    try:
        yield stop
    finally:
        for number in signals:
            loop.remove_signal_handler(number)


@contextmanager
def hangups_logged(log: FilteringBoundLogger) -> Iterator[None]:
    """Lets SIGHUP do nothing but write a line while the context is open: settings are read at a start only.

    The end of a terminal sends SIGHUP too, and some tools send it to have files opened anew. Neither may end a payment.
    """
    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGHUP, lambda: log.info("signal_ignored", signal=signal.SIGHUP.name))
    try:
        yield
    finally:
        loop.remove_signal_handler(signal.SIGHUP)
        # What follows is the end of the process, which a hangup must not cut short.
        signal.signal(signal.SIGHUP, signal.SIG_IGN)


@asynccontextmanager
async def announced_stop(
    stop: StopSignal, background: Background, log: FilteringBoundLogger, delay_s: float
) -> AsyncIterator[asyncio.Event]:
    """Gives an event that is set ``delay_s`` after the signal to stop, and at once at a second signal.

    From the first signal on ``background.is_stopping`` is True.
    """
    end = asyncio.Event()

    async def wait() -> None:
        await stop.asked.wait()
        background.announce_stop()
        if delay_s:
            log.info("stop_announced", delay_s=delay_s)
            with suppress(TimeoutError):
                await asyncio.wait_for(stop.hurried.wait(), delay_s)
        end.set()

    waiting = asyncio.create_task(wait())
    try:
        yield end
    finally:
        waiting.cancel()
        with suppress(asyncio.CancelledError):
            await waiting


def address_of(host: str, port: int) -> str:
    """Returns the URL of an address."""
    return f"http://{f'[{host}]' if ':' in host else host}:{port}"
