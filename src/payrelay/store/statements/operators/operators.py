"""Operators, their invitations and their sessions."""

# ruff: noqa: S608 - only columns named here are put into the texts; values are always parameters

from typing import Final

from payrelay.core.operators.operator import ConsoleSession, Invitation, Operator
from payrelay.store.engine.queries import query
from payrelay.store.engine.tables import Binding, StructTable, columns_for


def totp_context(operator_id: str) -> bytes:
    """Gives what the sealed secret of a second factor is bound to."""
    return f"operator_totp/{operator_id}".encode()


_ENDED: Final = "a row that ended has no digest"
OPERATORS: Final = StructTable(
    name="operators", kind=Operator, columns=columns_for(Operator), sealed={"sealed_totp": Binding(totp_context)}
)
OPERATOR_INVITATIONS: Final = StructTable(
    name="operator_invitations",
    kind=Invitation,
    columns=columns_for(Invitation),
    uncovered={"ended_at_ms": _ENDED},
    ended_by="ended_at_ms",
)
CONSOLE_SESSIONS: Final = StructTable(
    name="console_sessions",
    kind=ConsoleSession,
    columns=columns_for(ConsoleSession),
    uncovered={"ended_at_ms": _ENDED},
    ended_by="ended_at_ms",
)

ADD_OPERATOR: Final = query(
    f"""
    {OPERATORS.insert()}
    ON CONFLICT DO NOTHING
    RETURNING id""",
)
"""Adds an operator; gives no row where the e-mail address is taken."""

CHANGE_OPERATOR: Final = query(
    f"""
    UPDATE operators SET {OPERATORS.replaced}
    WHERE id = $1 AND version = $10 - 1
    RETURNING id""",
)
"""Replaces an operator's row by the next version of it; gives no row where another change came first."""

PUT_TOTP: Final = query("UPDATE operators SET sealed_totp = $2 WHERE id = $1 RETURNING id")
"""Stores the sealed secret of the second factor, or removes it."""

GET_OPERATOR: Final = query(f"{OPERATORS.select} WHERE id = $1")
"""Reads one operator."""

LOCK_OPERATOR: Final = query(f"{OPERATORS.select} WHERE id = $1 FOR UPDATE")
"""Reads one operator, whom nobody changes until the transaction ends."""

GET_TOTP: Final = query("SELECT sealed_totp FROM operators WHERE id = $1")
"""Reads the sealed secret of an operator's second factor."""

FIND_BY_SUBJECT: Final = query(f"{OPERATORS.select} WHERE provider_subject = $1")
"""Reads the operator whom the sign-in provider knows by a subject."""

FIND_BY_EMAIL: Final = query(f"{OPERATORS.select} WHERE email = $1")
"""Reads the operator with an e-mail address."""

LIST_OPERATORS: Final = query(f"{OPERATORS.select} ORDER BY email LIMIT $1")
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
    {OPERATOR_INVITATIONS.insert()}
    RETURNING id""",
)
"""Adds an invitation."""

FIND_INVITATION: Final = query(f"{OPERATOR_INVITATIONS.select} WHERE token_hash = $1")
"""Reads the invitation with a token."""

OPEN_INVITATION: Final = query(
    f"""
    {OPERATOR_INVITATIONS.select}
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
    {CONSOLE_SESSIONS.insert()}
    RETURNING id""",
)
"""Adds a session."""

FIND_SESSION: Final = query(f"{CONSOLE_SESSIONS.select} WHERE token_hash = $1")
"""Reads the session with a token."""

GET_SESSION: Final = query(f"{CONSOLE_SESSIONS.select} WHERE id = $1")
"""Reads one session."""

LIST_SESSIONS: Final = query(
    f"""
    {CONSOLE_SESSIONS.select}
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
