"""Events that are to be told: written in the unit of work that made the change; neither is without the other."""

from typing import Final

import msgspec

from payrelay.core.events import OutgoingEvent
from payrelay.store.database import Statement, Unit
from payrelay.store.statements import outbox as statements

_encode: Final = msgspec.json.Encoder().encode


def put(event: OutgoingEvent) -> Unit[None]:
    """Adds an event; a part of another unit of work (``yield from``)."""
    *members, data = msgspec.structs.astuple(event)
    yield Statement(statements.ADD_EVENT, (*members, _encode(data).decode()))
