"""Publishes events and sends them to their endpoints, from as many processes as there are.

Rules:

1. What is sent was taken before, and what came of it is stored after. A process that dies in between leaves it to the
   next one when its time with us is over: it may be sent again then, under the same id.
2. Each endpoint has a lane of its own, so that a slow one holds up nobody; the more lanes, the narrower each. An
   endpoint that fails gets a narrow one.
3. Of the events about one subject the next is taken when the one before was delivered or given up.
"""

import asyncio
import random
from collections import deque
from collections.abc import Callable, Coroutine
from contextlib import suppress
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Final

from structlog.typing import FilteringBoundLogger

from payrelay.clock import Clock
from payrelay.core.events.delivery import AttemptResult, deferred_until_ms, is_to_be_stopped, next_try_ms
from payrelay.core.events.delivery import EndpointState as Is
from payrelay.core.events.event import PublishedEvent
from payrelay.core.payments.operation import Operation
from payrelay.core.payments.schedules import DAY_MS
from payrelay.errors import StoreError
from payrelay.runtime.followers import Followers
from payrelay.runtime.hooks import FlowPoint, Hooks, nobody
from payrelay.runtime.webhook_sender import Secrets, Signer, WebhookSender, host_of
from payrelay.store.events.deliveries import Deliveries, FailedDelivery, LeasedDelivery
from payrelay.store.events.endpoints import Endpoints, Target
from payrelay.store.events.feed import PUBLISHED_MAX, Feed

WIDE: Final = 64
"""Events that are on their way to one endpoint at once."""
NARROW: Final = 4
"""The same while it fails."""
ON_THEIR_WAY_MAX: Final = 512
"""Events that are on their way at once, to all endpoints together: each has a connection. Lanes share them equally."""
TAKEN_MAX: Final = 512
"""Events that a lane has taken at once, so that what is on its way never waits for the store."""
LEASE_MS: Final = 45_000
"""How long a process keeps what it took: three times what a send may take."""
BEGUN_BEFORE_MS: Final = 20_000
"""What has not begun so long before that is somebody else's."""
ROUNDS_MAX: Final = 20
"""Units of publishing in one go; the rest is for the next."""
STORED_AT_ONCE: Final = 192
STORED_AFTER_S: Final = 0.1
"""What landed is stored when there is so much of it, or so soon."""
AGAIN_S: Final = 0.5
"""How long a lane on which none lands waits before it looks for more."""
SOON_S: Final = 0.02
"""Between a commit and publishing it: what is committed meanwhile comes along."""
KEPT_MS: Final = 30 * DAY_MS
"""How long an event is in the feed."""
FORGOTTEN_MAX: Final = 1_000
FINISH_S: Final = 3.0
"""How long a stop waits for what is on its way."""
_GONE: Final = "it answered with HTTP 410: it wants nothing more"
_TOO_LONG: Final = "it took nothing for three days"


class DeliveryOutcome(StrEnum):
    """What came of a try, for the metrics."""

    DELIVERED = "delivered"
    FAILED = "failed"
    GIVEN_UP = "given_up"
    STOPPED = "stopped"
    """An endpoint was stopped."""


@dataclass(kw_only=True, slots=True)
class Dispatch:
    """What events are published, sent and followed with; made once at start.

    Attributes:
        feed, endpoints, deliveries: where they are kept.
        sender: sends one event.
        followers: who is told of what is published.
        clock, log: the relay's.
        counted: told what came of each try.
        passed: told of each passage on the way of events, with the endpoint's id, or none.
        chance: gives a number from 0 to 1 for the jitter.
        room: how many events are on their way at once, but for NARROW to each endpoint.
    """

    feed: Feed
    endpoints: Endpoints
    deliveries: Deliveries
    sender: WebhookSender
    followers: Followers
    clock: Clock
    log: FilteringBoundLogger
    counted: Callable[[DeliveryOutcome], None] = nobody
    passed: Callable[[FlowPoint, str], None] = nobody
    chance: Callable[[], float] = random.random
    room: int = ON_THEIR_WAY_MAX
    workers: dict[str, asyncio.Task[None]] = field(default_factory=dict)
    is_closing: bool = False
    waking: asyncio.TimerHandle | None = None
    working: set[asyncio.Task[None]] = field(default_factory=set)

    def wake(self) -> None:
        """Says that something was committed: it is published soon. May be called as often as one likes."""
        if self.waking is None and not self.is_closing:
            self.waking = asyncio.get_running_loop().call_later(SOON_S, self._woken)

    def _woken(self) -> None:
        self.waking = None
        self._start(_safely(self))

    def _start(self, work: Coroutine[object, object, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self.working.add(task)
        task.add_done_callback(self.working.discard)

    def told_by(self, hooks: Hooks) -> Hooks:
        """Gives the same watch, which wakes this up too."""

        def changed(operation: Operation) -> None:
            hooks.operation_changed(operation)
            self.wake()

        return replace(hooks, operation_changed=changed)

    async def close(self, within_s: float = FINISH_S) -> None:
        """Begins nothing more, waits for what is on its way, but no longer than ``within_s``, and hangs up."""
        self.is_closing = True
        self.followers.close()
        if self.waking is not None:
            self.waking.cancel()
        tasks = {*self.workers.values(), *self.working}
        if tasks:
            _, unfinished = await asyncio.wait(tasks, timeout=within_s)
            for task in unfinished:
                task.cancel()
            await asyncio.gather(*unfinished, return_exceptions=True)
        await self.sender.close()


async def tell_events(dispatch: Dispatch) -> None:
    """Publishes what was committed, tells those who follow, and begins to send what is due.

    Raises StoreError where the store can't be asked; may be called from several places at once.
    """
    for _ in range(ROUNDS_MAX):
        if not await _publish(dispatch):
            break
    await dispatch.followers.poll()
    if dispatch.is_closing:
        return
    for endpoint_id in await dispatch.deliveries.endpoints_due(dispatch.clock.now_ms()):
        if endpoint_id not in dispatch.workers:
            worker = asyncio.get_running_loop().create_task(_EndpointWorker(dispatch, endpoint_id).run())
            dispatch.workers[endpoint_id] = worker
            worker.add_done_callback(lambda _, ended=endpoint_id: dispatch.workers.pop(ended, None))  # type: ignore[misc]


async def _publish(dispatch: Dispatch) -> bool:
    """Publishes one unit of events; tells whether there may be more."""
    if not await dispatch.feed.has_unpublished():
        return False
    dispatch.passed(FlowPoint.PUBLISHING, "")
    count = await dispatch.feed.publish(dispatch.clock.now_ms())
    dispatch.passed(FlowPoint.PUBLISHED, "")
    return count == PUBLISHED_MAX


async def forget_events(dispatch: Dispatch) -> None:
    """Forgets events that are older than KEPT_MS, with their deliveries; some at a time."""
    await dispatch.feed.forget(dispatch.clock.now_ms() - KEPT_MS, FORGOTTEN_MAX)


async def _safely(dispatch: Dispatch) -> None:
    try:
        await tell_events(dispatch)
    except StoreError as error:  # the worker's next round does it
        dispatch.log.warning("events_not_published", reason=str(error))


@dataclass(frozen=True, slots=True)
class _Load:
    lease: LeasedDelivery
    event: PublishedEvent


@dataclass(frozen=True, slots=True)
class _AttemptedDelivery:
    lease: LeasedDelivery
    tried: AttemptResult
    url: str


class _EndpointWorker:
    """Sends what is due to one endpoint until nothing more is.

    While some are on their way, others lie ready, and what came of still others is stored.
    """

    def __init__(self, dispatch: Dispatch, endpoint_id: str) -> None:
        self._dispatch = dispatch
        self._id = endpoint_id
        self._ready: deque[_Load] = deque()
        self._attempted: list[_AttemptedDelivery] = []
        self._late: list[LeasedDelivery] = []
        self._senders: set[asyncio.Task[None]] = set()
        self._width = NARROW
        self._content = asyncio.Event()
        self._target: Target | None = None

    async def run(self) -> None:
        """Raises nothing but a cancellation."""
        try:
            while await self._turn():
                await self._wait()
        except StoreError as error:  # what was taken comes back when its time with us is over
            self._dispatch.log.warning("deliveries_not_stored", endpoint_id=self._id, reason=str(error))
        except Exception:  # our own mistake with one endpoint must not keep the others from their events
            self._dispatch.log.exception("delivering_failed", endpoint_id=self._id)
        finally:
            for sender in self._senders:
                sender.cancel()
            await asyncio.gather(*self._senders, return_exceptions=True)

    async def _wait(self) -> None:
        """Returns when there is something to do that is worth asking the store."""
        with suppress(TimeoutError):
            await asyncio.wait_for(self._content.wait(), AGAIN_S)
        until_s = asyncio.get_running_loop().time() + STORED_AFTER_S
        while self._senders and len(self._attempted) < STORED_AT_ONCE:
            self._content.clear()
            left_s = until_s - asyncio.get_running_loop().time()
            if left_s <= 0:
                return
            with suppress(TimeoutError):
                await asyncio.wait_for(self._content.wait(), left_s)

    async def _turn(self) -> bool:
        """Stores what landed, takes what is due and sets it on its way; gives False when nothing is left to do."""
        self._content.clear()
        attempted_deliveries, self._attempted = self._attempted, []
        if attempted_deliveries:
            self._dispatch.passed(FlowPoint.KEEPING, self._id)
            await _keep(self._dispatch, self._id, attempted_deliveries)
            self._dispatch.passed(FlowPoint.KEPT, self._id)
        await self._take()
        for _ in range(min(len(self._ready), self._width - len(self._senders))):
            sender = asyncio.get_running_loop().create_task(self._send())
            self._senders.add(sender)
            sender.add_done_callback(self._sent)
        return bool(self._senders or self._attempted or self._ready)

    async def _take(self) -> None:
        """Takes more where little lies ready; gives back what may not be sent now, or was not begun in time."""
        now_ms = self._dispatch.clock.now_ms()
        late, self._late = self._late, []
        await self._dispatch.deliveries.end_leases(self._id, late, now_ms=now_ms)
        if len(self._ready) > TAKEN_MAX // 2:
            return
        target = None if self._dispatch.is_closing else await self._dispatch.endpoints.target(self._id)
        if (
            target is None
            or self._target is None
            or target.endpoint.updated_at_ms != self._target.endpoint.updated_at_ms
        ):
            self._target = target
        if target is None or target.endpoint.state is not Is.ACTIVE or target.endpoint.deferred_until_ms > now_ms:
            await self._give_back(now_ms)
            return
        is_well = target.endpoint.failing_since_ms is None
        share = self._dispatch.room // max(1, len(self._dispatch.workers))
        self._width = max(NARROW, min(WIDE, share)) if is_well else NARROW
        room = (TAKEN_MAX if is_well else NARROW) - len(self._ready) - len(self._senders)
        if room <= 0:
            return
        until_ms = now_ms + LEASE_MS
        self._dispatch.passed(FlowPoint.CLAIMING, self._id)
        taken = await self._dispatch.deliveries.lease_due(self._id, now_ms, leased_until_ms=until_ms, limit=room)
        self._dispatch.passed(FlowPoint.CLAIMED, self._id)
        events = await self._dispatch.feed.at([one.position for one in taken]) if taken else []
        by_position = {event.position: event for event in events}
        self._ready += [_Load(one, by_position[one.position]) for one in taken if one.position in by_position]

    async def _give_back(self, now_ms: int) -> None:
        loads, self._ready = [*self._ready], deque()
        await self._dispatch.deliveries.end_leases(self._id, [load.lease for load in loads], now_ms=now_ms)

    async def _send(self) -> None:
        """Sends one after the other of what lies ready."""
        target = self._target
        if target is None:
            return
        signer = _signer(target, self._dispatch.clock.now_ms())
        while self._ready and len(self._senders) <= self._width and target is self._target:
            load = self._ready.popleft()
            if load.lease.leased_until_ms - self._dispatch.clock.now_ms() < BEGUN_BEFORE_MS:
                self._late.append(load.lease)
                continue
            self._dispatch.passed(FlowPoint.DELIVERING, self._id)
            tried = await self._dispatch.sender.send(target.endpoint, signer, load.event)
            self._dispatch.passed(FlowPoint.DELIVERED, self._id)
            self._attempted.append(_AttemptedDelivery(load.lease, tried, target.endpoint.url))
            if not tried.is_delivered:
                self._width = NARROW
            if tried.retry_after_s is not None or tried.is_gone:
                self._target = None
            self._content.set()

    def _sent(self, sender: asyncio.Task[None]) -> None:
        self._senders.discard(sender)
        self._content.set()


async def _keep(dispatch: Dispatch, endpoint_id: str, attempted: list[_AttemptedDelivery]) -> None:
    """Stores what came of some tries."""
    now_ms = dispatch.clock.now_ms()
    by_status: dict[int, list[LeasedDelivery]] = {}
    for one in attempted:
        if one.tried.is_delivered and one.tried.status is not None:
            by_status.setdefault(one.tried.status, []).append(one.lease)
    for status, taken in by_status.items():
        await dispatch.deliveries.delivered(endpoint_id, taken, status=status, now_ms=now_ms)
        for _ in taken:
            dispatch.counted(DeliveryOutcome.DELIVERED)
    for one in attempted:
        if not one.tried.is_delivered:
            await _fail(dispatch, one, now_ms)


async def _fail(dispatch: Dispatch, attempted: _AttemptedDelivery, now_ms: int) -> None:
    taken, tried = attempted.lease, attempted.tried
    again_ms = next_try_ms(taken.attempts, now_ms, retry_after_s=tried.retry_after_s, chance=dispatch.chance())
    words = tried.failure or ""
    failure = FailedDelivery(lease=taken, status=tried.status, words=words, next_try_ms=again_ms, url=attempted.url)
    since_ms = await dispatch.deliveries.failed(
        failure, now_ms=now_ms, deferred_until_ms=deferred_until_ms(now_ms, tried)
    )
    dispatch.counted(DeliveryOutcome.FAILED if again_ms is not None else DeliveryOutcome.GIVEN_UP)
    dispatch.log.warning(
        "event_not_delivered",
        endpoint_id=taken.endpoint_id,
        subject=taken.subject,
        attempts=taken.attempts,
        failure=words,
        is_given_up=again_ms is None,
    )
    if tried.is_gone:
        await stop_endpoint(dispatch, taken.endpoint_id, _GONE, url=attempted.url)
    elif is_to_be_stopped(since_ms, now_ms):
        await stop_endpoint(dispatch, taken.endpoint_id, _TOO_LONG, url=attempted.url)


async def stop_endpoint(dispatch: Dispatch, endpoint_id: str, reason: str, *, url: str | None = None) -> None:
    """Stops an endpoint, and says so in the log, the metrics and the feed.

    Nothing where it is stopped already, or was moved from ``url``: its owner has answered that address's 410 by then.
    """
    stopped = await dispatch.endpoints.stop(endpoint_id, reason, dispatch.clock.now_ms(), url=url)
    if stopped is None:
        return
    dispatch.counted(DeliveryOutcome.STOPPED)
    dispatch.log.error(
        "endpoint_stopped",
        endpoint_id=endpoint_id,
        account=stopped.account,
        principal=stopped.principal,
        host=host_of(stopped.url),
        reason=reason,
    )
    dispatch.wake()


def _signer(target: Target, now_ms: int) -> Signer:
    ends_at_ms = target.endpoint.older_ends_at_ms
    is_over = ends_at_ms is None or ends_at_ms <= now_ms
    return Signer(Secrets(target.newest, None if is_over else target.older))
