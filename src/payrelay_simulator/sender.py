"""Sends the notifications of a served simulator, each to its notify_url, and notes what came of every attempt."""

import asyncio
import time
import weakref
from datetime import datetime

import aiohttp

from payrelay_simulator.notifications import Attempt, Notification
from payrelay_simulator.stage import Stage
from payrelay_simulator.world import World

# How often the clock is looked at: soon enough for a person, cheap enough to go on all day.
LOOK_INTERVAL_S = 0.02

CONNECTIONS_MAX = 20

# What a payer's browser is kept waiting for a notification that is to come before the return.
BEFORE_RETURN_S_MAX = 10.0

# Of an answer's body, which says nothing; what is longer is not read.
ANSWER_BYTES_MAX = 65_536

USER_AGENT = "payrelay-simulator"


class Sender:
    """Looks at the clock again and again, brings about what is due, and sends what is to be sent.

    Notifications of one order go out one after the other; those of different orders at the same time.
    """

    def __init__(self, stage: Stage) -> None:
        self._stage = stage
        self._tasks: set[asyncio.Task[None]] = set()
        self._kept: tuple[int, int, int] = (0, 0, 0)
        self._turns: weakref.WeakValueDictionary[tuple[str, str], asyncio.Lock] = weakref.WeakValueDictionary()

    async def run(self) -> None:
        """Go on until cancelled."""
        connector = aiohttp.TCPConnector(limit=CONNECTIONS_MAX, force_close=True)
        async with aiohttp.ClientSession(connector=connector, headers={"User-Agent": USER_AGENT}) as session:
            try:
                while True:
                    self._look(session)
                    await asyncio.sleep(LOOK_INTERVAL_S)
            finally:
                for task in self._tasks:
                    task.cancel()
                await asyncio.gather(*self._tasks, return_exceptions=True)

    def _look(self, session: aiohttp.ClientSession) -> None:
        world = self._stage.world
        world.elapse()
        due = world.notifications.take_due(world.clock.now())
        standing = (id(world), len(world.ledger), world.notifications.changes)
        if standing != self._kept:
            self._kept = standing
            self._stage.changed()
        for notification in due:
            key = (notification.notify_url, notification.order_id)
            turn = self._turns.setdefault(key, asyncio.Lock())
            task = asyncio.create_task(self._send(session, world, notification, turn))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _send(
        self, session: aiohttp.ClientSession, world: World, notification: Notification, turn: asyncio.Lock
    ) -> None:
        async with turn:
            at, begun_s = world.clock.now(), time.monotonic()
            attempt = await _attempt(session, notification, at, timeout_s=world.switches.notification_timeout_s)
            took_s = round(time.monotonic() - begun_s, 6)
            noted = Attempt(at=at, http_status=attempt.http_status, error=attempt.error, took_s=took_s)
            world.notifications.note(notification.number, noted, world.switches)


async def wait_before_return(world: World, numbers: tuple[int, ...]) -> None:
    """Return when those that are to come before the payer's return have been tried, or after ten seconds."""
    first = [number for number in numbers if world.notifications.find(number).fault == "before_return"]
    end_s = time.monotonic() + BEFORE_RETURN_S_MAX
    while not all(world.notifications.is_over(number) for number in first) and time.monotonic() < end_s:  # noqa: ASYNC110 - the world has no events, it is looked at
        await asyncio.sleep(LOOK_INTERVAL_S)


async def _attempt(
    session: aiohttp.ClientSession, notification: Notification, at: datetime, *, timeout_s: float
) -> Attempt:
    try:
        async with session.post(
            notification.notify_url,
            data=notification.fields,
            timeout=aiohttp.ClientTimeout(total=timeout_s),
            # Whether the gateway follows a redirect is not documented; a notification that wanders helps nobody.
            allow_redirects=False,
        ) as response:
            left = ANSWER_BYTES_MAX
            while left > 0 and (piece := await response.content.read(left)):
                left -= len(piece)
            return Attempt(at=at, http_status=response.status)
    except TimeoutError:
        return Attempt(at=at, error=f"no answer in {timeout_s:g} s")
    except (aiohttp.ClientError, ValueError, OSError) as error:
        return Attempt(at=at, error=f"{type(error).__name__}: {error}"[:200])
