"""Credentials."""

# ruff: noqa: S608 - only columns named here are put into the texts; values are always parameters

from typing import Final

from payrelay.store.engine.queries import query
from payrelay.store.engine.tables import Table

CREDENTIAL_COLUMNS: Final = (
    "id, principal, key_hash, scopes, accounts, amount_max_minor, rate_count, rate_window_s,"
    " created_at_ms, expires_at_ms, revoked_at_ms, payments_max"
)
CREDENTIALS: Final = Table(
    name="credentials",
    columns=tuple(CREDENTIAL_COLUMNS.split(", ")),
    uncovered={"revoked_at_ms": "a row that was revoked has no digest"},
    ended_by="revoked_at_ms",
)

ADD_CREDENTIAL: Final = query(
    f"""
    INSERT INTO credentials ({CREDENTIAL_COLUMNS}, row_digest)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)
    ON CONFLICT DO NOTHING
    RETURNING id""",
)
"""Stores a credential; gives no row where its id exists."""

GET_CREDENTIAL: Final = query(f"SELECT {CREDENTIAL_COLUMNS}, row_digest FROM credentials WHERE id = $1")
"""Reads one credential."""

LIST_CREDENTIALS: Final = query(
    f"SELECT {CREDENTIAL_COLUMNS}, row_digest FROM credentials ORDER BY created_at_ms, id LIMIT $1"
)
"""Reads the credentials, oldest first."""

REVOKE_CREDENTIAL: Final = query(
    "UPDATE credentials SET revoked_at_ms = $2, row_digest = '' WHERE id = $1 AND revoked_at_ms IS NULL RETURNING id",
)
"""Revokes a credential that isn't revoked yet; the time of the first revocation stays. It loses its digest, so that
nobody can take the revocation back."""
