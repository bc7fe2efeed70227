"""Background work while the service runs: settles what is open, and keeps the store in order.

One round after the other, at a known pace; each chore has its turn every so many rounds. A chore that fails is tried
again at its next turn, and keeps no other from its own.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from typing import Final, NamedTuple

from payrelay.errors import StoreError
from payrelay.flows.access.revoke_client_token import forget_client_tokens
from payrelay.flows.checkouts.finish_checkout import end_checkouts, forget_checkouts
from payrelay.flows.notifications.work_inbox import begin_inbox, forget_notifications
from payrelay.flows.operators.alert import begin_alerts
from payrelay.flows.operators.audit import keep_anchors
from payrelay.flows.payments.recover_after_crash import recover
from payrelay.flows.relay import Relay
from payrelay.flows.resolution.resolve import begin_due
from payrelay.runtime.event_delivery import forget_events, tell_events

EVERY_S: Final = 0.5
"""Between two rounds: how late a look may be. Whether one is due is one read of an index."""
CLAIMS_MAX: Final = 500
"""Of one round, so that it never holds the store for long; the rest is for the next."""


class Job(NamedTuple):
    """Something that is done every so many rounds; the first time in the first one."""

    rounds: int
    do: Callable[[Relay], Awaitable[object]]


async def tend(relay: Relay) -> None:
    """Takes up rows whose time is over, and takes back claims that have lapsed.

    Younger rows are being worked on, on the embedded database too. Other processes may tend the same store; what they
    were quicker with is left alone.
    """
    await recover(relay, is_sole_owner=False)
    await relay.journal.prune(relay.clock.now_ms(), CLAIMS_MAX)


async def notice_pauses(relay: Relay) -> None:
    """Learns which accounts are paused although nobody asks for anything, so that the log tells it."""
    await relay.paused.refresh()


async def prune_read_cache(relay: Relay) -> None:
    """Forgets last known answers that are too old to stand in for a gateway that is down."""
    await relay.read_cache.forget_old()


async def tell(relay: Relay) -> None:
    """Publishes events and begins to send them; what this process commits itself doesn't wait for it."""
    await tell_events(relay.dispatch)


async def forget_told(relay: Relay) -> None:
    """Forgets events that are old."""
    await forget_events(relay.dispatch)


JOBS: Final = (
    Job(1, begin_due),
    Job(1, tell),
    Job(2, begin_alerts),
    Job(2, notice_pauses),
    Job(10, tend),
    Job(1, begin_inbox),
    Job(120, keep_anchors),
    Job(120, forget_notifications),
    Job(120, prune_read_cache),
    Job(20, forget_told),
    Job(4, end_checkouts),
    Job(120, forget_checkouts),
    Job(120, forget_client_tokens),
)


@asynccontextmanager
async def working(
    relay: Relay, pause: Callable[[float], Awaitable[None]] = asyncio.sleep, jobs: tuple[Job, ...] = JOBS
) -> AsyncIterator[None]:
    """Works as long as the context is open; ``pause`` waits between two rounds."""
    work = asyncio.create_task(_work(relay, pause, jobs))
    try:
        yield
    finally:
        work.cancel()
        with suppress(asyncio.CancelledError):
            await work


async def _work(relay: Relay, pause: Callable[[float], Awaitable[None]], jobs: tuple[Job, ...]) -> None:
    number = 0
    while True:
        await pause(EVERY_S)
        for job in jobs:
            if number % job.rounds == 0:
                await _do(relay, job)
        number += 1


async def _do(relay: Relay, job: Job) -> None:
    try:
        await job.do(relay)
    except StoreError as error:
        relay.log.warning("upkeep_failed", job=job.do.__name__, reason=str(error))
    except Exception:  # a mistake in one must not end the others, nor the next round
        relay.log.exception("upkeep_failed", job=job.do.__name__)
