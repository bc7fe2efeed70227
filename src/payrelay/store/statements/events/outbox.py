"""The outbox: events that are not published yet."""

from typing import Final

from payrelay.store.engine.queries import query

ADD_EVENT: Final = query(
    """
    INSERT INTO outbox (id, type, account, merchant, principal, subject, at_ms, data)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8)""",
)
"""Adds an event, which has no position in the feed yet."""

HAS_UNPUBLISHED: Final = query("SELECT seq FROM outbox LIMIT 1")
"""Tells whether an event waits to be published."""

TAKE_UNPUBLISHED: Final = query(
    """
    DELETE FROM outbox WHERE seq IN (SELECT seq FROM outbox ORDER BY seq LIMIT $1)
    RETURNING seq, id, type, account, merchant, principal, subject, at_ms, data""",
)
"""Takes the oldest events out of the outbox; the rows come in any order."""
