"""The passkeys of operators."""

# ruff: noqa: S608 - only columns named here are put into the texts; values are always parameters

from typing import Final

from payrelay.store.engine.queries import query
from payrelay.store.statements.operators.operators import PASSKEY_COLUMNS

ADD_PASSKEY: Final = query(
    f"""
    INSERT INTO operator_passkeys ({PASSKEY_COLUMNS}, row_digest)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)
    ON CONFLICT DO NOTHING
    RETURNING id""",
)
"""Adds a passkey; gives no row where somebody has it."""

CHANGE_PASSKEY: Final = query(
    """
    UPDATE operator_passkeys
    SET operator_id = $2, credential_id = $3, credential = $4, host = $5, name = $6, sign_count = $7, made_at_ms = $8,
        used_at_ms = $9, copied_at_ms = $10, version = $11, act = $12, row_digest = $13
    WHERE id = $1 AND version = $11 - 1
    RETURNING id""",
)
"""Replaces a passkey's row by the next version of it; gives no row where it was changed or removed meanwhile."""

REMOVE_PASSKEY: Final = query("DELETE FROM operator_passkeys WHERE id = $1 AND operator_id = $2 RETURNING id")
"""Removes one passkey of an operator; gives no row where it is gone."""

REMOVE_PASSKEYS_OF: Final = query("DELETE FROM operator_passkeys WHERE operator_id = $1 RETURNING id")
"""Removes all passkeys of an operator."""

LIST_PASSKEYS: Final = query(
    f"""
    SELECT {PASSKEY_COLUMNS}, row_digest FROM operator_passkeys
    WHERE operator_id = $1 ORDER BY made_at_ms, id LIMIT $2""",
)
"""Reads the passkeys of an operator, the oldest first."""
