"""Deliveries as the store keeps them: what is to be sent to which endpoint, in which order, and what came of it.

Rules:

1. A delivery that waits has a time for its next try. Whoever takes it puts that off for as long as sending may last:
   nobody else takes it meanwhile, and what a dead process had taken comes back.
2. Of the events about one subject an endpoint is given the first that waits, and the next one only when that was
   delivered or given up. Other subjects don't wait for it.
"""

from typing import Final, TypeAlias

import msgspec

from payrelay.core.events.delivery import DeliveryState, Pattern, pattern_of
from payrelay.core.events.event import TEST, PublishedEvent
from payrelay.store.engine.database import Database, Statement, Unit, all_rows
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
    """A delivery that this process has taken, to be sent now.

    Attributes:
        endpoint_id, position, subject: which one.
        attempts: how often it was tried, this time among them.
        leased_until_ms: until then nobody else takes it.
    """

    endpoint_id: str
    position: int
    subject: str
    attempts: int
    leased_until_ms: int


class Delivery(msgspec.Struct, frozen=True, kw_only=True):
    """What became of an event for an endpoint, as it is shown."""

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
    """A try that failed: what came of it, and when it is tried again; None where it is given up.

    ``url`` is where it was tried; None where nobody knows.
    """

    lease: LeasedDelivery
    status: int | None
    words: str
    next_try_ms: int | None
    url: str | None = None


class _Listener(msgspec.Struct, frozen=True):
    id: str
    patterns: _Patterns


_Takens: TypeAlias = list[LeasedDelivery]
_Deliveries: TypeAlias = list[Delivery]


class Deliveries:
    """Gives out deliveries that are due, to one process each, and keeps what came of them."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def endpoints_due(self, now_ms: int) -> list[str]:
        """Names the active endpoints to which something is to be sent now."""
        rows = await self._database.read(all_rows(Statement(statements.ENDPOINTS_DUE, (now_ms,))))
        return [str(row[0]) for row in rows]

    async def next_due_ms(self) -> int | None:
        """Tells when something is to be sent next; None where nothing waits."""
        return await self._database.read(moment_in(Statement(statements.NEXT_DELIVERY, ())))

    async def lease_due(self, endpoint_id: str, now_ms: int, *, leased_until_ms: int, limit: int) -> _Takens:
        """Takes at most ``limit`` deliveries to an endpoint that are due, in the order of the feed."""
        statement = Statement(statements.LEASE_DELIVERIES, (endpoint_id, now_ms, leased_until_ms, limit), is_whole=True)
        rows = await self._database.write(all_rows(statement))
        members = {"endpoint_id": endpoint_id, "leased_until_ms": leased_until_ms}
        taken = [
            msgspec.convert(members | dict(zip(("position", "subject", "attempts"), row, strict=True)), LeasedDelivery)
            for row in rows
        ]
        return sorted(taken, key=lambda delivery: delivery.position)

    async def delivered(self, endpoint_id: str, taken: _Takens, *, status: int, now_ms: int) -> None:
        """Says that the receiver has taken them; what waited for them goes on."""
        if taken:
            await self._database.write(_delivered(endpoint_id, taken, status, now_ms))

    async def end_leases(self, endpoint_id: str, taken: _Takens, *, now_ms: int) -> None:
        """Says that deliveries were not tried after all, and are due for whoever comes."""
        until: dict[int, list[int]] = {}
        for delivery in taken:
            until.setdefault(delivery.leased_until_ms, []).append(delivery.position)
        for until_ms, positions in until.items():
            parameters = (endpoint_id, _encode(positions).decode(), now_ms, until_ms)
            await self._database.write(all_rows(Statement(statements.END_LEASES, parameters, is_whole=True)))

    async def failed(self, failure: FailedDelivery, *, now_ms: int, deferred_until_ms: int) -> int:
        """Says that a try failed, and when it is tried again; gives since when the endpoint takes nothing.

        Nothing of the delivery is changed where somebody else has taken it meanwhile, and nothing of an endpoint that
        was moved to another address meanwhile.
        """
        return await self._database.write(_failed(failure, now_ms, deferred_until_ms))

    async def list(
        self, endpoint_id: str, *, state: DeliveryState | None, before: int | None, limit: int
    ) -> _Deliveries:
        """Reads the deliveries to an endpoint, newest first, below a position."""
        first = _ABOVE_ALL if before is None else before
        parameters = (endpoint_id, first, min(limit, DELIVERIES_MAX))
        if state is None:
            statement = Statement(statements.LIST_DELIVERIES, parameters)
        else:
            statement = Statement(statements.LIST_DELIVERIES_IN, (*parameters, state))
        rows = await self._database.read(all_rows(statement))
        return [struct_of(row, Delivery) for row in rows]

    async def waiting(self) -> tuple[int, int | None]:
        """Counts what waits, with since when the oldest of it does."""
        [[count, oldest_ms]] = await self._database.read(all_rows(Statement(statements.COUNT_WAITING, ())))
        return msgspec.convert((count, oldest_ms), tuple[int, int | None])


def queue(events: list[PublishedEvent], now_ms: int) -> Unit[None]:
    """Queues events for the endpoints that want them; a part of another unit of work (``yield from``)."""
    rows = yield Statement(statements.LISTENING, ())
    if not rows:
        return
    listeners: dict[tuple[str, str], list[_Listener]] = {}
    for endpoint_id, merchant, principal, types in rows:
        patterns = tuple(pattern_of(text) for text in str(types).split(","))
        listeners.setdefault((str(merchant), str(principal)), []).append(_Listener(str(endpoint_id), patterns))
    wanted = [
        (listener.id, event.position, event.id, event.subject)
        for event in events
        for listener in listeners.get((event.merchant, event.principal), ())
        if _is_wanted(event, listener)
    ]
    if wanted:
        yield Statement(statements.QUEUE, (_encode(wanted).decode(), now_ms))


def queue_again(endpoint_id: str, events: list[PublishedEvent], now_ms: int) -> Unit[None]:
    """Queues events for one endpoint, whatever became of them before; a part of another unit of work."""
    wanted = [(endpoint_id, event.position, event.id, event.subject) for event in events]
    if wanted:
        yield Statement(statements.QUEUE_AGAIN, (_encode(wanted).decode(), now_ms))


def _is_wanted(event: PublishedEvent, listener: _Listener) -> bool:
    if event.type == TEST:
        return event.subject == f"endpoint:{listener.id}"
    return any(pattern.fits(event.type) for pattern in listener.patterns)


def _delivered(endpoint_id: str, taken: _Takens, status: int, now_ms: int) -> Unit[None]:
    positions = _encode([delivery.position for delivery in taken]).decode()
    yield Statement(statements.DELIVERED, (endpoint_id, positions, status))
    for delivery in taken:
        if delivery.attempts > 1:
            yield Statement(statements.FREE_SUBJECT, (endpoint_id, delivery.subject, now_ms))
    yield Statement(endpoint_statements.NOTE_SUCCESS, (endpoint_id,))


def _failed(failure: FailedDelivery, now_ms: int, deferred_until_ms: int) -> Unit[int]:
    taken = failure.lease
    which = (taken.endpoint_id, taken.position, taken.leased_until_ms)
    if failure.next_try_ms is None:
        changed = yield Statement(statements.GIVE_UP, (*which, failure.status, failure.words))
    else:
        changed = yield Statement(statements.PUT_OFF, (*which, failure.next_try_ms, failure.status, failure.words))
    if changed:
        about = (taken.endpoint_id, taken.subject)
        if failure.next_try_ms is None:
            yield Statement(statements.FREE_SUBJECT, (*about, now_ms))
        else:
            yield Statement(statements.DEFER_SUBJECT, (*about, failure.next_try_ms))
    noted = (taken.endpoint_id, now_ms, deferred_until_ms, failure.url)
    since = yield Statement(endpoint_statements.NOTE_FAILURE, noted)
    return int(since[0][0] or now_ms) if since else now_ms
