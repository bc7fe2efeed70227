"""Endpoints and deliveries in the store, on each engine."""

import asyncio
from typing import Any

import msgspec
import pytest
from tests.databases import PassingDatabase
from tests.digests import CHAIN_KEY, digests_of

from payrelay.core.events.delivery import DeliveryState, Endpoint, EndpointState
from payrelay.core.events.event import OutgoingEvent, event_id
from payrelay.core.secret import Secret
from payrelay.errors import StoreUnusable
from payrelay.store.alerts import Alerts, AlertSubject
from payrelay.store.digests.rows import RowKey
from payrelay.store.engine.database import Database, Statement, T, Unit, all_rows, count_rows
from payrelay.store.engine.queries import query
from payrelay.store.engine.sealing import Seal
from payrelay.store.events import feed as feed_statements
from payrelay.store.events import outbox
from payrelay.store.events.deliveries import Deliveries, FailedDelivery
from payrelay.store.events.endpoints import ENDPOINTS_MAX, FORGOTTEN_AT_ONCE, Endpoints
from payrelay.store.events.feed import Feed, Reader
from payrelay.store.statements.events import deliveries as delivery_statements
from payrelay.store.statements.events import endpoints as endpoint_statements

SHOP = Reader("m", "shop")
SECRET = Secret("whsec_CANARYxk7cM0rTGbLrVzQ==")


def endpoint(number: int, **members: object) -> Endpoint:
    """Gives an endpoint by its number, but for what is named."""
    own: dict[str, Any] = {
        "id": f"end_{number:032x}",
        "account": "gateway",
        "merchant": "m",
        "principal": "shop",
        "url": "https://shop.example/events",
        "types": ("customer.*", "checkout.completed"),
        "label": "orders",
        "state": EndpointState.ACTIVE,
        "reason": None,
        "older_ends_at_ms": None,
        "failing_since_ms": None,
        "deferred_until_ms": 0,
        "created_at_ms": 1,
        "updated_at_ms": 1,
    }
    return Endpoint(**(own | members))


@pytest.fixture
def endpoints(database: Database) -> Endpoints:
    """Gives the endpoints of an empty database."""
    return Endpoints(database, Seal((b"k" * 32,)), digests_of(database))


async def queued(database: Database, *subjects: str) -> Deliveries:
    """Publishes an event about each subject, in that order; gives the deliveries."""
    for number, subject in enumerate(subjects, 1):
        one = OutgoingEvent(
            id=event_id(number, subject),
            type="customer.updated",
            account="gateway",
            merchant="m",
            principal="shop",
            subject=subject,
            at_ms=number,
            data={},
        )
        await database.write(outbox.put(one, RowKey(CHAIN_KEY)))
    await Feed(database, digests_of(database)).publish(0)
    return Deliveries(database)


async def test_an_endpoint_is_read_back_whole_with_its_secret(endpoints: Endpoints) -> None:
    """The secret comes out for a sender alone."""
    await endpoints.add(endpoint(1), SECRET)

    assert await endpoints.get(endpoint(1).id) == endpoint(1)
    target = await endpoints.target(endpoint(1).id)
    assert target is not None
    assert (target.newest.reveal(), target.older) == (SECRET.reveal(), None)
    assert "CANARY" not in repr(target)
    assert await endpoints.get("end_2") is None
    assert await endpoints.target("end_2") is None


async def test_a_secret_lies_sealed_and_bound_to_its_row(endpoints: Endpoints, database: Database) -> None:
    """Whoever reads the file has no secret, and whoever writes it can't lend one to another endpoint."""
    await endpoints.add(endpoint(1), SECRET)
    await endpoints.add(endpoint(2), Secret("whsec_b3RoZXI="))

    def move() -> Unit[list[bytes]]:
        rows = yield Statement(query("SELECT sealed_secret FROM endpoints ORDER BY id"), ())
        text = "UPDATE endpoints SET sealed_secret = $1 WHERE id = $2"
        yield Statement(query(text), (rows[0][0], endpoint(2).id))
        return [row[0] for row in rows if isinstance(row[0], bytes)]

    assert all(b"CANARY" not in sealed for sealed in await database.write(move()))
    with pytest.raises(StoreUnusable):
        await endpoints.target(endpoint(2).id)


async def test_an_address_lies_sealed_and_equal_ones_of_one_principal_have_one_hash(
    endpoints: Endpoints, database: Database
) -> None:
    """Its path is often a secret: who reads the file, or a backup of it, neither sees it nor can guess it."""
    url = "https://shop.example/hooks/CANARY?token=CANARY"
    for number, principal in enumerate(("shop", "shop", "other")):
        await endpoints.add(endpoint(number, url=url, principal=principal, label=None), SECRET)
    await endpoints.add(endpoint(3, url=f"{url}2", label=None), SECRET)
    [stop] = [await endpoints.target(endpoint(0).id)]
    assert stop is not None
    await endpoints.change(endpoint(1, url=url, label="CHANGED"), was=endpoint(1, url=url, label=None))
    await endpoints.rotate(endpoint(2).id, SECRET, older_ends_at_ms=2, now_ms=1)
    rows = await database.read(all_rows(Statement(query("SELECT * FROM endpoints ORDER BY id"), ())))
    hashes = await database.read(all_rows(Statement(query("SELECT url_hash FROM endpoints ORDER BY id"), ())))

    assert len(rows) == 4
    assert "CANARY" not in repr(rows)
    assert hashes[0] == hashes[1] == (stop.url_hash,)
    assert len(set(hashes)) == 3
    assert [one.url for one in await endpoints.list(SHOP)] == [url, url, f"{url}2"]
    assert [repr(one).count("CANARY") for one in await endpoints.list_all()] == [0] * 4


async def test_an_address_that_is_not_the_row_s_newest_is_none(endpoints: Endpoints, database: Database) -> None:
    """Another row's, an older one of this row, or no sealed value: events would go there, signed with the secret.

    The row counts as not existing, and is an alert. The digest covers the hash of the newest address.
    """
    await endpoints.add(endpoint(1), SECRET)
    await endpoints.add(endpoint(2, url="https://evil.example/"), SECRET)
    read = Statement(query("SELECT sealed_url FROM endpoints ORDER BY id"), ())
    [older], [foreign] = await database.read(all_rows(read))
    await endpoints.change(endpoint(1, url="https://shop.example/new"), was=endpoint(1))
    for put in (older, foreign, b"\0"):
        text = query("UPDATE endpoints SET sealed_url = $1 WHERE id = $2")
        await database.write(count_rows(Statement(text, (put, endpoint(1).id), is_whole=True)))
        assert await endpoints.target(endpoint(1).id) is None
        assert [one.id for one in await endpoints.list_all()] == [endpoint(2).id]
    due = await Alerts(database, AlertSubject.ROW).lease_due(2**60, leased_until_ms=2**61, limit=10)

    assert [alert.subject_id for alert in due] == [f"endpoints/{endpoint(1).id}"]


async def test_a_failure_at_an_address_that_was_replaced_counts_for_nothing(
    endpoints: Endpoints, database: Database
) -> None:
    """Its owner has just named another one: that one neither fails nor is stopped by what happened at the first."""
    await endpoints.add(endpoint(1), SECRET)
    deliveries = await queued(database, "a")
    target = await endpoints.target(endpoint(1).id)
    assert target is not None
    [lease] = await deliveries.lease_due(endpoint(1).id, 10, leased_until_ms=100, limit=9)
    moved = endpoint(1, url="https://shop.example/new")
    await endpoints.change(moved, was=endpoint(1))
    failure = FailedDelivery(lease=lease, status=500, words="x", next_try_ms=500, url_hash=target.url_hash)
    await deliveries.failed(failure, now_ms=20, deferred_until_ms=90)

    assert await endpoints.stop(endpoint(1).id, "why", 21, url_hash=target.url_hash) is None
    assert await endpoints.get(endpoint(1).id) == moved


async def test_a_rotation_keeps_one_secret_before(endpoints: Endpoints) -> None:
    """And not the one before that."""
    await endpoints.add(endpoint(1), SECRET)
    for text, at_ms in (("whsec_c2Vjb25k", 5), ("whsec_dGhpcmQ=", 6)):
        rotated = await endpoints.rotate(endpoint(1).id, Secret(text), older_ends_at_ms=at_ms + 10, now_ms=at_ms)
        assert rotated is not None
        assert rotated.older_ends_at_ms == at_ms + 10

    target = await endpoints.target(endpoint(1).id)
    assert target is not None
    assert target.older is not None
    assert (target.newest.reveal(), target.older.reveal()) == ("whsec_dGhpcmQ=", "whsec_c2Vjb25k")
    assert await endpoints.rotate("end_2", SECRET, older_ends_at_ms=1, now_ms=1) is None


async def test_a_principal_has_so_many_and_sees_its_own(endpoints: Endpoints) -> None:
    """An event may go to all of them."""
    for number in range(ENDPOINTS_MAX):
        assert await endpoints.add(endpoint(number), SECRET)
    assert not await endpoints.add(endpoint(99), SECRET)
    assert await endpoints.add(endpoint(100, principal="other"), SECRET)

    assert len(await endpoints.list(SHOP)) == ENDPOINTS_MAX
    assert [one.id for one in await endpoints.list(Reader("m", "other"))] == [endpoint(100).id]
    assert len(await endpoints.list_all()) == ENDPOINTS_MAX + 1
    assert (await endpoints.count_by_state())[EndpointState.ACTIVE] == ENDPOINTS_MAX + 1


async def test_endpoints_that_are_added_at_one_moment_are_not_more(endpoints: Endpoints) -> None:
    """Whoever has a key doesn't get around the maximum by asking for all of them at once."""
    added = await asyncio.gather(*(endpoints.add(endpoint(number), SECRET) for number in range(3 * ENDPOINTS_MAX)))

    assert (sum(added), len(await endpoints.list(SHOP))) == (ENDPOINTS_MAX, ENDPOINTS_MAX)


async def test_a_change_and_a_stop_are_stored(endpoints: Endpoints, database: Database) -> None:
    """With a stop, waiting deliveries are given up and an event is written; a second stop changes nothing."""
    await endpoints.add(endpoint(1), SECRET)
    deliveries = await queued(database, "customer:cus_1")
    changed = await endpoints.change(endpoint(1, label=None, types=("*",), updated_at_ms=2), was=endpoint(1))
    assert changed == endpoint(1, label=None, types=("*",), updated_at_ms=2)
    stopped = await endpoints.stop(endpoint(1).id, "why", 3)
    assert stopped is not None
    assert (stopped.state, stopped.reason) == (EndpointState.STOPPED, "why")
    assert await endpoints.stop(endpoint(1).id, "why", 4) is None

    [delivery] = await deliveries.list(endpoint(1).id, state=DeliveryState.GIVEN_UP, before=None, limit=9)
    assert delivery.last_failure == "the endpoint was stopped"
    assert await endpoints.change(endpoint(2), was=endpoint(2)) is None
    now = endpoint(1, label=None, types=("*",), state=EndpointState.STOPPED)
    for older in ({"state": EndpointState.ACTIVE}, {"url": "https://a.example"}, {"types": ("a.*",)}, {"label": "b"}):
        before = msgspec.structs.replace(now, **older)
        assert await endpoints.change(endpoint(1), was=before) is None
    assert await endpoints.change(endpoint(1), was=now) == endpoint(1)
    await Feed(database, digests_of(database)).publish(0)
    assert [one.type for one in await Feed(database, digests_of(database)).tail(1, 9)] == ["endpoint.stopped"]


async def test_a_removed_endpoint_leaves_nothing(endpoints: Endpoints, database: Database) -> None:
    """Nor is anything queued for it again."""
    await endpoints.add(endpoint(1), SECRET)
    deliveries = await queued(database, "customer:cus_1")
    assert await deliveries.waiting() == (1, 0)

    assert await endpoints.remove(endpoint(1).id)
    assert not await endpoints.remove(endpoint(1).id)
    assert await deliveries.list(endpoint(1).id, state=None, before=None, limit=9) == []
    assert await deliveries.waiting() == (0, None)


class CountingUnits(PassingDatabase):
    """A database that counts the units of work that write."""

    def __init__(self, database: Database) -> None:
        super().__init__(database)
        self.units = 0

    async def write(self, unit: Unit[T], *, is_patient: bool = False) -> T:
        """Carries out a unit of work."""
        self.units += 1
        return await super().write(unit, is_patient=is_patient)


async def put_deliveries(database: Database, count: int) -> None:
    """Stores deliveries to the first endpoint without their events."""
    rows = [(endpoint(1).id, number, f"evt_{number}", "a") for number in range(1, count + 1)]
    await database.write(all_rows(Statement(delivery_statements.QUEUE, (msgspec.json.encode(rows).decode(), 0))))


async def test_a_removed_endpoint_s_deliveries_go_in_parts(endpoints: Endpoints, database: Database) -> None:
    """A unit of work that removed a million of them would keep every charge waiting for a minute."""
    await endpoints.add(endpoint(1), SECRET)
    await put_deliveries(database, 2 * FORGOTTEN_AT_ONCE + 1)
    counting = CountingUnits(database)

    assert await Endpoints(counting, Seal((b"k" * 32,)), digests_of(database)).remove(endpoint(1).id)

    assert counting.units == 3
    assert await database.read(all_rows(Statement(query("SELECT * FROM deliveries"), ()))) == []


async def test_deliveries_that_a_removal_left_go_with_their_events(endpoints: Endpoints, database: Database) -> None:
    """The process may have died in the middle; nothing else would remove them."""
    await endpoints.add(endpoint(1), SECRET)
    await put_deliveries(database, 3)
    await database.write(all_rows(Statement(endpoint_statements.REMOVE_ENDPOINT, (endpoint(1).id,))))

    await database.write(all_rows(Statement(feed_statements.FORGET_DELIVERIES, (2,))))

    left = await database.read(all_rows(Statement(query("SELECT position FROM deliveries"), ())))
    assert [row[0] for row in left] == [3]


async def test_of_each_subject_the_first_is_leased_and_by_one(endpoints: Endpoints, database: Database) -> None:
    """The next when that one is delivered; no other process gets a leased one before its lease ends."""
    await endpoints.add(endpoint(1), SECRET)
    deliveries = await queued(database, "a", "b", "a", "a")
    assert await deliveries.endpoints_due(0) == [endpoint(1).id]
    assert await deliveries.next_due_ms() == 0

    first = await deliveries.lease_due(endpoint(1).id, 10, leased_until_ms=100, limit=9)
    assert [(one.position, one.attempts) for one in first] == [(1, 1), (2, 1)]
    assert await deliveries.lease_due(endpoint(1).id, 99, leased_until_ms=200, limit=9) == []
    await deliveries.delivered(endpoint(1).id, first, status=200, now_ms=50)
    second = await deliveries.lease_due(endpoint(1).id, 50, leased_until_ms=150, limit=9)
    assert [one.position for one in second] == [3]
    again = await deliveries.lease_due(endpoint(1).id, 150, leased_until_ms=250, limit=9)
    assert [(one.position, one.attempts) for one in again] == [(3, 2)]


async def test_an_event_that_comes_out_of_the_outbox_again_is_delivered_once(
    endpoints: Endpoints, database: Database
) -> None:
    """Whoever can't know whether a commit came through puts it there again. It keeps its position in the feed.

    A delivery at a second position could never be sent, and all later events about its subject would wait for it.
    """
    await endpoints.add(endpoint(1), SECRET)
    await queued(database, "a")
    deliveries = await queued(database, "a", "b")

    listed = await deliveries.list(endpoint(1).id, state=None, before=None, limit=9)
    assert [(one.subject, one.position) for one in listed] == [("b", 3), ("a", 1)]
    assert (await deliveries.waiting())[0] == 2


async def test_what_was_not_tried_is_given_back(endpoints: Endpoints, database: Database) -> None:
    """Without a try that counts; and not where another process has leased it by now."""
    await endpoints.add(endpoint(1), SECRET)
    deliveries = await queued(database, "a", "b")
    taken = await deliveries.lease_due(endpoint(1).id, 10, leased_until_ms=100, limit=1)
    await deliveries.end_leases(endpoint(1).id, taken, now_ms=20)
    assert [one.attempts for one in await deliveries.lease_due(endpoint(1).id, 20, leased_until_ms=120, limit=9)] == [
        1,
        1,
    ]

    await deliveries.end_leases(endpoint(1).id, taken, now_ms=30)
    assert await deliveries.lease_due(endpoint(1).id, 30, leased_until_ms=130, limit=9) == []


async def test_a_failure_holds_its_subject_and_tells_since_when(endpoints: Endpoints, database: Database) -> None:
    """A try of a process that was too slow changes nothing of what another one does now."""
    await endpoints.add(endpoint(1), SECRET)
    deliveries = await queued(database, "a", "a", "b")
    [head, other] = await deliveries.lease_due(endpoint(1).id, 10, leased_until_ms=100, limit=9)
    failure = FailedDelivery(lease=head, status=500, words="answered with HTTP 500", next_try_ms=500)

    assert await deliveries.failed(failure, now_ms=20, deferred_until_ms=30) == 20
    assert await deliveries.failed(failure, now_ms=25, deferred_until_ms=0) == 20
    assert await deliveries.endpoints_due(29) == []
    assert (await endpoints.get(endpoint(1).id)) == endpoint(1, failing_since_ms=20, deferred_until_ms=30)
    late = FailedDelivery(
        lease=msgspec.structs.replace(other, leased_until_ms=99), status=None, words="late", next_try_ms=None
    )
    await deliveries.failed(late, now_ms=30, deferred_until_ms=0)
    listed = {one.position: one for one in await deliveries.list(endpoint(1).id, state=None, before=None, limit=9)}
    assert [listed[position].next_try_at_ms for position in (1, 2, 3)] == [500, 500, 100]
    assert listed[3].last_failure is None
    await deliveries.delivered(endpoint(1).id, [other], status=204, now_ms=40)
    assert (await endpoints.get(endpoint(1).id)) == endpoint(1, deferred_until_ms=30)


async def test_what_is_given_up_lets_the_next_go_on(endpoints: Endpoints, database: Database) -> None:
    """At once."""
    await endpoints.add(endpoint(1), SECRET)
    deliveries = await queued(database, "a", "a")
    [head] = await deliveries.lease_due(endpoint(1).id, 10, leased_until_ms=100, limit=9)
    await deliveries.failed(
        FailedDelivery(lease=head, status=500, words="x", next_try_ms=500), now_ms=20, deferred_until_ms=0
    )
    [head] = await deliveries.lease_due(endpoint(1).id, 500, leased_until_ms=600, limit=9)
    await deliveries.failed(
        FailedDelivery(lease=head, status=500, words="x", next_try_ms=None), now_ms=510, deferred_until_ms=0
    )

    assert [one.position for one in await deliveries.lease_due(endpoint(1).id, 510, leased_until_ms=600, limit=9)] == [
        2
    ]


async def test_deliveries_are_listed_page_by_page(endpoints: Endpoints, database: Database) -> None:
    """Newest first."""
    await endpoints.add(endpoint(1), SECRET)
    deliveries = await queued(database, *"abcde")

    first = await deliveries.list(endpoint(1).id, state=None, before=None, limit=2)
    second = await deliveries.list(endpoint(1).id, state=DeliveryState.WAITING, before=first[-1].position, limit=2)
    assert [one.subject for one in (*first, *second)] == ["e", "d", "c", "b"]
    assert {one.type for one in first} == {"customer.updated"}
