"""Asks the gateway once for all who want to know the same, and knows what it last said when it says nothing.

Rules, each with a test that tries to break it:

1. A call belongs to the version of its subject that was read before it began. It is joined, and what it found is
   served, only by those who find that version again: nobody is told what was read before a change that was committed
   before he asked.
2. What is kept for a moment is what was found. That there is nothing, and that nothing could be learnt, is told only
   to those who were waiting for it.
3. Who goes away ends his own wait and nobody else's.
4. The last known answer stands in where there is none, marked as such. It never hides that the gateway refuses us,
   which somebody must see, nor anything that the gateway did say.
5. No reader waits for the store to keep anything, nor fails where it can't.
"""

import asyncio
import itertools
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Coroutine, Iterable
from dataclasses import dataclass
from typing import Final, NamedTuple, Protocol, TypeAlias, TypeVar

import msgspec
from structlog.typing import FilteringBoundLogger

from payrelay.clock import Clock
from payrelay.core.answers import Answer, Trace, of_reading
from payrelay.core.calls import AllSubscriptions, PaymentsOfOrder, PaymentsOfSubscription, Read
from payrelay.core.outcomes import Reading
from payrelay.core.payments.payment import Payment
from payrelay.core.payments.schedules import DAY_MS
from payrelay.errors import Code, StoreError
from payrelay.gateways.gateway import Gateway
from payrelay.store.gateways.readings import ANSWER_BYTES_MAX, StoredReading, Version, subject_of

FRESH_S: Final = 2.0
"""How long what was found is served again: the time in which an app that opens asks the same several times over."""
STALE_AFTER_S: Final = 5.0
"""How long a client waits before it is told the last known answer: soon after, a person at a screen is gone."""
KEPT_MAX: Final = 2_000
KEPT_BYTES_MAX: Final = 16 * 1024 * 1024
"""Answers that are served again, and their bytes; the oldest go first."""
STORED_AGAIN_AFTER_S: Final = 60.0
"""An answer that is stored already is stored again after this, so that its age is about right when it is needed."""
STORED_MAX: Final = 10_000
"""Subjects of which we remember what is stored; of another one it is stored once more."""
STORING_MAX: Final = 200
"""Answers that wait to be stored. More means that the store doesn't keep up; they get their turn when asked again."""
KNOWN_FOR_MS: Final = 30 * DAY_MS
"""How long the last known answer stands in; then it is forgotten."""
FORGOTTEN_MAX: Final = 500
"""Of one round of forgetting."""

COVERED: Final = frozenset({Code.GATEWAY_UNREACHABLE, Code.GATEWAY_BAD_REPLY, Code.GATEWAY_BUSY, Code.UNAVAILABLE})
"""Where nothing was learnt from the gateway."""

T = TypeVar("T")
_Key: TypeAlias = tuple[str, str]
"""A merchant and a subject."""


class CachedReading(msgspec.Struct, frozen=True, kw_only=True):
    """What a reader is told.

    Attributes:
        reading: what the gateway said, now or before.
        age_s: how long ago it was asked, in whole seconds; None where it was asked for this reader.
        is_stale: whether it is the last known answer, because none can be had now.
    """

    reading: Reading
    age_s: int | None = None
    is_stale: bool = False

    def answer(self, trace: Trace, *, data_when_missing: bytes = b"null") -> Answer:
        """Gives the client's answer, with the headers that say how old it is."""
        answer = of_reading(self.reading, trace, data_when_missing=data_when_missing)
        if self.age_s is None:
            return answer
        stale = (("Payrelay-Stale", "true"),) if self.is_stale else ()
        return msgspec.structs.replace(answer, headers=(("Age", str(self.age_s)), *stale))

    def beside(self, other: "CachedReading", reading: Reading) -> "CachedReading":
        """Gives a reading that was made of this one and another: as old as the older, stale where either is."""
        ages = [told.age_s for told in (self, other) if told.age_s is not None]
        return CachedReading(reading=reading, age_s=max(ages, default=None), is_stale=self.is_stale or other.is_stale)


@dataclass(frozen=True, kw_only=True, slots=True)
class Question:
    """What is asked, and how.

    Attributes:
        gateway: whose records are read, and who knows how to read them.
        call: what is read.
        ask: makes the call at the gateway; raises nothing.
    """

    gateway: Gateway
    call: Read
    ask: Callable[[], Coroutine[object, object, Reading]]

    @property
    def merchant(self) -> str:
        """Tells whose records are read."""
        return self.gateway.merchant

    @property
    def key(self) -> _Key:
        """Names what is asked."""
        return self.merchant, subject_of(self.call)


class ReadingShelf(Protocol):
    """Stores the last known answers of reads (``store.gateways.readings``); every member raises StoreError."""

    async def version(self, merchant: str, call: Read, /) -> Version:
        """Gives the version of what a read shows, with all that was committed before."""
        ...

    async def last(self, merchant: str, call: Read, /) -> StoredReading | None:
        """Gives the answer that is kept; None where there is none that can be read."""
        ...

    async def keep(
        self, merchant: str, call: Read, reading: Reading, payments: Iterable[Payment], /, *, read_at_ms: int
    ) -> None:
        """Keeps a positive answer and how the payments in it stood; never in place of one that was asked for later."""
        ...

    async def note_payments(self, merchant: str, payments: Iterable[Payment], now_ms: int, /) -> None:
        """Notes how payments stood at a moment, where nothing later is known of them."""
        ...

    async def forget(self, merchant: str, calls: Iterable[Read], /) -> None:
        """Forgets the answers to these reads."""
        ...

    async def prune(self, before_ms: int, limit: int, /) -> int:
        """Forgets at most ``limit`` answers from before a moment; gives how many there were."""
        ...


class Start(Protocol):
    """Begins work that outlives its request."""

    def __call__(self, work: Coroutine[object, object, T]) -> "asyncio.Task[T]":
        """Begins it."""
        ...


Note: TypeAlias = Callable[[Question, Reading, int], Awaitable[None]]
"""Notes what an answer tells beside what was asked; with the moment of the question. Raises StoreError."""


class ReadCache:
    """All reads of this process.

    Args:
        last: the last known answers, and the versions of their subjects.
        clock: tells the time.
        log: told where an answer can't be stored.
        start: begins calls and storing, which nobody's going away ends.
        stale_after_s: how long a client waits for the gateway where an answer is known.
    """

    def __init__(
        self,
        last: ReadingShelf,
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
        self._kept = _CachedReadings()
        self._behind = _WriteBehind(last, clock, log, start, note)

    async def read(self, question: Question, *, is_insisting: bool = False) -> CachedReading:
        """Tells what the gateway says; ``is_insisting`` is for a reader who takes no answer but a new one."""
        version = await self._version(question)
        if version is not None and not is_insisting:
            now_s = self._clock.boot_s()
            kept = self._kept.find(question.key, version, now_s)
            if kept is not None:
                return CachedReading(reading=kept.reading, age_s=int(now_s - kept.began_s))
        call = self._call(question, version, is_insisting=is_insisting)
        # A wait, not an await: that would end the call with its reader.
        await asyncio.wait({call}, timeout=None if is_insisting else self._stale_after_s)
        if is_insisting:
            return CachedReading(reading=call.result())
        if not call.done():
            known = await self._last_known(question)
            if known is not None:
                return known
            await asyncio.wait({call})
        reading = call.result()
        known = await self._last_known(question) if reading.code in COVERED else None
        return known or CachedReading(reading=reading)

    async def note_payments(self, merchant: str, payments: tuple[Payment, ...], *, seen_at_ms: int) -> None:
        """Notes how payments stood that somebody else saw at the gateway; ``seen_at_ms`` is when he asked.

        Raises StoreError.
        """
        await self._last.note_payments(merchant, payments, seen_at_ms)

    async def forget_orders(self, merchant: str, order_ids: Iterable[str]) -> None:
        """Forgets the answers in which the payer of these orders may stand: of each, and the list of subscriptions.

        What this process keeps for a moment goes by itself. Raises StoreError.
        """
        reads: list[Read] = [AllSubscriptions(), *(PaymentsOfOrder(order_id=order_id) for order_id in order_ids)]
        await self._last.forget(merchant, reads)

    async def forget_old(self) -> int:
        """Forgets some of what is too old to stand in; gives how many. Raises StoreError."""
        return await self._last.prune(self._clock.now_ms() - KNOWN_FOR_MS, FORGOTTEN_MAX)

    async def _version(self, question: Question) -> Version | None:
        """Gives None where the store is down: then nothing is shared, and the gateway may be up all the same."""
        try:
            return await self._last.version(question.merchant, question.call)
        except StoreError:
            return None

    def _call(self, question: Question, version: Version | None, *, is_insisting: bool) -> asyncio.Task[Reading]:
        """Gives the call to wait for: one under way that is as good as a new one, or a new one."""
        if version is None:
            return self._start(self._ask(question, version))
        place = question.key, version
        under_way = self._calls.get(place)
        if under_way is not None and not under_way.done() and not is_insisting:
            return under_way
        call = self._start(self._ask(question, version))
        self._calls[place] = call

        def end(ended: asyncio.Task[Reading]) -> None:
            if self._calls.get(place) is ended:
                del self._calls[place]

        call.add_done_callback(end)
        return call

    async def _ask(self, question: Question, version: Version | None) -> Reading:
        number, began_s, began_ms = next(self._numbers), self._clock.boot_s(), self._clock.now_ms()
        reading = await question.ask()
        if reading.code is None:
            if version is not None and _size(reading) <= ANSWER_BYTES_MAX:
                self._kept.put(question.key, _Found(number, version, reading, began_s, self._clock.boot_s()))
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


class _Found(NamedTuple):
    """Something that was found, by the n-th call; when it was asked for, and when it came."""

    number: int
    version: Version
    reading: Reading
    began_s: float
    came_s: float


class _CachedReadings:
    """What was found a moment ago, the oldest first."""

    def __init__(self) -> None:
        self._found: OrderedDict[_Key, _Found] = OrderedDict()
        self._bytes = 0

    def find(self, key: _Key, version: Version, now_s: float) -> _Found | None:
        """Gives what is kept, where it is fresh and of this version."""
        found = self._found.get(key)
        is_good = found is not None and found.version == version and now_s - found.came_s < FRESH_S
        return found if is_good else None

    def put(self, key: _Key, found: _Found) -> None:
        """Keeps something for a moment, unless what is kept was asked for later."""
        before = self._found.get(key)
        if before is not None and before.number > found.number:
            return
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
    """An answer that is to be stored."""

    question: Question
    reading: Reading
    read_at_ms: int


class _WriteBehind:
    """Stores answers one after the other in the background: what is new, and what was stored a while ago."""

    def __init__(
        self, last: ReadingShelf, clock: Clock, log: FilteringBoundLogger, start: Start, note: "Note | None"
    ) -> None:
        self._last = last
        self._clock = clock
        self._log = log
        self._start = start
        self._note = note
        self._stored: OrderedDict[_Key, tuple[int, float]] = OrderedDict()
        self._waiting: dict[_Key, _Waiting] = {}
        self._is_storing = False

    def put(self, question: Question, reading: Reading, read_at_ms: int) -> None:
        """Has an answer stored, unless the same one is."""
        key = question.key
        digest, at_s = self._stored.get(key, (None, 0.0))
        if digest == _digest(reading) and self._clock.boot_s() - at_s < STORED_AGAIN_AFTER_S:
            return
        if len(self._waiting) >= STORING_MAX and key not in self._waiting:
            return
        self._waiting[key] = _Waiting(question, reading, read_at_ms)
        if not self._is_storing:
            self._is_storing = True
            self._start(self._store_all())

    async def _store_all(self) -> None:
        try:
            while self._waiting:
                key = next(iter(self._waiting))
                await self._store(key, self._waiting.pop(key))
        except StoreError as error:
            # They get their turn when they are asked for again; a store that is down is not asked for each of them.
            self._waiting.clear()
            self._log.warning("readings_not_stored", reason=str(error))
        finally:
            self._is_storing = False

    async def _store(self, key: _Key, waiting: _Waiting) -> None:
        question, reading, read_at_ms = waiting
        payments = _payments_of(question, reading)
        await self._last.keep(question.merchant, question.call, reading, payments, read_at_ms=read_at_ms)
        if self._note is not None:
            await self._note(question, reading, read_at_ms)
        self._stored.pop(key, None)
        self._stored[key] = (_digest(reading), self._clock.boot_s())
        if len(self._stored) > STORED_MAX:
            self._stored.popitem(last=False)


def _payments_of(question: Question, reading: Reading) -> tuple[Payment, ...]:
    """Gives the payments in an answer; none where it shows none, or not wholly."""
    if not isinstance(question.call, PaymentsOfOrder | PaymentsOfSubscription):
        return ()
    return question.gateway.payments_in(reading.raw_data or b"") or ()


def _digest(reading: Reading) -> int:
    return hash((reading.msg, reading.raw_msg, reading.raw_data))


def _size(reading: Reading) -> int:
    return len(reading.msg) + len(reading.raw_msg or b"") + len(reading.raw_data or b"")
