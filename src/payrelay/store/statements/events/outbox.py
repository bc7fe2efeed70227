"""The outbox: events that are not published yet."""

# ruff: noqa: S608 - only columns named here are put into the texts; values are always parameters

from typing import Final

from payrelay.core.events.event import OutgoingEvent
from payrelay.store.engine.queries import query
from payrelay.store.engine.tables import Table, columns_for

_MEMBERS: Final = columns_for(OutgoingEvent)[:-1]
"""The last member of an event, its trace context, lies among its data."""
OUTBOX: Final = Table(
    name="outbox",
    columns=("seq", *_MEMBERS),
    uncovered={"seq": "it says which event is published first, and nothing else"},
)

PUT_EVENT: Final = f"INSERT INTO outbox ({', '.join(_MEMBERS)}, row_digest)"
"""Begins each statement that writes an event beside its change."""

ADD_EVENT: Final = query(f"{PUT_EVENT} VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)")
"""Adds an event, which has no position in the feed yet."""

HAS_UNPUBLISHED: Final = query("SELECT seq FROM outbox LIMIT 1")
"""Tells whether an event waits to be published."""

TAKE_UNPUBLISHED: Final = query(
    f"""
    DELETE FROM outbox WHERE seq IN (SELECT seq FROM outbox ORDER BY seq LIMIT $1)
    RETURNING {OUTBOX.read}""",
)
"""Takes the oldest events out of the outbox, with their digests; the rows come in any order."""
