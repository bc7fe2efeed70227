"""Publishes events and sends them to their endpoints, from any number of processes.

Rules:

1. A delivery is leased before it is sent, and the attempt's outcome is stored after. Where the process dies in between,
   another one leases the delivery when the lease ends, and may send the event again under its id.
2. Each endpoint has a worker of its own, so that a slow endpoint delays no other. The workers share the connections
   equally, and a failing endpoint gets few.
3. Of the events about one subject, the next is leased when the previous one was delivered or given up.
"""

import asyncio
import random
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import suppress
from contextvars import Context
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from structlog.typing import FilteringBoundLogger

from payrelay.clock import Clock
from payrelay.core.events.delivery import AttemptResult, Endpoint, deferred_until_ms, is_to_be_stopped, next_try_ms
from payrelay.core.events.delivery import EndpointState as Is
from payrelay.core.events.event import PublishedEvent
from payrelay.core.payments.schedules import DAY_MS
from payrelay.errors import StoreError
from payrelay.runtime.followers import Followers
from payrelay.runtime.hooks import FlowPoint, no_hook
from payrelay.runtime.webhook_sender import Secrets, Signer, WebhookSender
from payrelay.store.events.deliveries import Deliveries, FailedDelivery, LeasedDelivery
from payrelay.store.events.endpoints import Endpoints, Target
from payrelay.store.events.feed import PUBLISHED_MAX, Feed

WIDE: Final = 64
"""Attempts to one endpoint at once."""
NARROW: Final = 4
"""Attempts to one endpoint at once while it fails."""
ATTEMPTS_AT_ONCE_MAX: Final = 512
"""Attempts to all endpoints at once: each has a connection. The endpoint workers share them equally."""
LEASED_MAX: Final = 512
"""Deliveries that an endpoint worker leases at once, so that sending never waits for the store."""
LEASE_MS: Final = 45_000
"""Lease of a delivery: three times as long as an attempt may take."""
BEGUN_BEFORE_MS: Final = 20_000
"""An attempt begins at least so long before the end of its lease; a delivery with less time left is given back."""
ROUNDS_MAX: Final = 20
"""Units of publishing of one round; the rest is for the next round."""
STORED_AT_ONCE: Final = 192
STORED_AFTER_S: Final = 0.1
"""Outcomes of attempts are stored when there are so many of them, or after so long."""
AGAIN_S: Final = 0.5
"""How long an endpoint worker without an outcome waits before it leases more."""
SOON_S: Final = 0.02
"""Between a commit and its publication, so that one unit publishes several commits."""
KEPT_MS: Final = 30 * DAY_MS
"""How long an event is in the feed."""
FORGOTTEN_MAX: Final = 1_000
"""Events that one round deletes."""
FINISH_S: Final = 3.0
"""How long a stop waits for attempts under way."""
_GONE: Final = "it answered with HTTP 410, which ends its deliveries"
_UNSENDABLE: Final = "there is no such event of this endpoint's owner"
_TOO_LONG: Final = "it accepted no event for three days"


class DeliveryOutcome(StrEnum):
    """The outcome of an attempt, for the metrics."""

    DELIVERED = "delivered"
    FAILED = "failed"
    GIVEN_UP = "given_up"
    STOPPED = "stopped"
    """An endpoint was stopped."""


async def _first() -> int:
    return 1


@dataclass(kw_only=True, slots=True)
class Dispatch:
    """Publishes and sends events, and passes them to followers; made once at start.

    Attributes:
        feed, endpoints, deliveries: the stores.
        sender: sends one event.
        followers: get published events.
        clock, log: the relay's.
        incarnation: gives the number of the database's newest incarnation.
        counted: a hook that gets the outcome of each attempt.
        passed: a hook that gets each crash point of events, with the endpoint's id, or an empty text.
        chance: gives a number from 0 to 1 for the jitter.
        attempts_max: attempts at once, except that each endpoint may have NARROW.
        kept_ms: how long events are kept; None for ever.
    """

    feed: Feed
    endpoints: Endpoints
    deliveries: Deliveries
    sender: WebhookSender
    followers: Followers
    clock: Clock
    log: FilteringBoundLogger
    incarnation: Callable[[], Awaitable[int]] = _first
    counted: Callable[[DeliveryOutcome], None] = no_hook
    passed: Callable[[FlowPoint, str], None] = no_hook
    chance: Callable[[], float] = random.random
    attempts_max: int = ATTEMPTS_AT_ONCE_MAX
    kept_ms: int | None = KEPT_MS
    workers: dict[str, asyncio.Task[None]] = field(default_factory=dict)
    is_closing: bool = False
    waking: asyncio.TimerHandle | None = None
    is_publishing: bool = False
    is_woken: bool = False
    working: set[asyncio.Task[None]] = field(default_factory=set)

    def wake(self) -> None:
        """Publishes committed events soon. May be called any number of times.

        While this process publishes, it begins no second time: that would only wait for the feed, with a connection.
        """
        self.is_woken = True
        if self.waking is None and not self.is_publishing and not self.is_closing:
            # Not in the context of the request that wakes it: the endpoint workers that follow outlive its span.
            self.waking = asyncio.get_running_loop().call_later(SOON_S, self._woken, context=Context())

    def _woken(self) -> None:
        self.waking = None
        self.is_publishing = True
        self._start(self._publish())

    async def _publish(self) -> None:
        self.is_woken = False
        try:
            await publish_events(self)
        except StoreError as error:  # the worker's next round publishes them
            self.log.warning("events_not_published", reason=str(error))
        finally:
            self.is_publishing = False
            if self.is_woken:
                self.wake()

    def _start(self, work: Coroutine[object, object, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self.working.add(task)
        task.add_done_callback(self.working.discard)

    async def close(self, within_s: float = FINISH_S) -> None:
        """Begins no attempts, waits for those under way, but no longer than ``within_s``, and closes connections."""
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


async def publish_events(dispatch: Dispatch) -> None:
    """Publishes committed events, passes them to followers, and starts a worker for each endpoint with due deliveries.

    Several callers may run it at once. Raises StoreError.
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
    """Publishes one unit of events; True where there may be more."""
    if not await dispatch.feed.has_unpublished():
        return False
    dispatch.passed(FlowPoint.PUBLISHING, "")
    count = await dispatch.feed.publish(dispatch.clock.now_ms(), incarnation=await dispatch.incarnation())
    dispatch.passed(FlowPoint.PUBLISHED, "")
    return count == PUBLISHED_MAX


async def forget_events(dispatch: Dispatch) -> None:
    """Deletes at most FORGOTTEN_MAX events older than ``kept_ms``, with their deliveries. Raises StoreError."""
    if dispatch.kept_ms is not None:
        await dispatch.feed.forget(dispatch.clock.now_ms() - dispatch.kept_ms, FORGOTTEN_MAX)


@dataclass(frozen=True, slots=True)
class _LeasedEvent:
    lease: LeasedDelivery
    event: PublishedEvent


@dataclass(frozen=True, slots=True)
class _AttemptedDelivery:
    lease: LeasedDelivery
    result: AttemptResult
    url_hash: str


class _EndpointWorker:
    """Sends the due deliveries of one endpoint until there are no more.

    It sends some while others are leased and ready, and stores the outcomes of still others.
    """

    def __init__(self, dispatch: Dispatch, endpoint_id: str) -> None:
        self._dispatch = dispatch
        self._id = endpoint_id
        self._ready: deque[_LeasedEvent] = deque()
        self._attempted: list[_AttemptedDelivery] = []
        self._late: list[LeasedDelivery] = []
        self._senders: set[asyncio.Task[None]] = set()
        self._width = NARROW
        self._changed = asyncio.Event()
        self._target: Target | None = None
        self._fault: BaseException | None = None

    async def run(self) -> None:
        """Raises nothing but a cancellation."""
        try:
            while await self._work():
                await self._wait()
        except StoreError as error:  # the deliveries are due again when their leases end
            self._dispatch.log.warning("deliveries_not_stored", endpoint_id=self._id, reason=str(error))
        except Exception:  # a fault of Payrelay with one endpoint must not delay the events of the others
            self._dispatch.log.exception("delivering_failed", endpoint_id=self._id)
        finally:
            for sender in self._senders:
                sender.cancel()
            await asyncio.gather(*self._senders, return_exceptions=True)

    async def _wait(self) -> None:
        """Returns when there is enough to do for an access to the store."""
        with suppress(TimeoutError):
            await asyncio.wait_for(self._changed.wait(), AGAIN_S)
        until_s = asyncio.get_running_loop().time() + STORED_AFTER_S
        while self._senders and len(self._attempted) < STORED_AT_ONCE:
            self._changed.clear()
            left_s = until_s - asyncio.get_running_loop().time()
            if left_s <= 0:
                return
            with suppress(TimeoutError):
                await asyncio.wait_for(self._changed.wait(), left_s)

    async def _work(self) -> bool:
        """Stores outcomes of attempts, leases due deliveries and starts to send them; False where nothing is left."""
        self._changed.clear()
        attempted, self._attempted = self._attempted, []
        if attempted:
            self._dispatch.passed(FlowPoint.RECORDING_ATTEMPTS, self._id)
            await _record(self._dispatch, self._id, attempted)
            self._dispatch.passed(FlowPoint.RECORDED_ATTEMPTS, self._id)
        if self._fault is not None:
            raise self._fault  # begun anew at once, it would fail at once
        await self._lease()
        for _ in range(min(len(self._ready), self._width - len(self._senders))):
            sender = asyncio.get_running_loop().create_task(self._send())
            self._senders.add(sender)
            sender.add_done_callback(self._sent)
        return bool(self._senders or self._attempted or self._ready or self._changed.is_set())

    async def _lease(self) -> None:
        """Leases more where few deliveries are ready; ends the leases of those that are late or may not be sent now."""
        now_ms = self._dispatch.clock.now_ms()
        late, self._late = self._late, []
        await self._dispatch.deliveries.end_leases(self._id, late, now_ms=now_ms)
        if len(self._ready) > LEASED_MAX // 2:
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
        share = self._dispatch.attempts_max // max(1, len(self._dispatch.workers))
        self._width = max(NARROW, min(WIDE, share)) if is_well else NARROW
        limit = (LEASED_MAX if is_well else NARROW) - len(self._ready) - len(self._senders)
        if limit <= 0:
            return
        until_ms = now_ms + LEASE_MS
        self._dispatch.passed(FlowPoint.LEASING, self._id)
        leases = await self._dispatch.deliveries.lease_due(self._id, now_ms, leased_until_ms=until_ms, limit=limit)
        self._dispatch.passed(FlowPoint.LEASED, self._id)
        events = await self._dispatch.feed.at([lease.position for lease in leases]) if leases else []
        own = {event.position: event for event in events if _is_for(target.endpoint, event)}
        self._ready += [_LeasedEvent(lease, own[lease.position]) for lease in leases if lease.position in own]
        if unsendable := [lease for lease in leases if lease.position not in own]:
            await self._give_up(unsendable, now_ms)

    async def _give_up(self, leases: list[LeasedDelivery], now_ms: int) -> None:
        """Gives up what can never be sent, and looks at once for what waited behind it.

        Left waiting, it would be leased again and again, and the others about its subject would wait for it.
        """
        await self._dispatch.deliveries.give_up(self._id, leases, _UNSENDABLE, now_ms=now_ms)
        for lease in leases:
            self._dispatch.counted(DeliveryOutcome.GIVEN_UP)
            _log_failure(self._dispatch, lease, _UNSENDABLE, is_given_up=True)
        self._changed.set()

    async def _give_back(self, now_ms: int) -> None:
        leases, self._ready = [ready.lease for ready in self._ready], deque()
        await self._dispatch.deliveries.end_leases(self._id, leases, now_ms=now_ms)

    async def _send(self) -> None:
        """Sends ready deliveries, one after the other."""
        target = self._target
        if target is None:
            return
        signer = _signer(target, self._dispatch.clock.now_ms())
        while self._ready and len(self._senders) <= self._width and target is self._target:
            ready = self._ready.popleft()
            if ready.lease.leased_until_ms - self._dispatch.clock.now_ms() < BEGUN_BEFORE_MS:
                self._late.append(ready.lease)
                continue
            self._dispatch.passed(FlowPoint.DELIVERING, self._id)
            result = await self._dispatch.sender.send(target.endpoint, signer, ready.event)
            self._dispatch.passed(FlowPoint.DELIVERED, self._id)
            self._attempted.append(_AttemptedDelivery(ready.lease, result, target.url_hash))
            if not result.is_delivered:
                self._width = NARROW
            if result.retry_after_s is not None or result.is_gone:
                self._target = None
            self._changed.set()

    def _sent(self, sender: asyncio.Task[None]) -> None:
        self._senders.discard(sender)
        if not sender.cancelled():
            self._fault = sender.exception() or self._fault
        self._changed.set()


async def _record(dispatch: Dispatch, endpoint_id: str, attempted: list[_AttemptedDelivery]) -> None:
    """Stores the outcomes of some attempts. Raises StoreError."""
    now_ms = dispatch.clock.now_ms()
    by_status: dict[int, list[LeasedDelivery]] = {}
    for one in attempted:
        if one.result.is_delivered and one.result.status is not None:
            by_status.setdefault(one.result.status, []).append(one.lease)
    for status, leases in by_status.items():
        await dispatch.deliveries.delivered(endpoint_id, leases, status=status, now_ms=now_ms)
        for _ in leases:
            dispatch.counted(DeliveryOutcome.DELIVERED)
    for one in attempted:
        if not one.result.is_delivered:
            await _record_failure(dispatch, one, now_ms)


async def _record_failure(dispatch: Dispatch, attempted: _AttemptedDelivery, now_ms: int) -> None:
    lease, result = attempted.lease, attempted.result
    again_ms = next_try_ms(lease.attempts, now_ms, retry_after_s=result.retry_after_s, chance=dispatch.chance())
    words = result.failure or ""
    failure = FailedDelivery(
        lease=lease, status=result.status, words=words, next_try_ms=again_ms, url_hash=attempted.url_hash
    )
    since_ms = await dispatch.deliveries.failed(
        failure, now_ms=now_ms, deferred_until_ms=deferred_until_ms(now_ms, result)
    )
    dispatch.counted(DeliveryOutcome.FAILED if again_ms is not None else DeliveryOutcome.GIVEN_UP)
    _log_failure(dispatch, lease, words, is_given_up=again_ms is None)
    if result.is_gone:
        await stop_endpoint(dispatch, lease.endpoint_id, _GONE, url_hash=attempted.url_hash)
    elif is_to_be_stopped(since_ms, now_ms):
        await stop_endpoint(dispatch, lease.endpoint_id, _TOO_LONG, url_hash=attempted.url_hash)


def _log_failure(dispatch: Dispatch, lease: LeasedDelivery, words: str, *, is_given_up: bool) -> None:
    dispatch.log.warning(
        "event_not_delivered",
        endpoint_id=lease.endpoint_id,
        subject=lease.subject,
        attempts=lease.attempts,
        failure=words,
        is_given_up=is_given_up,
    )


async def stop_endpoint(dispatch: Dispatch, endpoint_id: str, reason: str, *, url_hash: str | None = None) -> None:
    """Stops an endpoint, with a log line, a metric and an event.

    Does nothing where the endpoint is stopped already, or its address no longer has ``url_hash``: its owner has then
    replaced the failing address. Raises StoreError.
    """
    stopped = await dispatch.endpoints.stop(endpoint_id, reason, dispatch.clock.now_ms(), url_hash=url_hash)
    if stopped is None:
        return
    dispatch.counted(DeliveryOutcome.STOPPED)
    dispatch.log.error(
        "endpoint_stopped",
        endpoint_id=endpoint_id,
        account=stopped.account,
        principal=stopped.principal,
        host=stopped.host,
        reason=reason,
    )
    dispatch.wake()


def _is_for(endpoint: Endpoint, event: PublishedEvent) -> bool:
    """Whether an event is the endpoint's owner's: somebody may have written the delivery into the database."""
    return (event.merchant, event.principal) == (endpoint.merchant, endpoint.principal)


def _signer(target: Target, now_ms: int) -> Signer:
    ends_at_ms = target.endpoint.older_ends_at_ms
    is_over = ends_at_ms is None or ends_at_ms <= now_ms
    return Signer(Secrets(target.newest, None if is_over else target.older))
