import asyncio
import dataclasses
from collections.abc import AsyncIterator, Callable, Iterable
from functools import partial
from typing import Final, TypeAlias

import pytest
import structlog
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.digests import digests_of
from tests.draws import examples
from tests.flows.world import CHARGE, HandClock, World, asked
from tests.gateways.still_gateway import StillGateway

from payrelay.core.answers import Answer
from payrelay.core.calls import AllSubscriptions, OneSubscription, PaymentsOfOrder, Read
from payrelay.core.outcomes import Reading
from payrelay.core.payments.payment import Payment
from payrelay.errors import Code, StoreUnavailable
from payrelay.flows.payments.charge import charge
from payrelay.flows.payments.retrieve_payments import retrieve_payments
from payrelay.flows.relay import Relay
from payrelay.flows.subscriptions.read_subscriptions import retrieve_subscription
from payrelay.gateways.payhere.wire.payment_records import payments_in
from payrelay.runtime.background import Background
from payrelay.runtime.read_cache import (
    COVERED,
    FRESH_S,
    GATHER_TIMES,
    KEPT_BYTES_MAX,
    KNOWN_FOR_MS,
    STORED_AGAIN_AFTER_S,
    CachedReading,
    Question,
    ReadCache,
)
from payrelay.store.engine.sealing import Seal
from payrelay.store.gateways.readings import ANSWER_BYTES_MAX, ReadingStore, StoredReading, Version, subject_of
from payrelay.store.payments.known_payments import KnownPayments

ORDER: Final = PaymentsOfOrder(order_id="A-1")
NEVER_S: Final = 1e6
TAKES_S: Final = 0.05
"""What the storing of a reading takes, where it takes long."""
RECORD: Final = b'[{"payment_id":320025,"order_id":"A-1","status":"RECEIVED","currency":"LKR","amount":1000.0}]'
FOUND: Final = Reading(code=None, msg="Payments", raw_msg=b'"Payments"', raw_data=RECORD)
NOTHING: Final = Reading(code=Code.NOT_FOUND, msg="No payments found")


class Shelf:
    """The store as readings see it, in memory. A version is how much has changed so far."""

    def __init__(self) -> None:
        self.changes = 0
        self.is_down = False
        self.last_answers: dict[str, StoredReading] = {}
        self.kept_at_ms: list[int] = []
        self.looks_ms: list[tuple[int, ...]] = []
        self.passing: Callable[[], None] = lambda: None

    async def version(self, _merchant: str, _call: Read) -> Version:
        """Counts the changes."""
        self._require_up()
        return (self.changes,)

    async def last(self, _merchant: str, call: Read) -> StoredReading | None:
        """Gives what was kept."""
        self._require_up()
        return self.last_answers.get(subject_of(call))

    async def keep(
        self,
        _merchant: str,
        call: Read,
        reading: Reading,
        _payments: Iterable[Payment],
        *,
        read_at_ms: int,
        answered_at_ms: int,
    ) -> None:
        """Keeps it."""
        self._require_up()
        self.looks_ms.append((read_at_ms, answered_at_ms))
        self.passing()
        self.kept_at_ms.append(read_at_ms)
        self.last_answers[subject_of(call)] = StoredReading(reading, read_at_ms)

    async def note_payments(self, _merchant: str, _payments: Iterable[Payment], *at_ms: int) -> None:
        """Takes payments that somebody else saw, and needs none of them."""
        self._require_up()
        self.looks_ms.append(at_ms)

    async def forget(self, _merchant: str, calls: Iterable[Read]) -> None:
        """Forgets the answers to these."""
        self._require_up()
        for call in calls:
            self.last_answers.pop(subject_of(call), None)

    async def prune(self, before_ms: int, _limit: int) -> int:
        """Forgets all that is too old."""
        self._require_up()
        old = [subject for subject, answer in self.last_answers.items() if answer.read_at_ms < before_ms]
        for subject in old:
            del self.last_answers[subject]
        return len(old)

    def _require_up(self) -> None:
        if self.is_down:
            raise StoreUnavailable("down")


class Gateway:
    """Answers when a test says so."""

    def __init__(self) -> None:
        self.calls: list[asyncio.Future[Reading]] = []

    async def ask(self) -> Reading:
        """Begins a call, and waits for its answer."""
        self.calls.append(asyncio.get_running_loop().create_future())
        return await self.calls[-1]


class Desk:
    """Readings with everything around them in a test's hands."""

    def __init__(self, *, stale_after_s: float = NEVER_S) -> None:
        self.clock, self.shelf, self.gateway, self.background = HandClock(), Shelf(), Gateway(), Background()
        self.face = StillGateway(self.clock)
        self.logged: list[str] = []
        log = structlog.wrap_logger(
            None, processors=[self._note], wrapper_class=structlog.make_filtering_bound_logger(0)
        )
        start = self.background.start
        self.read_cache = ReadCache(self.shelf, self.clock, log, start=start, stale_after_s=stale_after_s)

    def ask(self, call: Read = ORDER, *, is_insisting: bool = False) -> "asyncio.Task[CachedReading]":
        """Begins to ask."""
        question = Question(gateway=self.face, call=call, ask=self.gateway.ask)
        return asyncio.create_task(self.read_cache.read(question, is_insisting=is_insisting))

    async def told(
        self, reading: Reading | None = None, call: Read = ORDER, *, is_insisting: bool = False
    ) -> CachedReading:
        """Asks; where a reading is given, the gateway is expected to be asked, and says that."""
        before = len(self.gateway.calls)
        asking = self.ask(call, is_insisting=is_insisting)
        await self.turn()
        assert len(self.gateway.calls) - before == (reading is not None)
        if reading is not None:
            self.gateway.calls[-1].set_result(reading)
        told = await asking
        await self.turn()
        return told

    def pass_s(self, seconds: float) -> None:
        """Moves time."""
        self.clock.passed_ms += round(seconds * 1000)

    async def turn(self) -> None:
        """Lets everything run that can."""
        for _ in range(10):
            await asyncio.sleep(0)

    def _note(self, _logger: object, _method: str, event: structlog.typing.EventDict) -> structlog.typing.EventDict:
        self.logged.append(event["event"])
        raise structlog.DropEvent


@pytest.fixture
async def desk() -> AsyncIterator[Desk]:
    """Gives a desk at which no reader gets a stale reading for waiting long."""
    desk = Desk()
    yield desk
    await desk.background.finish(0)


async def test_all_who_ask_the_same_at_once_share_one_call(desk: Desk) -> None:
    """A hundred apps that open one order cost one permit."""
    asking = [desk.ask() for _ in range(100)]
    await desk.turn()
    (call,) = desk.gateway.calls
    call.set_result(FOUND)
    assert [await each for each in asking] == [CachedReading(reading=FOUND)] * 100


async def test_a_reader_that_goes_away_ends_only_its_own_wait(desk: Desk) -> None:
    """Not even the one who asked first, for whom the call was begun."""
    first, second = desk.ask(), desk.ask()
    await desk.turn()
    first.cancel()
    await desk.turn()
    desk.gateway.calls[0].set_result(FOUND)
    assert (await second).reading == FOUND


async def test_what_was_found_is_served_for_a_moment(desk: Desk) -> None:
    """With its age; then the gateway is asked again."""
    await desk.told(FOUND)
    desk.pass_s(FRESH_S - 0.1)
    assert await desk.told() == CachedReading(reading=FOUND, age_s=1)
    desk.pass_s(0.1)
    assert await desk.told(FOUND) == CachedReading(reading=FOUND)


async def test_its_age_counts_from_when_the_gateway_was_asked(desk: Desk) -> None:
    """It is unknown at which moment of a slow call the gateway read its records."""
    asking = desk.ask()
    await desk.turn()
    desk.pass_s(20)
    desk.gateway.calls[0].set_result(FOUND)
    await asking
    assert (await desk.told()).age_s == 20


@pytest.mark.parametrize("code", list(Code))
async def test_only_found_records_are_cached(desk: Desk, code: Code) -> None:
    """That there is nothing may be wrong a moment later, and a failure most likely is."""
    await desk.told(Reading(code=code, msg="no"))
    await desk.told(FOUND)


async def test_an_insisting_reader_gets_no_reading_from_before(desk: Desk) -> None:
    """Neither what is kept nor what is under way; what he learns is for everybody."""
    await desk.told(FOUND)
    newer = Reading(code=None, msg="newer")
    asking = desk.ask(is_insisting=True)
    await desk.turn()
    insisting = desk.ask(is_insisting=True)
    await desk.turn()
    _, first, second = desk.gateway.calls
    second.set_result(newer)
    assert (await insisting).reading == newer
    first.set_result(FOUND)
    assert (await asking).reading == FOUND
    assert (await desk.told()).reading == newer


async def test_after_a_change_the_gateway_is_asked_anew(desk: Desk) -> None:
    """Neither what is kept nor a call that was begun before the change is good enough."""
    await desk.told(FOUND)
    desk.shelf.changes += 1
    before = desk.ask()
    await desk.turn()
    desk.shelf.changes += 1
    await desk.told(FOUND)
    desk.gateway.calls[1].set_result(Reading(code=None, msg="older"))
    assert (await before).reading.msg == "older"
    assert (await desk.told()).reading == FOUND


async def test_a_store_that_is_down_is_no_reason_not_to_read(desk: Desk) -> None:
    """Nothing is shared or kept then, because nobody knows what has changed; the log says what was not stored, once."""
    desk.shelf.is_down = True
    await desk.told(FOUND)
    await desk.told(FOUND)
    assert desk.logged == ["readings_not_stored"] * 2
    desk.shelf.is_down = False
    await desk.told(FOUND)
    assert desk.shelf.last_answers


@pytest.mark.parametrize("code", sorted(COVERED))
async def test_the_last_known_answer_stands_in_where_there_is_none(desk: Desk, code: Code) -> None:
    """With its age, and marked."""
    await desk.told(FOUND)
    desk.pass_s(90)
    told = await desk.told(Reading(code=code, msg="down"))
    assert told == CachedReading(reading=FOUND, age_s=90, is_stale=True)


@pytest.mark.parametrize("code", [code for code in Code if code not in COVERED])
async def test_it_never_hides_what_the_gateway_said(desk: Desk, code: Code) -> None:
    """That it refuses us is for somebody to see, and that there is nothing is an answer."""
    await desk.told(FOUND)
    desk.pass_s(90)
    assert await desk.told(Reading(code=code, msg="no")) == CachedReading(reading=Reading(code=code, msg="no"))


async def test_an_insisting_reader_never_gets_the_last_known_reading(desk: Desk) -> None:
    """A failure is what he asked to hear of."""
    await desk.told(FOUND)
    failed = Reading(code=Code.GATEWAY_UNREACHABLE, msg="down")
    assert await desk.told(failed, is_insisting=True) == CachedReading(reading=failed)


@pytest.mark.parametrize("is_down", [False, True])
async def test_where_no_reading_is_known_the_failure_is_reported(desk: Desk, is_down: bool) -> None:  # noqa: FBT001, a case
    """As it would be without all this."""
    desk.shelf.is_down = is_down
    failed = Reading(code=Code.GATEWAY_UNREACHABLE, msg="down")
    assert await desk.told(failed) == CachedReading(reading=failed)


async def test_what_is_a_month_old_does_not_stand_in(desk: Desk) -> None:
    """Even where it was not forgotten yet."""
    await desk.told(FOUND)
    desk.pass_s(KNOWN_FOR_MS / 1000 + 1)
    assert (await desk.told(Reading(code=Code.UNAVAILABLE, msg="down"))).reading.code is Code.UNAVAILABLE


async def test_a_slow_gateway_is_not_waited_for_where_an_answer_is_known() -> None:
    """The call goes on, and who asks next has its answer."""
    desk = Desk(stale_after_s=0)
    desk.shelf.last_answers[subject_of(ORDER)] = StoredReading(FOUND, desk.clock.now_ms() - 61_999)
    assert await desk.ask() == CachedReading(reading=FOUND, age_s=61, is_stale=True)
    newer = Reading(code=None, msg="newer")
    desk.gateway.calls[0].set_result(newer)
    await desk.turn()
    assert await desk.told() == CachedReading(reading=newer, age_s=0)


async def test_a_slow_gateway_is_waited_for_where_none_is_known() -> None:
    """There is nothing better to tell."""
    desk = Desk(stale_after_s=0)
    asking = desk.ask()
    await desk.turn()
    desk.gateway.calls[0].set_result(FOUND)
    assert await asking == CachedReading(reading=FOUND)
    await desk.background.finish(0)


async def test_the_same_answer_is_stored_once_a_minute(desk: Desk) -> None:
    """A screen that asks every few seconds must not write each time; a change is stored at once."""
    newer = Reading(code=None, msg="newer")
    for seconds, reading in ((0, FOUND), (30, FOUND), (STORED_AGAIN_AFTER_S - 30, FOUND), (3, newer)):
        desk.pass_s(seconds)
        await desk.told(reading)
    began_ms = desk.shelf.kept_at_ms[0]
    assert [at_ms - began_ms for at_ms in desk.shelf.kept_at_ms] == [0, 60_000, 63_000]


async def test_readings_that_come_soon_after_one_are_stored_together(desk: Desk) -> None:
    """A screen full of orders must not sync the disk for each of them."""
    others = [PaymentsOfOrder(order_id=f"B-{number}") for number in range(3)]
    await desk.told(FOUND)
    for other in others:
        await desk.told(FOUND, other)
    assert len(desk.shelf.kept_at_ms) == 1

    await desk.background.finish(20)
    assert desk.shelf.last_answers.keys() == {subject_of(call) for call in (ORDER, *others)}


async def test_storing_takes_at_most_a_fifth_of_the_time(desk: Desk) -> None:
    """A database that is busy is busy with charges: what can wait gives way, and is stored a little later."""
    desk.shelf.passing = lambda: desk.pass_s(TAKES_S)
    await desk.told(FOUND)
    loop = asyncio.get_running_loop()
    began_s = loop.time()
    await desk.told(FOUND, PaymentsOfOrder(order_id="B-1"))

    await desk.background.finish(20)
    assert len(desk.shelf.kept_at_ms) == 2
    assert loop.time() - began_s > TAKES_S * (GATHER_TIMES - 0.5)


async def test_what_waits_to_be_stored_is_forgotten_on_request(desk: Desk) -> None:
    """An erasure would leave behind what is stored a moment later."""
    await desk.told(FOUND)
    await desk.told(FOUND, PaymentsOfOrder(order_id="B-1"))
    await desk.read_cache.forget_orders(desk.face.merchant, ["B-1"])

    await desk.background.finish(20)
    assert desk.shelf.last_answers.keys() == {subject_of(ORDER)}


async def test_no_more_readings_are_cached_than_the_maximum(desk: Desk) -> None:
    """The oldest go first; one that is very long is not kept at all."""
    big = Reading(code=None, msg="", raw_data=b"x" * ANSWER_BYTES_MAX)
    calls = [OneSubscription(subscription_id=number) for number in range(KEPT_BYTES_MAX // ANSWER_BYTES_MAX + 1)]
    for call in calls:
        await desk.told(big, call)
    await desk.told(None, calls[1])
    await desk.told(big, calls[0])
    huge = Reading(code=None, msg="", raw_data=b"x" * (ANSWER_BYTES_MAX + 1))
    await desk.told(huge, AllSubscriptions())
    await desk.told(huge, AllSubscriptions())


Move: TypeAlias = tuple[str, int]


class Play:
    """Readers, changes and answers in some order; every answer tells when its call was begun and ended."""

    def __init__(self) -> None:
        self.desk = Desk()
        self.tick = 0
        self.began: list[tuple[int, int]] = []
        self.asked: list[tuple[asyncio.Task[CachedReading], int, int, bool]] = []

    async def run(self, moves: list[Move]) -> None:
        """Makes the moves, ends every call, and holds each answer against the laws."""
        for name, number in moves:
            self.tick += 1
            await getattr(self, f"_{name}")(number)
        for asking, *_ in self.asked:
            while not asking.done():
                await self.desk.turn()
                await self._end(0)
        for asked_by in self.asked:
            self._judge(*asked_by)
        await self.desk.background.finish(0)

    def _judge(self, asking: "asyncio.Task[CachedReading]", changes: int, tick: int, is_insisting: bool) -> None:  # noqa: FBT001
        if asking.cancelled():
            return
        reading = asking.result().reading
        began_changes, began_tick, ended_tick = map(int, reading.msg.split())
        assert began_changes >= changes, "the call was begun before a change that had been committed"
        assert not is_insisting or began_tick >= tick, "who insists was told of an older call"
        assert reading.code is None or ended_tick >= tick, "what was not found was kept"

    async def _ask(self, number: int) -> None:
        is_insisting = number % 4 == 0
        question = Question(gateway=self.desk.face, call=ORDER, ask=self._call)
        asking = asyncio.create_task(self.desk.read_cache.read(question, is_insisting=is_insisting))
        self.asked.append((asking, self.desk.shelf.changes, self.tick, is_insisting))

    async def _call(self) -> Reading:
        self.began.append((self.desk.shelf.changes, self.tick))
        place = len(self.began) - 1
        ended = await self.desk.gateway.ask()
        changes, tick = self.began[place]
        return Reading(code=ended.code, msg=f"{changes} {tick} {self.tick}")

    async def _change(self, _number: int) -> None:
        self.desk.shelf.changes += 1

    async def _end(self, number: int) -> None:
        open_calls = [call for call in self.desk.gateway.calls if not call.done()]
        if open_calls:
            open_calls[number % len(open_calls)].set_result(NOTHING if number % 3 == 1 else FOUND)

    async def _leave(self, number: int) -> None:
        if self.asked:
            self.asked[number % len(self.asked)][0].cancel()

    async def _turn(self, number: int) -> None:
        for _ in range(number % 12):
            await asyncio.sleep(0)

    async def _wait(self, number: int) -> None:
        self.desk.pass_s(number % 3)


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["ask", "ask", "change", "end", "leave", "turn", "turn", "wait"]), st.integers(0, 30)
        ),
        max_size=40,
    )
)
@settings(max_examples=examples(300))
def test_no_reader_gets_a_reading_from_before_a_change_that_it_may_know_of(moves: list[Move]) -> None:
    """Whatever order readers, changes and answers come in, who leaves, and how long it takes."""
    asyncio.run(Play().run(moves))


@pytest.fixture
def relay(world: World) -> Relay:
    """Gives a relay that keeps its readings in the store."""
    last = ReadingStore(world.database, Seal((b"k" * 32,)), digests_of(world.database))
    relay = world.relay
    return dataclasses.replace(relay, read_cache=ReadCache(last, world.clock, relay.log, start=relay.background.start))


async def test_our_own_charge_makes_what_was_read_old(world: World, relay: Relay) -> None:
    """Through the real store: the answer to a charge, and the next read shows the payment."""
    read = partial(retrieve_payments, relay, asked(relay), ORDER)
    world.account.readings += [FOUND, FOUND]
    await read()
    assert _heads(await read()) == {"Age": "0"}
    await charge(relay, asked(relay, "k-1"), CHARGE)
    assert _heads(await read()) == {}
    assert not world.account.readings


async def test_what_is_known_survives_a_restart(world: World, relay: Relay) -> None:
    """And resolution knows the payments in it."""
    world.account.readings += [FOUND, Reading(code=Code.GATEWAY_UNREACHABLE, msg="down")]
    await retrieve_payments(relay, asked(relay), ORDER)
    await relay.background.finish(1)
    world.clock.passed_ms += 90_000
    last = ReadingStore(world.database, Seal((b"k" * 32,)), digests_of(world.database))
    read_cache = ReadCache(last, world.clock, relay.log, start=relay.background.start)
    answer = await retrieve_payments(dataclasses.replace(relay, read_cache=read_cache), asked(relay), ORDER)
    assert (answer.http_status, _heads(answer)) == (200, {"Age": "90", "Payrelay-Stale": "true"})
    assert await KnownPayments(world.database, digests_of(world.database)).get(world.account.merchant, "320025") == (
        "A-1",
        "LKR",
        "RECEIVED",
    )


async def test_an_answer_made_of_two_is_as_old_as_the_older(world: World, relay: Relay) -> None:
    """And stale where one of them is."""
    one = partial(retrieve_subscription, relay, asked(relay), OneSubscription(subscription_id=7))
    subscription = Reading(code=None, msg="Found", raw_data=b"{}")
    world.account.readings += [subscription, FOUND]
    assert _heads(await one(with_payments=True)) == {}
    await relay.background.finish(1)
    world.clock.passed_ms += 90_000
    world.account.readings += [subscription, Reading(code=Code.GATEWAY_BUSY, msg="busy")]
    assert _heads(await one(with_payments=True)) == {"Age": "90", "Payrelay-Stale": "true"}


async def test_what_others_saw_is_noted(world: World, relay: Relay) -> None:
    """Resolution observes payments too; the next refund of one of them uses the newest observation."""
    payment = payments_in(RECORD, "Asia/Colombo")
    await relay.read_cache.note_payments(world.account.merchant, payment, seen_at_ms=5)
    assert await KnownPayments(world.database, digests_of(world.database)).get(world.account.merchant, "320025") == (
        "A-1",
        "LKR",
        "RECEIVED",
    )


async def test_what_is_seen_is_stored_with_when_it_was_asked_for_and_told() -> None:
    """A refund that is made meanwhile may be in the answer; by the first of the two it would be somebody else's."""
    desk = Desk()
    asked_ms = desk.clock.now_ms()
    asking = desk.ask()
    await desk.turn()
    desk.pass_s(3)
    desk.gateway.calls[-1].set_result(FOUND)
    await asking
    desk.pass_s(1)
    await desk.turn()
    await desk.read_cache.note_payments("m", (), seen_at_ms=asked_ms)
    assert desk.shelf.looks_ms == [(asked_ms, asked_ms + 3_000), (asked_ms, asked_ms + 4_000)]


async def test_a_month_later_it_is_forgotten(world: World, relay: Relay) -> None:
    """Data of a shop's customers is kept for a known time."""
    world.account.readings.append(FOUND)
    await retrieve_payments(relay, asked(relay), ORDER)
    await relay.background.finish(1)
    assert await relay.read_cache.forget_old() == 0
    world.clock.passed_ms += KNOWN_FOR_MS + 1
    assert await relay.read_cache.forget_old() == 1


def _heads(answer: Answer) -> dict[str, str]:
    return dict(answer.headers)
