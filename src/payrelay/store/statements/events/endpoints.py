"""Endpoints: the addresses for events."""

# ruff: noqa: S608 - only columns named here are put into the texts; values are always parameters

from typing import Final

from payrelay.core.events.delivery import Endpoint
from payrelay.store.engine.queries import query
from payrelay.store.engine.tables import TIMING, Binding, Table, columns_for


def secret_context(endpoint_id: str) -> bytes:
    """Gives the seal context of an endpoint's secrets: the newest and the older one share it."""
    return f"endpoint/{endpoint_id}/secret".encode()


def url_context(endpoint_id: str) -> bytes:
    """Gives the seal context of an endpoint's address."""
    return f"endpoint/{endpoint_id}/url".encode()


ENDPOINTS: Final = Table(
    name="endpoints",
    columns=columns_for(Endpoint, url="url_hash", deferred_until_ms="held_until_ms"),
    uncovered={
        "label": "it is shown to its owner, and nothing more",
        "state": "it stops or resumes events to the same address",
        "reason": "it explains the state",
        "older_ends_at_ms": "it only says how long the older secret signs beside the newest",
        "failing_since_ms": TIMING,
        "held_until_ms": TIMING,
        "updated_at_ms": "it tells of changes that the digest leaves out",
    },
    sealed={
        "sealed_url": Binding(url_context),
        "sealed_secret": Binding(secret_context),
        "sealed_older": Binding(secret_context),
    },
)

ADD_ENDPOINT: Final = query(
    f"""
    {ENDPOINTS.insert("sealed_url", "sealed_secret")}""",
)
"""Adds an endpoint."""

LOCK_ENDPOINTS: Final = query(
    "SELECT pg_advisory_xact_lock(hashtextextended(format('endpoints/%s/%s', $1::text, $2::text), 0))",
    sqlite=("SELECT $1, $2",),
)
"""Lets one endpoint of a principal's be added at a time, so that each count has those that were added before."""

COUNT_ENDPOINTS: Final = query("SELECT count(*) FROM endpoints WHERE merchant = $1 AND principal = $2")
"""Counts a principal's endpoints."""

GET_ENDPOINT: Final = query(f"SELECT sealed_url, {ENDPOINTS.read} FROM endpoints WHERE id = $1")
"""Reads one endpoint."""

GET_WITH_SECRETS: Final = query(
    f"SELECT sealed_secret, sealed_older, sealed_url, {ENDPOINTS.read} FROM endpoints WHERE id = $1"
)
"""Reads one endpoint with its sealed secrets."""

LIST_ENDPOINTS: Final = query(
    f"SELECT sealed_url, {ENDPOINTS.read} FROM endpoints WHERE merchant = $1 AND principal = $2 ORDER BY id LIMIT $3",
)
"""Reads a principal's endpoints, oldest first."""

LIST_ALL_ENDPOINTS: Final = query(
    f"SELECT sealed_url, {ENDPOINTS.read} FROM endpoints ORDER BY merchant, principal, id LIMIT $1"
)
"""Reads the endpoints of all principals."""

CHANGE_ENDPOINT: Final = query(
    f"""
    UPDATE endpoints
    SET url_hash = $2, types = $3, label = $4, state = $5, reason = $6, failing_since_ms = $7, held_until_ms = $8,
        updated_at_ms = $9, row_digest = $11, sealed_url = $12
    WHERE id = $1 AND state = $10 AND url_hash = $13 AND types = $14 AND coalesce(label, '') = coalesce($15::text, '')
    RETURNING {ENDPOINTS.listed}""",
)
"""Changes the changeable columns of an endpoint whose owner has changed none of them since it was read."""

ROTATE_SECRET: Final = query(
    f"""
    UPDATE endpoints
    SET sealed_older = sealed_secret, sealed_secret = $2, older_ends_at_ms = $3, updated_at_ms = $4
    WHERE id = $1
    RETURNING sealed_url, {ENDPOINTS.read}""",
)
"""Stores a new secret, and keeps the one before for a while."""

STOP_ENDPOINT: Final = query(
    f"""
    UPDATE endpoints SET state = 'stopped', reason = $2, updated_at_ms = $3
    WHERE id = $1 AND state <> 'stopped' AND ($4::text IS NULL OR url_hash = $4::text)
    RETURNING sealed_url, {ENDPOINTS.read}""",
)
"""Stops an endpoint, and gives it with its digest; gives no row where it is stopped already, or has an address of
another hash than $4."""

REMOVE_ENDPOINT: Final = query("DELETE FROM endpoints WHERE id = $1 RETURNING id")
"""Removes an endpoint."""

NOTE_SUCCESS: Final = query(
    "UPDATE endpoints SET failing_since_ms = NULL WHERE id = $1 AND failing_since_ms IS NOT NULL"
)
"""Stores that an endpoint accepts its events."""

NOTE_FAILURE: Final = query(
    """
    UPDATE endpoints
    SET failing_since_ms = COALESCE(failing_since_ms, $2::bigint),
        held_until_ms = CASE WHEN held_until_ms < $3::bigint THEN $3::bigint ELSE held_until_ms END
    WHERE id = $1 AND ($4::text IS NULL OR url_hash = $4::text)
    RETURNING failing_since_ms""",
)
"""Stores that an endpoint failed to accept an event, and until when it is sent nothing. Gives since when it fails, and
no row where its address has another hash than $4."""

COUNT_BY_STATE: Final = query("SELECT state, count(*) FROM endpoints GROUP BY state")
"""Counts endpoints by state."""
