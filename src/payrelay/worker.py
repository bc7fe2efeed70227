"""The worker: runs jobs in the background while the service runs, to resolve operations and to maintain the store.

It works in rounds at a fixed pace, and runs each job every so many rounds. A job that fails is tried again at its next
turn, and delays no other job.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from typing import Final, NamedTuple

from payrelay.errors import StoreError
from payrelay.flows.access.revoke_client_token import forget_client_tokens
from payrelay.flows.alerts.alert import begin_alerts, tell_behind
from payrelay.flows.audit.audit import keep_anchors
from payrelay.flows.checkouts.finish_checkout import end_checkouts, forget_checkouts
from payrelay.flows.customers.erase_customer import clear_residues
from payrelay.flows.notifications.work_inbox import begin_inbox, forget_notifications
from payrelay.flows.order_search import forget_searches
from payrelay.flows.payments.recover_after_crash import recover
from payrelay.flows.relay import Relay
from payrelay.flows.resolution.resolve import begin_due
from payrelay.flows.retention.clear import begin_clearing
from payrelay.flows.revocations.reapply import begin_reapplying
from payrelay.runtime import event_delivery

EVERY_S: Final = 0.5
"""Between two rounds: how late a status inquiry may be. One read of an index finds whether one is due."""
CLAIMS_MAX: Final = 500
"""Expired claims that one round deletes, so that it never holds the store for long; the rest is for the next round."""


class Job(NamedTuple):
    """A function that runs every so many rounds, and in the first round.

    One that concludes something from what is stored, or from what isn't, ``waits_behind``: it doesn't run while the
    database lacks commits.
    """

    rounds: int
    do: Callable[[Relay], Awaitable[object]]
    waits_behind: bool = False


async def recover_and_prune(relay: Relay) -> None:
    """Recovers operations whose process died, and deletes expired claims. Raises StoreError.

    Younger operations are left alone: a process is working on them, also with an embedded database. Several processes
    may run this on one database; an operation that another process recovers first is left alone.
    """
    await recover(relay, is_sole_owner=False)
    await relay.journal.prune(relay.clock.now_ms(), CLAIMS_MAX)


async def refresh_pauses(relay: Relay) -> None:
    """Reads which accounts are paused, so that the log reports a pause even when there are no requests."""
    await relay.paused.refresh()


async def prune_read_cache(relay: Relay) -> None:
    """Deletes last known readings that are too old to be served."""
    await relay.read_cache.forget_old()


async def publish_events(relay: Relay) -> None:
    """Publishes and sends the events of other processes; this process's own events don't wait for this job."""
    await event_delivery.publish_events(relay.dispatch)


async def forget_events(relay: Relay) -> None:
    """Deletes old events."""
    await event_delivery.forget_events(relay.dispatch)


JOBS: Final = (
    Job(2, tell_behind),
    Job(1, begin_reapplying),
    Job(1, begin_due, waits_behind=True),
    Job(1, publish_events),
    Job(2, begin_alerts),
    Job(2, refresh_pauses),
    Job(10, recover_and_prune, waits_behind=True),
    Job(1, begin_inbox, waits_behind=True),
    Job(120, keep_anchors, waits_behind=True),
    Job(120, forget_notifications),
    Job(120, forget_searches),
    Job(120, prune_read_cache),
    Job(20, forget_events),
    Job(4, end_checkouts, waits_behind=True),
    Job(120, forget_checkouts),
    Job(120, forget_client_tokens),
    Job(120, clear_residues),
    Job(1, begin_clearing, waits_behind=True),
)


@asynccontextmanager
async def working(
    relay: Relay, pause: Callable[[float], Awaitable[None]] = asyncio.sleep, jobs: tuple[Job, ...] = JOBS
) -> AsyncIterator[None]:
    """Runs the worker while the context is open; ``pause`` waits between two rounds."""
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
            if number % job.rounds == 0 and not (job.waits_behind and relay.database.lost_commits.must_wait):
                await _do(relay, job)
        relay.hooks.round_ended()
        number += 1


async def _do(relay: Relay, job: Job) -> None:
    try:
        await job.do(relay)
    except StoreError as error:
        relay.log.warning("job_failed", job=job.do.__name__, reason=str(error))
        relay.hooks.job_failed(job.do.__name__)
    except Exception:  # a fault in one job must not end the others, or the next round
        relay.log.exception("job_failed", job=job.do.__name__)
        relay.hooks.job_failed(job.do.__name__)
