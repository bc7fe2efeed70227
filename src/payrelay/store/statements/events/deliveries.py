"""Deliveries: each event for an endpoint, and its outcome."""

# ruff: noqa: S608 - only columns named here are put into the texts; values are always parameters

from typing import Final

from payrelay.core.events.delivery import DeliveryState
from payrelay.store.engine.queries import query

DELIVERY_COLUMNS: Final = (
    "position, event_id, subject, state, attempts, queued_at_ms, next_try_at_ms, last_try_at_ms, last_status,"
    " last_failure"
)

LISTENING: Final = query("SELECT id, merchant, principal, types FROM endpoints WHERE state <> 'stopped' ORDER BY id")
"""Reads the endpoints for which events are queued."""

_IN_ORDER: Final = "INDEXED BY deliveries_in_order"
"""SQLite has no statistics to know that a subject has few deliveries and an endpoint many. PostgreSQL has none at
first; there a sum keeps it from other indexes."""

_QUEUE: Final = """
    INSERT INTO deliveries (endpoint_id, position, event_id, subject, state, attempts, queued_at_ms, next_try_at_ms)
    SELECT queued.endpoint_id, queued.position, queued.event_id, queued.subject, 'waiting', 0, $2::bigint, COALESCE(
        (SELECT max(earlier.next_try_at_ms + 0) FROM deliveries AS earlier {index}
         WHERE earlier.endpoint_id = queued.endpoint_id AND earlier.subject = queued.subject
           AND earlier.next_try_at_ms IS NOT NULL AND earlier.last_failure IS NOT NULL),
        $2::bigint)
    FROM {queued} AS queued
    {conflict}"""

_QUEUED: Final = """(
    SELECT delivery ->> 0 AS endpoint_id, (delivery ->> 1)::bigint AS position, delivery ->> 2 AS event_id,
           delivery ->> 3 AS subject
    FROM json_array_elements($1::json) AS delivery
)"""
_QUEUED_SQLITE: Final = """(
    SELECT value ->> 0 AS endpoint_id, value ->> 1 AS position, value ->> 2 AS event_id, value ->> 3 AS subject
    FROM json_each($1)
)"""
_NOT_TWICE: Final = "{where} ON CONFLICT DO NOTHING"
_AGAIN: Final = """{where} ON CONFLICT (endpoint_id, position) DO UPDATE
    SET state = 'waiting', attempts = 0, queued_at_ms = excluded.queued_at_ms,
        next_try_at_ms = excluded.next_try_at_ms, last_failure = NULL
    WHERE deliveries.next_try_at_ms IS NULL"""

QUEUE: Final = query(
    _QUEUE.format(index="", queued=_QUEUED, conflict=_NOT_TWICE.format(where="")),
    sqlite=(_QUEUE.format(index=_IN_ORDER, queued=_QUEUED_SQLITE, conflict=_NOT_TWICE.format(where="WHERE true")),),
)
"""Queues deliveries: a JSON list of endpoint, position, event and subject of each. Where the endpoint failed to accept
an event of the subject, the new one waits for that one's next attempt."""

QUEUE_AGAIN: Final = query(
    _QUEUE.format(index="", queued=_QUEUED, conflict=_AGAIN.format(where="")),
    sqlite=(_QUEUE.format(index=_IN_ORDER, queued=_QUEUED_SQLITE, conflict=_AGAIN.format(where="WHERE true")),),
)
"""Queues deliveries that were queued before, as QUEUE does; a waiting one stays as it is."""

ENDPOINTS_DUE: Final = query(
    """
    SELECT id FROM endpoints
    WHERE state = 'active' AND held_until_ms <= $1 AND EXISTS (
        SELECT 1 FROM deliveries WHERE endpoint_id = endpoints.id AND next_try_at_ms <= $1
    )
    ORDER BY id""",
)
"""Reads the endpoints that have a delivery due."""

NEXT_DELIVERY: Final = query(
    """
    SELECT min(next_try_at_ms) FROM deliveries
    WHERE next_try_at_ms IS NOT NULL AND endpoint_id IN (SELECT id FROM endpoints WHERE state = 'active')""",
)
"""Reads when the next delivery is due."""

_LEASE: Final = """
    UPDATE deliveries SET next_try_at_ms = $3::bigint, last_try_at_ms = $2::bigint, attempts = attempts + 1
    WHERE endpoint_id = $1 AND position IN (
        SELECT due.position FROM (
            SELECT position, subject, next_try_at_ms FROM deliveries
            WHERE endpoint_id = $1 AND next_try_at_ms <= $2::bigint
            ORDER BY next_try_at_ms, position FOR UPDATE SKIP LOCKED
        ) AS due
        WHERE due.position = (
            SELECT min(first.position + 0) FROM deliveries AS first {index}
            WHERE first.endpoint_id = $1 AND first.subject = due.subject AND first.next_try_at_ms IS NOT NULL
        )
        LIMIT $4
    )
    RETURNING position, subject, attempts"""

LEASE_DELIVERIES: Final = query(
    _LEASE.format(index=""),
    sqlite=(_LEASE.format(index=_IN_ORDER),),
)
"""Leases due deliveries to an endpoint until $3: of each subject only the first that waits."""

_POSITIONS: Final = "= ANY (ARRAY(SELECT taken::bigint FROM json_array_elements_text($2::json) AS taken))"
_POSITIONS_SQLITE: Final = "IN (SELECT value FROM json_each($2))"

_END_LEASES: Final = """
    UPDATE deliveries SET next_try_at_ms = $3::bigint, attempts = attempts - 1
    WHERE endpoint_id = $1 AND position {positions} AND next_try_at_ms + 0 = $4::bigint"""

_DELIVERED: Final = """
    UPDATE deliveries SET state = 'delivered', next_try_at_ms = NULL, last_status = $3, last_failure = NULL
    WHERE endpoint_id = $1 AND position {positions} AND next_try_at_ms + 0 IS NOT NULL"""

DELIVERED: Final = query(
    _DELIVERED.format(positions=_POSITIONS),
    sqlite=(_DELIVERED.format(positions=_POSITIONS_SQLITE),),
)
"""Stores that the receiver accepted deliveries: a JSON list of positions."""

END_LEASES: Final = query(
    _END_LEASES.format(positions=_POSITIONS),
    sqlite=(_END_LEASES.format(positions=_POSITIONS_SQLITE),),
)
"""Makes leased deliveries due that were not attempted; only those whose lease ends at $4."""

_MOVE_SUBJECT: Final = """
    UPDATE deliveries {index} SET next_try_at_ms = $3
    WHERE endpoint_id = $1 AND subject = $2 AND next_try_at_ms {compared} $3"""

FREE_SUBJECT: Final = query(
    _MOVE_SUBJECT.format(index="", compared=">"),
    sqlite=(_MOVE_SUBJECT.format(index=_IN_ORDER, compared=">"),),
)
"""Makes the events about a subject due that waited for an earlier one."""

PUT_OFF: Final = query(
    """
    UPDATE deliveries SET next_try_at_ms = $4, last_status = $5, last_failure = $6
    WHERE endpoint_id = $1 AND position = $2 AND next_try_at_ms = $3
    RETURNING position""",
)
"""Stores when a delivery is attempted again, unless another process has leased it meanwhile."""

DEFER_SUBJECT: Final = query(
    _MOVE_SUBJECT.format(index="", compared="<"),
    sqlite=(_MOVE_SUBJECT.format(index=_IN_ORDER, compared="<"),),
)
"""Makes the events about a subject wait for the earlier one."""

GIVE_UP: Final = query(
    """
    UPDATE deliveries SET state = 'given_up', next_try_at_ms = NULL, last_status = $4, last_failure = $5
    WHERE endpoint_id = $1 AND position = $2 AND next_try_at_ms = $3
    RETURNING position""",
)
"""Gives a delivery up."""

GIVE_ALL_UP: Final = query(
    """
    UPDATE deliveries SET state = 'given_up', next_try_at_ms = NULL, last_failure = $2
    WHERE endpoint_id = $1 AND next_try_at_ms IS NOT NULL""",
)
"""Gives all waiting deliveries to an endpoint up."""

FORGET_OF_ENDPOINT: Final = query(
    """
    DELETE FROM deliveries WHERE endpoint_id = $1 AND position IN (
        SELECT position FROM deliveries WHERE endpoint_id = $1 ORDER BY position LIMIT $2
    )
    RETURNING position""",
)
"""Forgets the oldest deliveries to an endpoint, a limited number at a time."""

LIST_DELIVERIES: Final = query(
    f"""
    SELECT {", ".join(f"deliveries.{name.strip()}" for name in DELIVERY_COLUMNS.split(","))}, events.type
    FROM deliveries JOIN events ON events.position = deliveries.position
    WHERE deliveries.endpoint_id = $1 AND deliveries.position < $2
    ORDER BY deliveries.position DESC LIMIT $3""",
)
"""Reads the deliveries to an endpoint, newest first, below a position."""

_UNDELIVERED: Final = "deliveries.state IN ('given_up', 'waiting')"
LIST_DELIVERIES_IN: Final = {
    DeliveryState.DELIVERED: query(
        LIST_DELIVERIES.postgresql.replace("ORDER BY", "AND deliveries.state = $4 ORDER BY"),
    ),
    **dict.fromkeys(
        (DeliveryState.GIVEN_UP, DeliveryState.WAITING),
        query(
            LIST_DELIVERIES.postgresql.replace("ORDER BY", f"AND deliveries.state = $4 AND {_UNDELIVERED} ORDER BY"),
        ),
    ),
}
"""Reads the deliveries to an endpoint in one state, newest first, below a position. Most of them are delivered; the
others have an index of their own."""

COUNT_WAITING: Final = query(
    """
    SELECT count(*), min(queued_at_ms) FROM deliveries
    WHERE next_try_at_ms IS NOT NULL AND endpoint_id IN (SELECT id FROM endpoints)""",
)
"""Counts the waiting deliveries, and reads since when the oldest waits."""
