"""Events that are to be told."""

from typing import Final

from payrelay.store.queries import query

ADD_EVENT: Final = query(
    "add_event",
    """
    INSERT INTO events (id, type, account, merchant, principal, subject, at_ms, data)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8)""",
)
"""Adds an event, which has no position in the feed yet."""
