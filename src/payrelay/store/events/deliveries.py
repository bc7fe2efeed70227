"""Deliveries in the store: the events for each endpoint, in their order, with the outcomes of the attempts.

Rules:

1. A waiting delivery has a time for its next attempt. A process that leases it puts that time off for as long as
   sending may last. No other process leases it meanwhile, and the leases of a dead process end by themselves.
2. Of the events about one subject, an endpoint gets the first that waits. It gets the next one only when that was
   delivered or given up. Other subjects don't wait for it.
"""

from collections.abc import Sequence
from typing import Final, TypeAlias

import msgspec

from payrelay.core.events.delivery import DeliveryState, Pattern, pattern_of
from payrelay.core.events.event import TEST, PublishedEvent
from payrelay.store.engine.database import Database, Row, Statement, Unit, all_rows
from payrelay.store.engine.rows import moment_in, struct_of
from payrelay.store.statements.events import deliveries as statements
from payrelay.store.statements.events import endpoints as endpoint_statements

DELIVERIES_MAX: Final = 1_000
"""Of one page, whatever the caller asks for."""
_ABOVE_ALL: Final = 2**62
"""Above every position."""

_encode: Final = msgspec.json.Encoder().encode
_Patterns: TypeAlias = tuple[Pattern, ...]


class LeasedDelivery(msgspec.Struct, frozen=True, kw_only=True):
    """A delivery that this process has leased, to be sent now.

    Attributes:
        endpoint_id, position, subject: its endpoint, and the position and subject of its event.
        attempts: the number of attempts, this one among them.
        leased_until_ms: no other process leases it before this time.
    """

    endpoint_id: str
    position: int
    subject: str
    attempts: int
    leased_until_ms: int


class Delivery(msgspec.Struct, frozen=True, kw_only=True):
    """The delivery of one event to one endpoint, as it is shown."""

    position: int
    event_id: str
    subject: str
    state: DeliveryState
    attempts: int
    queued_at_ms: int
    next_try_at_ms: int | None
    last_try_at_ms: int | None
    last_status: int | None
    last_failure: str | None
    type: str


class FailedDelivery(msgspec.Struct, frozen=True, kw_only=True):
    """A failed attempt: its outcome, and the time of the next attempt; None where the delivery is given up.

    ``url_hash`` is of the address of the attempt; None where it is unknown.
    """

    lease: LeasedDelivery
    status: int | None
    words: str
    next_try_ms: int | None
    url_hash: str | None = None


class Subscriber(msgspec.Struct, frozen=True):
    """An endpoint for which events are queued, and the types of events that it wants."""

    id: str
    patterns: _Patterns


Subscribers: TypeAlias = dict[tuple[str, str], list[Subscriber]]
"""The endpoints of each merchant and principal."""
_Leases: TypeAlias = list[LeasedDelivery]
_Deliveries: TypeAlias = list[Delivery]


class Deliveries:
    """Leases the deliveries that are due, each to one process, and stores their outcomes."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def endpoints_due(self, now_ms: int) -> list[str]:
        """Names the active endpoints that have a delivery due."""
        rows = await self._database.read(all_rows(Statement(statements.ENDPOINTS_DUE, (now_ms,))))
        return [str(row[0]) for row in rows]

    async def next_due_ms(self) -> int | None:
        """Gives the time at which the next delivery is due; None where none waits."""
        return await self._database.read(moment_in(Statement(statements.NEXT_DELIVERY, ())))

    async def lease_due(self, endpoint_id: str, now_ms: int, *, leased_until_ms: int, limit: int) -> _Leases:
        """Leases at most ``limit`` deliveries to an endpoint that are due, in the order of the feed."""
        statement = Statement(statements.LEASE_DELIVERIES, (endpoint_id, now_ms, leased_until_ms, limit), is_whole=True)
        rows = await self._database.write(all_rows(statement))
        members = {"endpoint_id": endpoint_id, "leased_until_ms": leased_until_ms}
        leases = [
            msgspec.convert(members | dict(zip(("position", "subject", "attempts"), row, strict=True)), LeasedDelivery)
            for row in rows
        ]
        return sorted(leases, key=lambda delivery: delivery.position)

    async def delivered(self, endpoint_id: str, leases: _Leases, *, status: int, now_ms: int) -> None:
        """Stores that the receiver has accepted deliveries. Deliveries that waited for them are due."""
        if leases:
            await self._database.write(_delivered(endpoint_id, leases, status, now_ms))

    async def give_up(self, endpoint_id: str, leases: _Leases, words: str, *, now_ms: int) -> None:
        """Gives leased deliveries up that can never be sent. What waited for them is due."""
        if leases:
            await self._database.write(_given_up(endpoint_id, leases, words, now_ms))

    async def end_leases(self, endpoint_id: str, leases: _Leases, *, now_ms: int) -> None:
        """Ends the leases of deliveries that were not attempted after all: they are due for any process."""
        until: dict[int, list[int]] = {}
        for delivery in leases:
            until.setdefault(delivery.leased_until_ms, []).append(delivery.position)
        for until_ms, positions in until.items():
            parameters = (endpoint_id, _encode(positions).decode(), now_ms, until_ms)
            await self._database.write(all_rows(Statement(statements.END_LEASES, parameters, is_whole=True)))

    async def failed(self, failure: FailedDelivery, *, now_ms: int, deferred_until_ms: int) -> int:
        """Stores a failed attempt and the time of the next one; gives the time since which the endpoint fails.

        Does not change the delivery where another process has leased it meanwhile, nor an endpoint that was moved to
        another address meanwhile.
        """
        return await self._database.write(_failed(failure, now_ms, deferred_until_ms))

    async def queue_again(self, endpoint_id: str, events: Sequence[PublishedEvent], now_ms: int) -> None:
        """Queues events for an endpoint, whatever became of them before. A waiting delivery stays as it is."""
        queued = [(endpoint_id, event.position, event.id, event.subject) for event in events]
        if queued:
            statement = Statement(statements.QUEUE_AGAIN, (_encode(queued).decode(), now_ms), is_whole=True)
            await self._database.write(all_rows(statement))

    async def list(
        self, endpoint_id: str, *, state: DeliveryState | None, before: int | None, limit: int
    ) -> _Deliveries:
        """Reads the deliveries to an endpoint, newest first, below a position."""
        first = _ABOVE_ALL if before is None else before
        parameters = (endpoint_id, first, min(limit, DELIVERIES_MAX))
        if state is None:
            statement = Statement(statements.LIST_DELIVERIES, parameters)
        else:
            statement = Statement(statements.LIST_DELIVERIES_IN[state], (*parameters, state))
        rows = await self._database.read_page(all_rows(statement))
        return [struct_of(row, Delivery) for row in rows]

    async def waiting(self) -> tuple[int, int | None]:
        """Counts the waiting deliveries, and gives the time since which the oldest waits; None where none does."""
        [[count, oldest_ms]] = await self._database.read(all_rows(Statement(statements.COUNT_WAITING, ())))
        return msgspec.convert((count, oldest_ms), tuple[int, int | None])


def read_subscribers() -> Unit[Subscribers]:
    """Reads the endpoints for which events are queued; a part of another unit of work (``yield from``)."""
    found: Subscribers = {}
    for endpoint_id, merchant, principal, types in (yield Statement(statements.LISTENING, ())):
        patterns = tuple(pattern_of(text) for text in str(types).split(","))
        found.setdefault((str(merchant), str(principal)), []).append(Subscriber(str(endpoint_id), patterns))
    return found


def queue(events: Sequence[Row], subscribers: Subscribers, now_ms: int) -> Unit[None]:
    """Queues events for the endpoints that want them; a part of another unit of work.

    The events have the columns of ``events`` in their order.
    """
    queued = [
        (subscriber.id, position, event_id, subject)
        for position, event_id, type_, _account, merchant, principal, subject, *_ in events
        for subscriber in subscribers.get((str(merchant), str(principal)), ())
        if _is_wanted(str(type_), str(subject), subscriber)
    ]
    if queued:
        yield Statement(statements.QUEUE, (_encode(queued).decode(), now_ms))


def _is_wanted(type_: str, subject: str, subscriber: Subscriber) -> bool:
    if type_ == TEST:
        return subject == f"endpoint:{subscriber.id}"
    return any(pattern.fits(type_) for pattern in subscriber.patterns)


def _delivered(endpoint_id: str, leases: _Leases, status: int, now_ms: int) -> Unit[None]:
    positions = _encode([delivery.position for delivery in leases]).decode()
    yield Statement(statements.DELIVERED, (endpoint_id, positions, status))
    for delivery in leases:
        if delivery.attempts > 1:
            yield Statement(statements.FREE_SUBJECT, (endpoint_id, delivery.subject, now_ms))
    yield Statement(endpoint_statements.NOTE_SUCCESS, (endpoint_id,))


def _given_up(endpoint_id: str, leases: _Leases, words: str, now_ms: int) -> Unit[None]:
    for lease in leases:
        which = (endpoint_id, lease.position, lease.leased_until_ms)
        if (yield Statement(statements.GIVE_UP, (*which, None, words))):
            yield Statement(statements.FREE_SUBJECT, (endpoint_id, lease.subject, now_ms))


def _failed(failure: FailedDelivery, now_ms: int, deferred_until_ms: int) -> Unit[int]:
    lease = failure.lease
    which = (lease.endpoint_id, lease.position, lease.leased_until_ms)
    if failure.next_try_ms is None:
        changed = yield Statement(statements.GIVE_UP, (*which, failure.status, failure.words))
    else:
        changed = yield Statement(statements.PUT_OFF, (*which, failure.next_try_ms, failure.status, failure.words))
    if changed:
        about = (lease.endpoint_id, lease.subject)
        if failure.next_try_ms is None:
            yield Statement(statements.FREE_SUBJECT, (*about, now_ms))
        else:
            yield Statement(statements.DEFER_SUBJECT, (*about, failure.next_try_ms))
    noted = (lease.endpoint_id, now_ms, deferred_until_ms, failure.url_hash)
    since = yield Statement(endpoint_statements.NOTE_FAILURE, noted)
    return int(since[0][0] or now_ms) if since else now_ms
