"""The outbox: events are written in the unit of work of their change; neither is stored without the other."""

from typing import Final

import msgspec

from payrelay.core.events.event import OutgoingEvent
from payrelay.store.digests.rows import RowKey
from payrelay.store.engine.database import Statement, Unit, Value
from payrelay.store.statements.events import outbox as statements
from payrelay.store.statements.events.outbox import OUTBOX

TRACEPARENT: Final = "traceparent"
"""The name of an event's trace context among its stored data."""

_encode: Final = msgspec.json.Encoder().encode


def put(event: OutgoingEvent, key: RowKey) -> Unit[None]:
    """Adds an event, with its digest under ``key``; a part of another unit of work (``yield from``)."""
    yield Statement(statements.ADD_EVENT, parameters_of(event, key))


def parameters_of(event: OutgoingEvent, key: RowKey) -> tuple[Value, ...]:
    """Gives an event's columns in their order and its digest, for a statement that writes it beside the change.

    The trace context lies among the data, under a name that no data have.
    """
    *members, data, traceparent = msgspec.structs.astuple(event)
    if traceparent is not None:
        data = {**data, TRACEPARENT: traceparent}
    columns = (*members, _encode(data).decode())
    return (*columns, key.of(OUTBOX, (None, *columns)))
