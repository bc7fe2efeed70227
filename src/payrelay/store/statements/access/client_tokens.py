"""Client tokens."""

# ruff: noqa: S608 - only columns named here are put into the texts; values are always parameters

from typing import Final

from payrelay.store.engine.queries import query
from payrelay.store.engine.tables import Table
from payrelay.store.statements.access.credentials import CREDENTIAL_COLUMNS
from payrelay.store.statements.pagination import ListIndex, Listing

ISSUED_COLUMNS: Final = (
    "id, principal, credential_id, account, customer_id, order_id, scopes,"
    " issued_at_ms, expires_at_ms, revoked_at_ms, allowance"
)
_COVERED: Final = ("id", "principal", "credential_id")
CLIENT_TOKENS: Final = Table(
    name="client_tokens",
    columns=(*_COVERED, "revoked_at_ms"),
    uncovered={
        **{
            name: "the token's own text has it, signed; the row only shows it"
            for name in ISSUED_COLUMNS.split(", ")
            if name not in _COVERED
        },
        "revoked_at_ms": "a row that was revoked has no digest",
    },
    ended_by="revoked_at_ms",
)
_PARENT_COLUMNS: Final = ", ".join(f"credentials.{column}" for column in CREDENTIAL_COLUMNS.split(", "))

ADD_CLIENT_TOKEN: Final = query(
    f"""
    INSERT INTO client_tokens ({ISSUED_COLUMNS}, row_digest)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)
    ON CONFLICT DO NOTHING
    RETURNING id""",
)
"""Stores a token that is about to be issued; gives no row where its id exists."""

FIND_PARENT: Final = query(
    f"""
    SELECT client_tokens.principal, client_tokens.revoked_at_ms, client_tokens.row_digest,
      {_PARENT_COLUMNS}, credentials.row_digest
    FROM client_tokens JOIN credentials ON credentials.id = client_tokens.credential_id WHERE client_tokens.id = $1""",
)
"""Reads when a token was revoked, and the key that issued it."""

REVOKE_CLIENT_TOKEN: Final = query(
    """
    UPDATE client_tokens SET revoked_at_ms = coalesce(revoked_at_ms, $4), row_digest = ''
    WHERE id = $1 AND principal = $2 AND account = $3 RETURNING id""",
)
"""Revokes a principal's token on an account; the time of the first revocation stays."""

REVOKE_OF_CUSTOMER: Final = query(
    """
    UPDATE client_tokens SET revoked_at_ms = $3, row_digest = ''
    WHERE customer_id = $1 AND principal = $2 AND revoked_at_ms IS NULL RETURNING id""",
)
"""Revokes all of a principal's tokens for a customer."""

REVOKE_SOME: Final = query(
    """
    UPDATE client_tokens SET revoked_at_ms = $4, row_digest = ''
    WHERE principal = $1 AND revoked_at_ms IS NULL AND ($2::text IS NULL OR customer_id = $2::text)
      AND ($3::text IS NULL OR credential_id = $3::text) AND ($5::bigint IS NULL OR issued_at_ms <= $5::bigint)
    RETURNING id""",
)
"""Revokes a principal's tokens: of a customer, of a key, of both, or all of them; with $5 only those issued until then.
"""

PRUNE_CLIENT_TOKENS: Final = query(
    """
    DELETE FROM client_tokens
    WHERE id IN (SELECT id FROM client_tokens WHERE expires_at_ms <= $1 ORDER BY expires_at_ms LIMIT $2)
    RETURNING id""",
)
"""Forgets expired tokens, a limited number at a time."""

LIST_CLIENT_TOKENS: Final = Listing(
    "client_tokens",
    ISSUED_COLUMNS,
    (ListIndex(("customer_id", "principal"), is_sorted=False), ListIndex(("principal", "account"))),
)
"""The listed columns of tokens, and the indexes of the list."""
