"""The read cache: one call to the gateway serves all readers of one subject, and stored readings serve an outage.

Rules, each with a test that tries to break it:

1. A call belongs to the version of its subject that was read before it began. Only readers that find this version again
   join the call, or get its cached reading. So no reader gets a reading from before a change that was committed before
   the request.
2. Only found records are cached. That there are none, or that the call failed, is reported only to the readers that
   were waiting for the call.
3. A reader that goes away ends its own wait, and no other reader's.
4. The last known reading, marked as stale, serves where the gateway gives none. It never hides that the gateway refuses
   Payrelay, which an operator must see, nor any other answer of the gateway.
5. No reader waits for a reading to be stored, or fails because it can't be stored.
"""

import asyncio
import itertools
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Coroutine, Iterable
from dataclasses import dataclass, field
from typing import Final, NamedTuple, Protocol, TypeAlias, TypeVar

import msgspec
from structlog.typing import FilteringBoundLogger

from payrelay.clock import Clock
from payrelay.core.answers import Answer, Trace, of_reading
from payrelay.core.calls import AllSubscriptions, OneSubscription, PaymentsOfOrder, PaymentsOfSubscription, Read
from payrelay.core.outcomes import Reading
from payrelay.core.payments.payment import Payment
from payrelay.core.payments.schedules import DAY_MS
from payrelay.errors import Code, StoreError
from payrelay.gateways.gateway import Gateway
from payrelay.store.gateways.readings import ANSWER_BYTES_MAX, StoredReading, Version, subject_of

FRESH_S: Final = 2.0
"""How long a cached reading is served: an app that opens repeats a read several times within this time."""
STALE_AFTER_S: Final = 5.0
"""How long a client waits before it gets the last known reading: soon after, a customer at a screen gives up."""
KEPT_MAX: Final = 2_000
KEPT_BYTES_MAX: Final = 16 * 1024 * 1024
"""Cached readings, and their bytes; the oldest are dropped first."""
STORED_AGAIN_AFTER_S: Final = 60.0
"""An equal reading is stored again after this, so that its age is about right when it is needed."""
STORED_MAX: Final = 10_000
"""Subjects whose stored reading is remembered; the reading of any other subject is stored once more."""
GATHER_S: Final = 0.03
"""The pause before further readings are stored, so that they share a commit."""
GATHER_TIMES: Final = 4
"""The pause is at least so many times as long as the storing took, so that what can wait takes at most a fifth of the
time of a process or a database that is busy."""
GATHERED_MAX: Final = 20
"""Readings that are stored together, so that their statements hold up the event loop for a moment only."""
STORING_MAX: Final = 200
"""Readings that wait to be stored. More means that the store is too slow; further ones are stored at a later read."""
KNOWN_FOR_MS: Final = 30 * DAY_MS
"""How long a last known reading may be served; then it is deleted."""
FORGOTTEN_MAX: Final = 500
"""Readings that one round deletes."""

COVERED: Final = frozenset({Code.GATEWAY_UNREACHABLE, Code.GATEWAY_BAD_REPLY, Code.GATEWAY_BUSY, Code.UNAVAILABLE})
"""Results of calls that learnt nothing from the gateway: a last known reading is served instead."""

T = TypeVar("T")
_Key: TypeAlias = tuple[str, str]
"""A merchant and a subject."""


class CachedReading(msgspec.Struct, frozen=True, kw_only=True):
    """A reading, and how old it is.

    Attributes:
        reading: of the gateway, now or before.
        age_s: the time since the call, in whole seconds; None where the call was made for this reader.
        is_stale: whether it is the last known reading, because there is no current one.
    """

    reading: Reading
    age_s: int | None = None
    is_stale: bool = False

    def answer(self, trace: Trace, *, data_when_missing: bytes = b"null") -> Answer:
        """Returns the client's answer, with the headers that say how old it is."""
        answer = of_reading(self.reading, trace, data_when_missing=data_when_missing)
        if self.age_s is None:
            return answer
        stale = (("Payrelay-Stale", "true"),) if self.is_stale else ()
        return msgspec.structs.replace(answer, headers=(("Age", str(self.age_s)), *stale))

    def beside(self, other: "CachedReading", reading: Reading) -> "CachedReading":
        """Returns a reading that is composed of this one and another: as old as the older, stale where either is."""
        ages = [each.age_s for each in (self, other) if each.age_s is not None]
        return CachedReading(reading=reading, age_s=max(ages, default=None), is_stale=self.is_stale or other.is_stale)


@dataclass(frozen=True, kw_only=True, slots=True)
class Question:
    """A read of the gateway's records.

    Attributes:
        gateway: has the records, and decodes them.
        call: says what is read.
        ask: makes the call at the gateway; raises nothing.
        key: the merchant and the subject of the read.
    """

    gateway: Gateway
    call: Read
    ask: Callable[[], Coroutine[object, object, Reading]]
    key: _Key = field(init=False)

    def __post_init__(self) -> None:
        """Sets the key, which each read needs several times."""
        object.__setattr__(self, "key", (self.gateway.merchant, subject_of(self.call)))

    @property
    def merchant(self) -> str:
        """The merchant whose records are read."""
        return self.gateway.merchant


class LastReadings(Protocol):
    """Stores the last known readings (``store.gateways.readings``); every member raises StoreError."""

    async def version(self, merchant: str, call: Read, /) -> Version:
        """Returns the version of a read's subject, with every change that was committed before."""

    async def last(self, merchant: str, call: Read, /) -> StoredReading | None:
        """Returns the stored reading; None where there is none that can be decoded."""

    async def keep(
        self,
        merchant: str,
        call: Read,
        reading: Reading,
        payments: Iterable[Payment],
        /,
        *,
        read_at_ms: int,
        answered_at_ms: int,
    ) -> None:
        """Stores a reading and the states of its payments; never in place of a reading of a later call."""

    async def note_payments(
        self, merchant: str, payments: Iterable[Payment], asked_at_ms: int, answered_at_ms: int, /
    ) -> None:
        """Stores the states of payments, where none of a later call is known."""

    async def forget(self, merchant: str, calls: Iterable[Read], /) -> None:
        """Deletes the readings of these reads."""

    async def prune(self, before_ms: int, limit: int, /) -> int:
        """Deletes at most ``limit`` readings from before a moment; returns how many."""


class Start(Protocol):
    """Begins work that outlives its request."""

    def __call__(self, work: Coroutine[object, object, T]) -> "asyncio.Task[T]":
        """Begins a task."""


Note: TypeAlias = Callable[[Question, Reading, int], Awaitable[None]]
"""Stores other facts that a reading contains, as of the moment of the call. Raises StoreError."""


class ReadCache:
    """All reads of this process.

    Args:
        last: the last known readings, and the versions of their subjects.
        clock: gives the time.
        log: gets a warning where a reading can't be stored.
        start: begins calls and storing as tasks, which no client's disconnect cancels.
        stale_after_s: how long a client waits for the gateway where a last known reading exists.
        note: stores other facts of each reading; None for nothing.
    """

    def __init__(
        self,
        last: LastReadings,
        clock: Clock,
        log: FilteringBoundLogger,
        *,
        start: Start,
        stale_after_s: float = STALE_AFTER_S,
        note: "Note | None" = None,
    ) -> None:
        self._last = last
        self._clock = clock
        self._start = start
        self._stale_after_s = stale_after_s
        self._calls: dict[tuple[_Key, Version], asyncio.Task[Reading]] = {}
        self._numbers = itertools.count()
        self._cached = _CachedReadings()
        self._behind = _WriteBehind(last, clock, log, start, note)

    async def read(self, question: Question, *, is_insisting: bool = False) -> CachedReading:
        """Returns a reading of the gateway; with ``is_insisting`` only a new one. Raises nothing but a cancellation."""
        version = await self._version(question)
        if version is not None and not is_insisting:
            now_s = self._clock.boot_s()
            found = self._cached.find(question.key, version, now_s)
            if found is not None:
                return CachedReading(reading=found.reading, age_s=int(now_s - found.began_s))
        call = self._call(question, version, is_insisting=is_insisting)
        # Waits, and no awaits: a reader that goes away must not cancel the call.
        if is_insisting:
            await asyncio.wait({call})
            return CachedReading(reading=call.result())
        await _ended(call, self._stale_after_s)
        if not call.done():
            known = await self._last_known(question)
            if known is not None:
                return known
            await asyncio.wait({call})
        reading = call.result()
        known = await self._last_known(question) if reading.code in COVERED else None
        return known or CachedReading(reading=reading)

    async def note_payments(self, merchant: str, payments: tuple[Payment, ...], *, seen_at_ms: int) -> None:
        """Stores the states of payments that another call observed, which began at ``seen_at_ms`` and has just ended.

        Raises StoreError.
        """
        await self._last.note_payments(merchant, payments, seen_at_ms, self._clock.now_ms())

    async def forget_orders(
        self, merchant: str, order_ids: Iterable[str], subscription_ids: Iterable[int] = ()
    ) -> None:
        """Deletes the stored readings that may name the customer of these orders, and of their subscriptions.

        That includes the list of all subscriptions. The cached readings of this process expire within FRESH_S. Raises
        StoreError.
        """
        reads: list[Read] = [AllSubscriptions(), *(PaymentsOfOrder(order_id=order_id) for order_id in order_ids)]
        for subscription_id in subscription_ids:
            reads.append(OneSubscription(subscription_id=subscription_id))
            reads.append(PaymentsOfSubscription(subscription_id=subscription_id))
        self._behind.forget((merchant, subject_of(each)) for each in reads)
        await self._last.forget(merchant, reads)

    async def forget_old(self) -> int:
        """Deletes at most FORGOTTEN_MAX stored readings that are too old; returns how many. Raises StoreError."""
        return await self._last.prune(self._clock.now_ms() - KNOWN_FOR_MS, FORGOTTEN_MAX)

    async def _version(self, question: Question) -> Version | None:
        """Returns None where the store is down: the call is then not shared, but may still succeed."""
        try:
            return await self._last.version(question.merchant, question.call)
        except StoreError:
            return None

    def _call(self, question: Question, version: Version | None, *, is_insisting: bool) -> asyncio.Task[Reading]:
        """Returns the call to wait for: one under way for an equal version, or a new one."""
        if version is None:
            return self._start(self._ask(question, version))
        key = question.key, version
        under_way = self._calls.get(key)
        if under_way is not None and not under_way.done() and not is_insisting:
            return under_way
        call = self._start(self._ask(question, version))
        self._calls[key] = call

        def end(ended: asyncio.Task[Reading]) -> None:
            if self._calls.get(key) is ended:
                del self._calls[key]

        call.add_done_callback(end)
        return call

    async def _ask(self, question: Question, version: Version | None) -> Reading:
        number, began_s, began_ms = next(self._numbers), self._clock.boot_s(), self._clock.now_ms()
        reading = await question.ask()
        if reading.code is None:
            if version is not None and _size(reading) <= ANSWER_BYTES_MAX:
                self._cached.put(question.key, _Found(number, version, reading, began_s, self._clock.boot_s()))
            self._behind.put(question, reading, began_ms)
        return reading

    async def _last_known(self, question: Question) -> CachedReading | None:
        try:
            last = await self._last.last(question.merchant, question.call)
        except StoreError:
            return None
        if last is None:
            return None
        age_ms = max(0, self._clock.now_ms() - last.read_at_ms)
        if age_ms > KNOWN_FOR_MS:
            return None
        return CachedReading(reading=last.reading, age_s=age_ms // 1_000, is_stale=True)


async def _ended(call: asyncio.Task[Reading], timeout_s: float) -> None:
    """Waits until a call has ended, for at most ``timeout_s``, as ``asyncio.wait`` does, in half of its time."""
    loop = asyncio.get_running_loop()
    waiter: asyncio.Future[None] = loop.create_future()

    def wake(*_: object) -> None:
        if not waiter.done():
            waiter.set_result(None)

    timer = loop.call_later(timeout_s, wake)
    call.add_done_callback(wake)
    try:
        await waiter
    finally:
        timer.cancel()
        call.remove_done_callback(wake)


class _Found(NamedTuple):
    """A reading of the n-th call, with the times at which the call began and the reading came."""

    number: int
    version: Version
    reading: Reading
    began_s: float
    came_s: float


class _CachedReadings:
    """The cached readings of this process, the oldest first."""

    def __init__(self) -> None:
        self._found: OrderedDict[_Key, _Found] = OrderedDict()
        self._bytes = 0

    def find(self, key: _Key, version: Version, now_s: float) -> _Found | None:
        """Returns the cached reading of a key where it is fresh and of this version."""
        found = self._found.get(key)
        is_good = found is not None and found.version == version and now_s - found.came_s < FRESH_S
        return found if is_good else None

    def put(self, key: _Key, found: _Found) -> None:
        """Caches a reading, unless the cached one comes from a later call."""
        before = self._found.get(key)
        if before is not None and before.number > found.number:
            return
        if before is not None:
            self._drop(key)
        self._found[key] = found
        self._bytes += _size(found.reading)
        while self._is_too_much(found.came_s):
            self._drop(next(iter(self._found)))

    def _is_too_much(self, now_s: float) -> bool:
        oldest = next(iter(self._found.values()), None)
        is_old = oldest is not None and now_s - oldest.came_s >= FRESH_S
        return is_old or len(self._found) > KEPT_MAX or self._bytes > KEPT_BYTES_MAX

    def _drop(self, key: _Key) -> None:
        found = self._found.pop(key, None)
        if found is not None:
            self._bytes -= _size(found.reading)


class _Waiting(NamedTuple):
    """A reading that waits to be stored, when the gateway was asked and when it answered, and the digest."""

    question: Question
    reading: Reading
    read_at_ms: int
    answered_at_ms: int
    digest: int


class _WriteBehind:
    """Stores readings in the background: new ones, and those that were stored a while ago.

    The first goes at once. Those that come within GATHER_S go together after that, or later where storing takes long.
    """

    def __init__(
        self, last: LastReadings, clock: Clock, log: FilteringBoundLogger, start: Start, note: "Note | None"
    ) -> None:
        self._last = last
        self._clock = clock
        self._log = log
        self._start = start
        self._note = note
        self._stored: OrderedDict[_Key, tuple[int, float]] = OrderedDict()
        self._waiting: dict[_Key, _Waiting] = {}
        self._is_storing = False
        self._goes_on_at_s = 0.0

    def put(self, question: Question, reading: Reading, read_at_ms: int) -> None:
        """Queues a reading that has just come to be stored, unless an equal one was stored a short time ago."""
        key = question.key
        digest = _digest(reading)
        stored, at_s = self._stored.get(key, (None, 0.0))
        if stored == digest and self._clock.boot_s() - at_s < STORED_AGAIN_AFTER_S:
            return
        if len(self._waiting) >= STORING_MAX and key not in self._waiting:
            return
        self._waiting[key] = _Waiting(question, reading, read_at_ms, self._clock.now_ms(), digest)
        if not self._is_storing:
            self._is_storing = True
            self._start(self._store_all())

    def forget(self, keys: Iterable[_Key]) -> None:
        """Forgets what waits to be stored of these."""
        for key in keys:
            self._waiting.pop(key, None)

    async def _store_all(self) -> None:
        try:
            while self._waiting:
                pause_s = self._goes_on_at_s - self._clock.boot_s()
                if pause_s > 0:
                    await asyncio.sleep(pause_s)
                together = list(itertools.islice(self._waiting.items(), GATHERED_MAX))
                for key, _ in together:
                    del self._waiting[key]
                await self._store(together)
        except StoreError as error:
            # Later reads queue these readings again; a store that is down isn't called for each of them now.
            self._waiting.clear()
            self._log.warning("readings_not_stored", reason=str(error))
        finally:
            self._is_storing = False

    async def _store(self, together: list[tuple[_Key, _Waiting]]) -> None:
        began_s = self._clock.boot_s()
        if len(together) == 1:
            await self._keep(together[0][1])
        else:
            ended = await asyncio.gather(*(self._keep(waiting) for _, waiting in together), return_exceptions=True)
            for error in filter(None, ended):
                raise error
        now_s = self._clock.boot_s()
        self._goes_on_at_s = now_s + max(GATHER_S, GATHER_TIMES * (now_s - began_s))
        for key, waiting in together:
            if self._note is not None:
                await self._note(waiting.question, waiting.reading, waiting.read_at_ms)
            self._stored.pop(key, None)
            self._stored[key] = (waiting.digest, now_s)
            if len(self._stored) > STORED_MAX:
                self._stored.popitem(last=False)

    async def _keep(self, waiting: _Waiting) -> None:
        question, reading = waiting.question, waiting.reading
        payments = _payments_of(question, reading)
        await self._last.keep(
            question.merchant,
            question.call,
            reading,
            payments,
            read_at_ms=waiting.read_at_ms,
            answered_at_ms=waiting.answered_at_ms,
        )


def _payments_of(question: Question, reading: Reading) -> tuple[Payment, ...]:
    """Returns the payments in a reading; none where it has none, or can't be decoded as a whole."""
    if not isinstance(question.call, PaymentsOfOrder | PaymentsOfSubscription):
        return ()
    return question.gateway.payments_in(reading.raw_data or b"") or ()


def _digest(reading: Reading) -> int:
    return hash((reading.msg, reading.raw_msg, reading.raw_data))


def _size(reading: Reading) -> int:
    return len(reading.msg) + len(reading.raw_msg or b"") + len(reading.raw_data or b"")
