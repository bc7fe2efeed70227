"""Operators, their invitations and their sessions; and the columns of their passkeys and of what they confirm."""

# ruff: noqa: S608 - only columns named here are put into the texts; values are always parameters

from typing import Final

from payrelay.store.engine.queries import query
from payrelay.store.engine.tables import Binding, Table

OPERATOR_COLUMNS: Final = (
    "id, email, name, role, state, password_hash, second_factor, totp_step, provider_subject, version, act,"
    " created_at_ms, changed_at_ms"
)


def totp_context(operator_id: str) -> bytes:
    """Gives what the sealed secret of a second factor is bound to."""
    return f"operator_totp/{operator_id}".encode()


OPERATORS: Final = Table(
    name="operators",
    columns=tuple(OPERATOR_COLUMNS.split(", ")),
    sealed={"sealed_totp": Binding(totp_context)},
)
INVITATION_COLUMNS: Final = "id, operator_id, token_hash, made_at_ms, expires_at_ms, ended_at_ms"
OPERATOR_INVITATIONS: Final = Table(
    name="operator_invitations",
    columns=tuple(INVITATION_COLUMNS.split(", ")),
    uncovered={"ended_at_ms": "a row that ended has no digest"},
    ended_by="ended_at_ms",
)
SESSION_COLUMNS: Final = (
    "id, operator_id, token_hash, stage, began_at_ms, seen_at_ms, ends_at_ms, client, browser, act, ended_at_ms"
)
CONSOLE_SESSIONS: Final = Table(
    name="console_sessions",
    columns=tuple(SESSION_COLUMNS.split(", ")),
    uncovered={"ended_at_ms": "a row that ended has no digest"},
    ended_by="ended_at_ms",
)
PASSKEY_COLUMNS: Final = (
    "id, operator_id, credential_id, credential, host, name, sign_count, made_at_ms, used_at_ms, copied_at_ms,"
    " version, act"
)
OPERATOR_PASSKEYS: Final = Table(name="operator_passkeys", columns=tuple(PASSKEY_COLUMNS.split(", ")))
CONFIRMATION_COLUMNS: Final = (
    "id, act_name, subject, account, principal, order_id, amount_minor, currency, fields, seen, state, made_by,"
    " proposed_by, confirmed_by, reason, operation_id, said, version, act, made_at_ms, changed_at_ms"
)
CONSOLE_CONFIRMATIONS: Final = Table(name="console_confirmations", columns=tuple(CONFIRMATION_COLUMNS.split(", ")))

ADD_OPERATOR: Final = query(
    f"""
    INSERT INTO operators ({OPERATOR_COLUMNS}, row_digest)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14)
    ON CONFLICT DO NOTHING
    RETURNING id""",
)
"""Adds an operator; gives no row where the e-mail address is taken."""

CHANGE_OPERATOR: Final = query(
    """
    UPDATE operators
    SET email = $2, name = $3, role = $4, state = $5, password_hash = $6, second_factor = $7, totp_step = $8,
        provider_subject = $9, version = $10, act = $11, created_at_ms = $12, changed_at_ms = $13, row_digest = $14
    WHERE id = $1 AND version = $10 - 1
    RETURNING id""",
)
"""Replaces an operator's row by the next version of it; gives no row where another change came first."""

PUT_TOTP: Final = query("UPDATE operators SET sealed_totp = $2 WHERE id = $1 RETURNING id")
"""Stores the sealed secret of the second factor, or removes it."""

GET_OPERATOR: Final = query(f"SELECT {OPERATOR_COLUMNS}, row_digest FROM operators WHERE id = $1")
"""Reads one operator."""

LOCK_OPERATOR: Final = query(f"SELECT {OPERATOR_COLUMNS}, row_digest FROM operators WHERE id = $1 FOR UPDATE")
"""Reads one operator, whom nobody changes until the transaction ends."""

GET_TOTP: Final = query("SELECT sealed_totp FROM operators WHERE id = $1")
"""Reads the sealed secret of an operator's second factor."""

FIND_BY_SUBJECT: Final = query(f"SELECT {OPERATOR_COLUMNS}, row_digest FROM operators WHERE provider_subject = $1")
"""Reads the operator whom the sign-in provider knows by a subject."""

FIND_BY_EMAIL: Final = query(f"SELECT {OPERATOR_COLUMNS}, row_digest FROM operators WHERE email = $1")
"""Reads the operator with an e-mail address."""

LIST_OPERATORS: Final = query(f"SELECT {OPERATOR_COLUMNS}, row_digest FROM operators ORDER BY email LIMIT $1")
"""Reads the operators, in the order of their addresses."""

NEWEST_ACT_OF_ROWS: Final = query(
    """
    SELECT max(act) FROM (
        SELECT act FROM operators UNION ALL SELECT act FROM console_sessions
        UNION ALL SELECT max(act) FROM console_confirmations UNION ALL SELECT act FROM operator_passkeys
    ) AS named""",
)
"""Reads the highest number of an act that a row names."""

ADD_INVITATION: Final = query(
    f"""
    INSERT INTO operator_invitations ({INVITATION_COLUMNS}, row_digest) VALUES ($1, $2, $3, $4, $5, $6, $7)
    RETURNING id""",
)
"""Adds an invitation."""

FIND_INVITATION: Final = query(
    f"SELECT {INVITATION_COLUMNS}, row_digest FROM operator_invitations WHERE token_hash = $1"
)
"""Reads the invitation with a token."""

OPEN_INVITATION: Final = query(
    f"""
    SELECT {INVITATION_COLUMNS}, row_digest FROM operator_invitations
    WHERE operator_id = $1 AND ended_at_ms IS NULL ORDER BY expires_at_ms DESC LIMIT 1"""
)
"""Reads the invitation of an operator that ends last, of those that nobody has ended."""

END_INVITATION: Final = query(
    """
    UPDATE operator_invitations SET ended_at_ms = $2, row_digest = ''
    WHERE id = $1 AND ended_at_ms IS NULL AND expires_at_ms > $2
    RETURNING id""",
)
"""Ends an invitation by its use; gives no row where it has ended, or is over."""

END_INVITATIONS_OF: Final = query(
    """
    UPDATE operator_invitations SET ended_at_ms = $2, row_digest = '' WHERE operator_id = $1 AND ended_at_ms IS NULL
    RETURNING id""",
)
"""Ends the open invitations of an operator."""

ADD_SESSION: Final = query(
    f"""
    INSERT INTO console_sessions ({SESSION_COLUMNS}, row_digest)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)
    RETURNING id""",
)
"""Adds a session."""

FIND_SESSION: Final = query(f"SELECT {SESSION_COLUMNS}, row_digest FROM console_sessions WHERE token_hash = $1")
"""Reads the session with a token."""

GET_SESSION: Final = query(f"SELECT {SESSION_COLUMNS}, row_digest FROM console_sessions WHERE id = $1")
"""Reads one session."""

LIST_SESSIONS: Final = query(
    f"""
    SELECT {SESSION_COLUMNS}, row_digest FROM console_sessions
    WHERE operator_id = $1 AND ended_at_ms IS NULL ORDER BY began_at_ms DESC LIMIT $2""",
)
"""Reads the sessions of an operator that nobody has ended, newest first."""

SEE_SESSION: Final = query(
    """
    UPDATE console_sessions SET seen_at_ms = $2, row_digest = $3 WHERE id = $1 AND row_digest = $4 RETURNING id""",
)
"""Notes when a session was last used, where its row is as it was read."""

END_SESSION: Final = query(
    """
    UPDATE console_sessions SET ended_at_ms = $2, row_digest = '' WHERE id = $1 AND ended_at_ms IS NULL
    RETURNING id""",
)
"""Ends a session; gives no row where it has ended."""

END_SESSIONS_OF: Final = query(
    """
    UPDATE console_sessions SET ended_at_ms = $2, row_digest = '' WHERE operator_id = $1 AND ended_at_ms IS NULL
    RETURNING id""",
)
"""Ends the sessions of an operator."""

FORGET_SESSIONS: Final = query("DELETE FROM console_sessions WHERE ends_at_ms < $1 RETURNING id")
"""Removes the sessions that were over before a time."""
