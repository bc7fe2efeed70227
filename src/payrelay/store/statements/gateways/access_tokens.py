"""The access tokens that processes share."""

# ruff: noqa: S608 - only columns named here are put into the texts; values are always parameters

from typing import Final

from payrelay.store.engine.queries import query
from payrelay.store.statements.gateways.budget import SERVER_NOW_MS

FIND_ACCESS_TOKEN: Final = query(
    f"""
    SELECT sealed_token, {SERVER_NOW_MS} - obtained_at_ms, ends_at_ms - {SERVER_NOW_MS}
    FROM access_tokens WHERE account = $1 AND $2::bigint IS NOT NULL""",
    sqlite=("SELECT sealed_token, $2 - obtained_at_ms, ends_at_ms - $2 FROM access_tokens WHERE account = $1",),
)
"""Reads an account's access token, its age, and its remaining life."""

LEASE_ACCESS_TOKEN: Final = query(
    f"""
    INSERT INTO access_tokens (account, obtained_at_ms, ends_at_ms, lease_until_ms)
    SELECT $1, 0, 0, {SERVER_NOW_MS} + $2::bigint WHERE $3::bigint IS NOT NULL
    ON CONFLICT (account) DO UPDATE SET lease_until_ms = excluded.lease_until_ms
    WHERE access_tokens.lease_until_ms <= {SERVER_NOW_MS}
    RETURNING account""",
    sqlite=(
        """
        INSERT INTO access_tokens (account, obtained_at_ms, ends_at_ms, lease_until_ms) VALUES ($1, 0, 0, $3 + $2)
        ON CONFLICT (account) DO UPDATE SET lease_until_ms = excluded.lease_until_ms
        WHERE access_tokens.lease_until_ms <= $3
        RETURNING account""",
    ),
)
"""Leases the fetching of the next access token to one process; gives no row where another one has the lease."""

PUT_ACCESS_TOKEN: Final = query(
    f"""
    INSERT INTO access_tokens (account, sealed_token, obtained_at_ms, ends_at_ms, lease_until_ms)
    SELECT $1, $2::bytea, {SERVER_NOW_MS}, {SERVER_NOW_MS} + $3::bigint, 0 WHERE $4::bigint IS NOT NULL
    ON CONFLICT (account) DO UPDATE
    SET sealed_token = excluded.sealed_token, obtained_at_ms = excluded.obtained_at_ms,
        ends_at_ms = excluded.ends_at_ms, lease_until_ms = 0""",
    sqlite=(
        """
        INSERT INTO access_tokens (account, sealed_token, obtained_at_ms, ends_at_ms, lease_until_ms)
        VALUES ($1, $2, $4, $4 + $3, 0)
        ON CONFLICT (account) DO UPDATE
        SET sealed_token = excluded.sealed_token, obtained_at_ms = excluded.obtained_at_ms,
            ends_at_ms = excluded.ends_at_ms, lease_until_ms = 0""",
    ),
)
"""Stores an access token, and ends the lease."""

END_TOKEN_LEASE: Final = query(
    f"""
    UPDATE access_tokens SET lease_until_ms = {SERVER_NOW_MS} + $2::bigint
    WHERE account = $1 AND $3::bigint IS NOT NULL""",
    sqlite=("UPDATE access_tokens SET lease_until_ms = $3 + $2 WHERE account = $1",),
)
"""Stores when another process may lease the fetching of an access token."""

DROP_ACCESS_TOKEN: Final = query(
    "UPDATE access_tokens SET sealed_token = NULL WHERE account = $1 AND sealed_token = $2"
)
"""Forgets an access token, unless another one has replaced it."""
