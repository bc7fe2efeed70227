"""What the service told its clients of some subjects, and whether it arrived: for the console."""

from collections.abc import Sequence
from typing import Final

import msgspec

from payrelay.console.store.statements import searches as statements
from payrelay.core.events.event import PublishedEvent
from payrelay.store.digests.rows import RowDigests, RowVerifier
from payrelay.store.engine.database import Statement, Unit
from payrelay.store.engine.rows import struct_of
from payrelay.store.events.deliveries import Delivery
from payrelay.store.events.feed import EVENTS, event_of

SUBJECTS_MAX: Final = 300
"""Subjects whose events are read at once: more than one order ever has."""
EVENTS_MAX: Final = 100
"""Events about one subject that are read."""
DELIVERIES_MAX: Final = 1_000
"""Deliveries of these events that are read."""

_encode: Final = msgspec.json.Encoder().encode


class DeliveryTo(Delivery, frozen=True, kw_only=True):
    """The delivery of one event to one endpoint; ``label`` is the endpoint's, where it has one."""

    endpoint_id: str
    label: str | None


class Told(msgspec.Struct, frozen=True):
    """The events about some subjects, the oldest first, and their deliveries. Some weeks later both are forgotten."""

    events: list[PublishedEvent]
    deliveries: list[DeliveryTo]


class SentEvents:
    """Reads events and their deliveries, whoever gets them."""

    def __init__(self, rows: RowDigests) -> None:
        self._rows = rows

    async def about(self, merchant: str, subjects: Sequence[str]) -> Told:
        """Reads the events about these subjects. Raises StoreUnavailable, also where it takes too long."""
        return await self._rows.verified(
            lambda verifier: _about(merchant, subjects[:SUBJECTS_MAX], verifier), is_page=True
        )


def _about(merchant: str, subjects: Sequence[str], verifier: RowVerifier) -> Unit[Told]:
    found: dict[int, PublishedEvent] = {}
    for subject in subjects:
        rows = yield Statement(statements.EVENTS_ABOUT, (subject, merchant, EVENTS_MAX))
        for row in verifier.right(EVENTS, rows):
            event = event_of(row)
            found[event.position] = event
    events = [found[position] for position in sorted(found)]
    if not events:
        return Told([], [])
    positions = _encode([event.position for event in events]).decode()
    rows = yield Statement(statements.DELIVERIES_AT, (merchant, positions, DELIVERIES_MAX))
    return Told(events, [struct_of(row, DeliveryTo) for row in rows])
