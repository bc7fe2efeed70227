# ruff: noqa: S608 - what is put into the texts are ids that are made here

"""Events on their way: what receivers may do, and what may happen to us."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest
import structlog
from aiohttp import web
from standardwebhooks import Webhook
from structlog.typing import EventDict
from tests.databases import sqlite_url
from tests.digests import digests_of
from tests.runtime.receivers import (
    LOOPBACK,
    OWNER,
    Answering,
    ReceivedWebhook,
    Receiver,
    SetClock,
    deliver,
    dispatch_on,
    event,
    eventually,
    numbers,
    put,
    receiving,
    register,
)

from payrelay.clock import Clock
from payrelay.core.events.delivery import (
    ATTEMPTS_MAX,
    DELAYS_MS,
    OLDER_SECRET_MS,
    AttemptResult,
    DeliveryState,
    Endpoint,
    EndpointState,
)
from payrelay.core.events.event import PublishedEvent
from payrelay.core.payments.schedules import DAY_MS
from payrelay.errors import Refusal
from payrelay.flows.events.manage_endpoints import (
    Changes,
    DeliveryView,
    ReplayedEvents,
    change_endpoint,
    list_deliveries,
    replay_events,
    rotate_endpoint,
    send_test_event,
    show_endpoint,
)
from payrelay.runtime.event_delivery import LEASE_MS, DeliveryOutcome, Dispatch, publish_events
from payrelay.runtime.webhook_sender import Signer, WebhookSender
from payrelay.store import open_database
from payrelay.store.alerts import Alerts, AlertSubject
from payrelay.store.engine.database import Database, Statement, all_rows
from payrelay.store.engine.queries import query
from payrelay.store.events.feed import PUBLISHED_MAX, Feed

ENGINES = ("sqlite", pytest.param("postgresql", marks=pytest.mark.postgresql))


@pytest.fixture(params=ENGINES)
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Gives the address of an empty database."""
    if request.param == "postgresql":
        return str(request.getfixturevalue("postgresql_url"))
    return sqlite_url(tmp_path / "payrelay.db")


@pytest.fixture
async def database(url: str) -> AsyncIterator[Database]:
    """Opens it."""
    opened = await open_database(url, clock=Clock(), owner=True)
    yield opened
    await opened.close()


@pytest.fixture
def clock() -> SetClock:
    """Gives a clock that stands."""
    return SetClock()


@pytest.fixture
async def dispatch(database: Database, clock: SetClock) -> AsyncIterator[Dispatch]:
    """Gives what one process sends with."""
    made = dispatch_on(database, clock)
    yield made
    await made.close(0)


@pytest.fixture
async def receiver() -> AsyncIterator[Receiver]:
    """Listens."""
    async with receiving() as made:
        yield made


async def deliveries(dispatch: Dispatch, endpoint_id: str) -> list[DeliveryView]:
    """Lists what became of events."""
    return await list_deliveries(dispatch, OWNER, endpoint_id, limit=100)


async def test_an_event_comes_signed(dispatch: Dispatch, database: Database, receiver: Receiver) -> None:
    """The library of any language verifies it; the clock is the real one, because the library looks at it."""
    real = dispatch_on(database, Clock())
    issued = await register(real, receiver.url, "customer.*")
    await put(database, event(1))
    await deliver(real)

    [received] = receiver.received
    assert Webhook(issued.secret).verify(received.body, received.headers) == {
        "id": event(1).id,
        "type": "customer.created",
        "timestamp": "2026-09-21T14:13:20.000Z",
        "account": "gateway",
        "subject": "customer:cus_1",
        "data": {"number": 1},
    }
    assert received.id == event(1).id
    [delivery] = await deliveries(dispatch, issued.id)
    assert (delivery.state, delivery.attempts, delivery.last_status) == (DeliveryState.DELIVERED, 1, 200)
    await real.close()


async def test_only_what_is_wanted_is_sent(dispatch: Dispatch, database: Database, receiver: Receiver) -> None:
    """By type, and by whose it is."""
    await register(dispatch, receiver.url, "customer.created")
    await put(database, event(1), event(2, type="checkout.completed"), event(3, principal="other"))
    await put(database, event(4, merchant="other"), event(5))
    await deliver(dispatch)

    assert sorted(numbers(receiver)) == [1, 5]


async def test_a_failure_is_tried_again_by_schedule(
    dispatch: Dispatch, database: Database, receiver: Receiver, clock: SetClock
) -> None:
    """500, then 200: the same event with the same id, not before its time."""
    issued = await register(dispatch, receiver.url)
    receiver.answers = [web.Response(status=500)]
    await put(database, event(1))
    await deliver(dispatch)
    assert (await show_endpoint(dispatch, OWNER, issued.id)).failing_since is not None
    clock.at_ms += DELAYS_MS[0] - 1
    await deliver(dispatch)
    assert len(receiver.received) == 1

    clock.at_ms += 1
    await deliver(dispatch)
    first, second = receiver.received
    assert (first.id, first.body) == (second.id, second.body)
    assert first.headers["webhook-timestamp"] != second.headers["webhook-timestamp"]
    [delivery] = await deliveries(dispatch, issued.id)
    assert (delivery.state, delivery.attempts) == (DeliveryState.DELIVERED, 2)
    assert (await show_endpoint(dispatch, OWNER, issued.id)).failing_since is None


async def test_a_subject_that_fails_blocks_only_itself(
    dispatch: Dispatch, database: Database, receiver: Receiver, clock: SetClock
) -> None:
    """Events of one customer are sent in their order; another customer's events don't wait for them."""
    await register(dispatch, receiver.url)
    receiver.answering = failing_for("customer:cus_1")
    await put(database, event(1), event(2, subject="customer:cus_1"), event(3), event(4, subject="customer:cus_3"))
    await deliver(dispatch)
    assert sorted(numbers(receiver)) == [1, 3, 4]

    receiver.answering = None
    await put(database, event(5, subject="customer:cus_1"), event(6))
    await deliver(dispatch)
    assert sorted(numbers(receiver)[3:]) == [6], "what comes later about it waits too"
    clock.at_ms += DELAYS_MS[0]
    await deliver(dispatch)
    assert numbers(receiver)[4:] == [1, 2, 5]


def failing_for(subject: str) -> Answering:
    """Answers 500 to what is about one subject."""

    async def answer(received: ReceivedWebhook) -> web.Response:
        return web.Response(status=500 if received.message["subject"] == subject else 204)

    return answer


async def test_what_fails_to_the_end_is_given_up_and_the_next_goes_on(
    dispatch: Dispatch, database: Database, receiver: Receiver, clock: SetClock
) -> None:
    """Ten attempts; as long as it accepts other events, the endpoint is not to blame."""
    issued = await register(dispatch, receiver.url)
    receiver.answering = failing_for("customer:cus_1")
    await put(database, event(1), event(2, subject="customer:cus_1"))
    await deliver(dispatch)
    for number, delay_ms in enumerate(DELAYS_MS, 10):
        clock.at_ms += delay_ms
        await put(database, event(number))
        await deliver(dispatch)

    listed = {delivery.event_id: delivery for delivery in await deliveries(dispatch, issued.id)}
    given_up = listed[event(1).id]
    assert (given_up.state, given_up.attempts, given_up.last_status) == (DeliveryState.GIVEN_UP, ATTEMPTS_MAX, 500)
    assert listed[event(2).id].attempts == 1
    assert (await show_endpoint(dispatch, OWNER, issued.id)).state is EndpointState.ACTIVE


async def test_an_endpoint_that_fails_for_three_days_is_stopped_with_an_event(
    dispatch: Dispatch, database: Database, receiver: Receiver, clock: SetClock
) -> None:
    """Nobody is there any more; whoever follows the feed, or has another endpoint, hears of it."""
    counted: list[DeliveryOutcome] = []
    dispatch.counted = counted.append
    issued = await register(dispatch, receiver.url)
    receiver.answering = failing_for("customer:cus_1")
    await put(database, event(1))
    await deliver(dispatch)
    for delay_ms in DELAYS_MS:
        clock.at_ms += delay_ms
        await deliver(dispatch)

    stopped = await show_endpoint(dispatch, OWNER, issued.id)
    assert (stopped.state, stopped.reason) == (EndpointState.STOPPED, "it accepted no event for three days")
    await dispatch.feed.publish(clock.now_ms())
    told = (await dispatch.feed.read(OWNER.reader, after=1, limit=9)).events
    assert [(one.type, one.subject) for one in told] == [("endpoint.stopped", f"endpoint:{issued.id}")]
    assert counted[-1] is DeliveryOutcome.STOPPED
    await put(database, event(2))
    await deliver(dispatch)
    assert 2 not in numbers(receiver)


async def test_410_stops_an_endpoint_at_once(
    dispatch: Dispatch, database: Database, receiver: Receiver, clock: SetClock
) -> None:
    """The receiver wants no more events; waiting deliveries are given up, and can be replayed."""
    issued = await register(dispatch, receiver.url)
    receiver.answers = [web.Response(status=410)]
    await put(database, event(1), event(2, subject="customer:cus_1"))
    await deliver(dispatch)

    assert len(receiver.received) == 1
    assert (await show_endpoint(dispatch, OWNER, issued.id)).state is EndpointState.STOPPED
    assert {one.state for one in await deliveries(dispatch, issued.id)} == {DeliveryState.GIVEN_UP}
    [alert] = await Alerts(database, AlertSubject.ENDPOINT).lease_due(
        clock.now_ms(), leased_until_ms=clock.now_ms() + 1, limit=10
    )
    assert (alert.subject_id, alert.attempts) == (issued.id, 0), "a person is called"

    await change_endpoint(dispatch, OWNER, issued.id, Changes(state=EndpointState.ACTIVE))
    replayed = await replay_events(dispatch, OWNER, issued.id, ReplayedEvents())
    await deliver(dispatch)
    assert replayed.events == 3, "the stop is an event of its own"
    assert [one.message["data"].get("number") for one in receiver.received[1:]].count(1) == 1
    assert {one.state for one in await deliveries(dispatch, issued.id)} == {DeliveryState.DELIVERED}


@pytest.mark.parametrize("status", [410, 429])
async def test_failures_of_an_old_address_do_not_count_for_the_new_one(
    dispatch: Dispatch, database: Database, receiver: Receiver, status: int
) -> None:
    """A receiver that moves says so at its old address, while something is on its way there."""
    issued = await register(dispatch, receiver.url)

    async def moving(_: ReceivedWebhook) -> web.Response:
        """Is moved, and only then says that nobody is here any more."""
        receiver.answering = None
        await change_endpoint(dispatch, OWNER, issued.id, Changes(url=f"{receiver.url}/new"))
        return web.Response(status=status, headers={"Retry-After": "3600"})

    receiver.answering = moving
    await put(database, event(1))
    await deliver(dispatch)
    shown = await show_endpoint(dispatch, OWNER, issued.id)
    assert (shown.state, shown.failing_since) == (EndpointState.ACTIVE, None)
    await put(database, event(2, subject="customer:cus_2"))
    await deliver(dispatch)

    assert numbers(receiver) == [1, 2]


@pytest.mark.parametrize("status", [429, 503])
async def test_a_receiver_that_asks_for_patience_gets_it(
    dispatch: Dispatch, database: Database, receiver: Receiver, clock: SetClock, status: int
) -> None:
    """429 with Retry-After: nothing at all is sent to it before that."""
    await register(dispatch, receiver.url)
    receiver.answers = [web.Response(status=status, headers={"Retry-After": "120"})]
    await put(database, event(1))
    await deliver(dispatch)
    await put(database, event(2))
    clock.at_ms += 119_999
    await deliver(dispatch)
    assert numbers(receiver) == [1]

    clock.at_ms += 1
    await deliver(dispatch)
    assert sorted(numbers(receiver)) == [1, 1, 2]


async def test_a_redirect_is_a_failure_and_not_followed(
    dispatch: Dispatch, database: Database, receiver: Receiver
) -> None:
    """It could lead anywhere, with our signature on it."""
    issued = await register(dispatch, receiver.url)
    receiver.answers = [web.Response(status=302, headers={"Location": receiver.url})]
    await put(database, event(1))
    await deliver(dispatch)

    assert len(receiver.received) == 1
    [delivery] = await deliveries(dispatch, issued.id)
    assert (delivery.state, delivery.last_failure) == (DeliveryState.WAITING, "answered with HTTP 302")


async def test_an_endpoint_that_never_answers_delays_no_other(
    dispatch: Dispatch, database: Database, receiver: Receiver
) -> None:
    """Each endpoint has a worker of its own, and each subject an order of its own."""
    is_over = asyncio.Event()

    async def hang(received: ReceivedWebhook) -> web.Response:
        if received.message["data"]["number"] == 1:
            await is_over.wait()
        return web.Response()

    receiver.answering = hang
    async with receiving() as silent, receiving() as quick:
        silent.answering = lambda _: hang(ReceivedWebhook({}, b'{"data": {"number": 1}}'))
        for one in (silent, receiver, quick):
            await register(dispatch, one.url)
        await put(database, *(event(number) for number in range(1, 100)))
        await publish_events(dispatch)
        await eventually(lambda: len(quick.received) == 99 and len(receiver.received) == 99)
        assert silent.at_once_max <= 64
        is_over.set()
        await deliver(dispatch)


async def test_an_event_that_was_written_twice_is_sent_once_and_blocks_nothing(
    dispatch: Dispatch, database: Database, receiver: Receiver
) -> None:
    """What is done again after a crash may tell again, under the same id; what comes after it goes its way."""
    issued = await register(dispatch, receiver.url)
    await put(database, event(1))
    await deliver(dispatch)
    await put(database, event(1), event(2, subject="customer:cus_1"))
    await deliver(dispatch)

    assert numbers(receiver) == [1, 2]
    assert [one.state for one in await deliveries(dispatch, issued.id)] == [DeliveryState.DELIVERED] * 2
    assert await dispatch.deliveries.waiting() == (0, None)


class HeldFeed(Feed):
    """A feed in which another process gives positions until it is let go."""

    def __init__(self, database: Database) -> None:
        super().__init__(database, digests_of(database))
        self.begun = 0
        self.free = asyncio.Event()

    async def publish(self, now_ms: int, limit: int = PUBLISHED_MAX, *, incarnation: int = 1) -> int:
        """Waits for its turn, as at the lock of the feed."""
        self.begun += 1
        await self.free.wait()
        return await super().publish(now_ms, limit, incarnation=incarnation)


async def test_a_process_publishes_once_at_a_time_however_often_it_is_woken(
    database: Database, clock: SetClock, receiver: Receiver
) -> None:
    """A second unit would wait for the first with a connection in its hand, and soon no charge would have one."""
    dispatch = dispatch_on(database, clock)
    dispatch.feed = feed = HeldFeed(database)
    await register(dispatch, receiver.url)
    await put(database, event(1))
    dispatch.wake()
    await eventually(lambda: feed.begun == 1)
    await put(database, event(2))
    for _ in range(3):
        dispatch.wake()
        assert dispatch.waking is None

    feed.free.set()
    await eventually(lambda: numbers(receiver) == [1, 2])
    await put(database, event(3))
    dispatch.wake()
    await eventually(lambda: numbers(receiver) == [1, 2, 3])
    await dispatch.close()


async def test_many_that_never_answer_leave_room_for_others(
    dispatch: Dispatch, database: Database, receiver: Receiver
) -> None:
    """Connections are few: endpoints share them, so that many slow ones of one principal hold up no other."""
    is_over = asyncio.Event()

    async def hang(_: ReceivedWebhook) -> web.Response:
        await is_over.wait()
        return web.Response()

    dispatch.attempts_max = 40
    async with receiving() as silent:
        silent.answering = hang
        for number in range(4):
            await register(dispatch, f"{silent.url}/{number}")
        await register(dispatch, receiver.url)
        await put(database, *(event(number) for number in range(20)))
        await publish_events(dispatch)
        await eventually(lambda: len(receiver.received) == 20)
        assert silent.at_once_max <= 4 * 8
        is_over.set()
        await deliver(dispatch)


async def test_a_receiver_that_is_too_slow_has_failed(database: Database, clock: SetClock, receiver: Receiver) -> None:
    """The receiver may have accepted it, and gets it again under its id."""
    is_over = asyncio.Event()

    async def hang(_: ReceivedWebhook) -> web.Response:
        await is_over.wait()
        return web.Response()

    receiver.answering = hang
    hasty = dispatch_on(database, clock, limit_s=0.05)
    issued = await register(hasty, receiver.url)
    await put(database, event(1))
    await deliver(hasty)
    [delivery] = await deliveries(hasty, issued.id)
    assert (delivery.state, delivery.last_status) == (DeliveryState.WAITING, None)
    assert delivery.last_failure == "had not answered after 0.05 s"
    is_over.set()
    await hasty.close()


async def test_both_secrets_count_during_a_rotation(database: Database, receiver: Receiver) -> None:
    """A receiver changes its secret whenever it likes within a day, and misses nothing."""
    clock = Clock()
    dispatch = dispatch_on(database, clock)
    before = await register(dispatch, receiver.url)
    after = await rotate_endpoint(dispatch, OWNER, before.id)
    await put(database, event(1))
    await deliver(dispatch)

    [received] = receiver.received
    assert before.secret != after.secret
    for secret in (before.secret, after.secret):
        assert Webhook(secret).verify(received.body, received.headers)
    await dispatch.close()


async def test_the_older_secret_ends(
    dispatch: Dispatch, database: Database, receiver: Receiver, clock: SetClock
) -> None:
    """One that leaked doesn't count for ever."""
    issued = await register(dispatch, receiver.url)
    await rotate_endpoint(dispatch, OWNER, issued.id)
    await put(database, event(1))
    await deliver(dispatch)
    clock.at_ms += OLDER_SECRET_MS
    await put(database, event(2))
    await deliver(dispatch)

    assert [len(one.headers["webhook-signature"].split(" ")) for one in receiver.received] == [2, 1]


async def test_a_paused_endpoint_gets_later_what_came_meanwhile(
    dispatch: Dispatch, database: Database, receiver: Receiver
) -> None:
    """A receiver that is being rebuilt loses nothing."""
    issued = await register(dispatch, receiver.url)
    await change_endpoint(dispatch, OWNER, issued.id, Changes(state=EndpointState.PAUSED))
    await put(database, event(1))
    await deliver(dispatch)
    assert receiver.received == []

    await change_endpoint(dispatch, OWNER, issued.id, Changes(state=EndpointState.ACTIVE))
    await deliver(dispatch)
    assert numbers(receiver) == [1]


async def test_a_test_goes_to_its_endpoint_alone(dispatch: Dispatch, receiver: Receiver) -> None:
    """Whatever types it wants."""
    async with receiving() as other:
        await register(dispatch, other.url)
        issued = await register(dispatch, receiver.url, "checkout.completed")
        id_ = await send_test_event(dispatch, OWNER, issued.id)
        await deliver(dispatch)

    assert [one.id for one in receiver.received] == [id_]
    assert other.received == []


async def test_events_are_replayed_one_by_one_or_by_span(
    dispatch: Dispatch, database: Database, receiver: Receiver
) -> None:
    """A receiver that lost events asks for them again; the ids tell it which ones it has."""
    issued = await register(dispatch, receiver.url, "customer.*")
    await put(database, event(1), event(2, at_ms=DAY_MS), event(3, at_ms=DAY_MS, type="checkout.failed"))
    await deliver(dispatch)
    receiver.received.clear()

    assert (await replay_events(dispatch, OWNER, issued.id, ReplayedEvents(ids=(event(1).id,)))).events == 1
    await deliver(dispatch)
    assert numbers(receiver) == [1]
    span = ReplayedEvents(from_ms=DAY_MS, until_ms=DAY_MS + 1)
    assert (await replay_events(dispatch, OWNER, issued.id, span)).events == 1
    await deliver(dispatch)
    assert numbers(receiver) == [1, 2]


async def test_a_process_that_dies_before_its_send_loses_nothing(
    dispatch: Dispatch, database: Database, receiver: Receiver, clock: SetClock
) -> None:
    """What it took comes back when its time is over, and goes out once."""
    issued = await register(dispatch, receiver.url)
    await put(database, event(1))
    await dispatch.feed.publish(clock.now_ms())
    now_ms = clock.now_ms()
    taken = await dispatch.deliveries.lease_due(issued.id, now_ms, leased_until_ms=now_ms + LEASE_MS, limit=9)
    assert len(taken) == 1

    await deliver(dispatch)
    assert receiver.received == []
    clock.at_ms += LEASE_MS
    await deliver(dispatch)
    assert numbers(receiver) == [1]


class Broken(WebhookSender):
    """Fails with a fault of the program's own."""

    async def send(self, endpoint: Endpoint, signer: Signer, event: PublishedEvent) -> AttemptResult:
        """Raises."""
        raise ValueError(f"a fault of our own with {event.id} to {endpoint.id}, signed by {signer}")


async def test_a_fault_of_our_own_is_told_once_and_the_event_comes_later(
    dispatch: Dispatch, database: Database, receiver: Receiver, clock: SetClock
) -> None:
    """Begun anew at once it would fail at once, for ever: the process would do nothing else any more."""
    told: list[str] = []

    def note(_logger: object, _method: str, line: EventDict) -> EventDict:
        told.append(line["event"])
        raise structlog.DropEvent

    broken = replace(
        dispatch, sender=Broken(LOOPBACK, clock), log=structlog.wrap_logger(None, processors=[note]), workers={}
    )
    await register(dispatch, receiver.url)
    await put(database, event(1))
    async with asyncio.timeout(20):
        await deliver(broken)
    assert (told, receiver.received) == (["delivering_failed"], [])

    clock.at_ms += LEASE_MS
    await deliver(dispatch)
    assert numbers(receiver) == [1]
    await broken.close()


async def test_a_process_that_dies_after_its_send_repeats_it_under_the_same_id(
    dispatch: Dispatch, database: Database, receiver: Receiver, clock: SetClock
) -> None:
    """The receiver knows it by its id, as the standard says."""
    await register(dispatch, receiver.url)
    is_over = asyncio.Event()

    async def hang(_: ReceivedWebhook) -> web.Response:
        await is_over.wait()
        return web.Response()

    receiver.answering = hang
    await put(database, event(1))
    dying = dispatch_on(database, clock)
    await publish_events(dying)
    await eventually(lambda: len(receiver.received) == 1)
    await dying.close(0)
    is_over.set()
    receiver.answering = None

    clock.at_ms += LEASE_MS
    await deliver(dispatch)
    assert [one.id for one in receiver.received] == [event(1).id] * 2


async def test_a_process_that_dies_while_publishing_has_done_all_or_nothing(
    dispatch: Dispatch, database: Database, receiver: Receiver
) -> None:
    """An event has a position and its deliveries, or neither."""
    await register(dispatch, receiver.url)
    await put(database, *(event(number) for number in range(20)))
    publishing = asyncio.create_task(dispatch.feed.publish(0))
    await asyncio.sleep(0)
    publishing.cancel()
    await asyncio.gather(publishing, return_exceptions=True)
    await deliver(dispatch)

    assert sorted(numbers(receiver)) == list(range(20))


async def test_many_processes_share_the_work(url: str, database: Database, clock: SetClock, receiver: Receiver) -> None:
    """Each event is sent once, and those about a subject in their order, however many send."""
    others = [await open_database(url, clock=Clock(), owner=False) for _ in range(2)]
    dispatches = [dispatch_on(own, clock) for own in (database, *others)]
    await register(dispatches[0], receiver.url)
    subjects, each = 12, 10
    await put(
        database,
        *(event(number, subject=f"customer:cus_{number % subjects}") for number in range(subjects * each)),
    )
    async with asyncio.timeout(60):
        await asyncio.gather(*(deliver(dispatch) for dispatch in dispatches))
        await deliver(*dispatches)
    for dispatch in dispatches:
        await dispatch.close()
    for own in others:
        await own.close()

    came = numbers(receiver)
    assert sorted(came) == list(range(subjects * each))
    for subject in range(subjects):
        of_one = [number for number in came if number % subjects == subject]
        assert of_one == sorted(of_one)


async def forge(database: Database, sql: str) -> None:
    """Writes to the database as somebody does who has no key."""
    await database.write(all_rows(Statement(query(sql), ())))


async def test_an_event_that_was_changed_while_it_waited_is_never_sent(
    dispatch: Dispatch, database: Database, receiver: Receiver
) -> None:
    """The signature would say that it comes from here. It is given up, and what comes after it goes its way."""
    issued = await register(dispatch, receiver.url)
    await put(database, event(1), event(2, subject=event(1).subject))
    await dispatch.feed.publish(dispatch.clock.now_ms())
    await forge(database, "UPDATE events SET data = '{\"number\":7}' WHERE position = 1")
    await deliver(dispatch)

    assert numbers(receiver) == [2]
    assert [one.state for one in await deliveries(dispatch, issued.id)] == [
        DeliveryState.DELIVERED,
        DeliveryState.GIVEN_UP,
    ]
    assert await dispatch.deliveries.waiting() == (0, None)
    assert (await show_endpoint(dispatch, OWNER, issued.id)).failing_since is None


async def test_an_event_of_another_principal_is_not_sent(
    dispatch: Dispatch, database: Database, receiver: Receiver
) -> None:
    """A delivery that somebody wrote into the database names it: an endpoint gets what its own owner may read."""
    issued = await register(dispatch, receiver.url)
    await put(database, event(1, principal="kiosk"), event(2))
    await dispatch.feed.publish(dispatch.clock.now_ms())
    await forge(
        database,
        "INSERT INTO deliveries (endpoint_id, position, event_id, subject, state, attempts, queued_at_ms,"
        f" next_try_at_ms) SELECT '{issued.id}', position, id, subject, 'waiting', 0, 1, 1 FROM events"
        " WHERE position = 1",
    )
    await deliver(dispatch)

    assert numbers(receiver) == [2]
    assert await dispatch.deliveries.waiting() == (0, None)


async def test_a_forged_event_is_not_replayed(dispatch: Dispatch, database: Database, receiver: Receiver) -> None:
    """Its id names nothing, and a span leaves it out."""
    issued = await register(dispatch, receiver.url)
    await put(database, event(1), event(2))
    await deliver(dispatch)
    await forge(database, "UPDATE events SET data = '{\"number\":7}' WHERE position = 1")
    with pytest.raises(Refusal):
        await replay_events(dispatch, OWNER, issued.id, ReplayedEvents(ids=(event(1).id,)))
    await replay_events(dispatch, OWNER, issued.id, ReplayedEvents(from_ms=0, until_ms=2**60))
    await deliver(dispatch)

    assert numbers(receiver) == [1, 2, 2]
