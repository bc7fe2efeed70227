"""What operators are asked to confirm, and what came of it."""

# ruff: noqa: S608 - only columns named here are put into the texts; values are always parameters

from typing import Final

from payrelay.store.engine.queries import query
from payrelay.store.statements.operators.operators import CONFIRMATION_COLUMNS

ADD_CONFIRMATION: Final = query(
    f"""
    INSERT INTO console_confirmations ({CONFIRMATION_COLUMNS}, row_digest)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21, $22)
    RETURNING id""",
)
"""Adds a confirmation."""

CHANGE_CONFIRMATION: Final = query(
    """
    UPDATE console_confirmations
    SET act_name = $2, subject = $3, account = $4, principal = $5, order_id = $6, amount_minor = $7, currency = $8,
        fields = $9, seen = $10, state = $11, made_by = $12, proposed_by = $13, confirmed_by = $14, reason = $15,
        operation_id = $16, said = $17, version = $18, act = $19, made_at_ms = $20, changed_at_ms = $21,
        row_digest = $22
    WHERE id = $1 AND version = $18 - 1
    RETURNING id""",
)
"""Replaces a row by its next version; gives no row where another change came first."""

GET_CONFIRMATION: Final = query(f"SELECT {CONFIRMATION_COLUMNS}, row_digest FROM console_confirmations WHERE id = $1")
"""Reads one confirmation."""

REFUNDED_SINCE: Final = query(
    f"""
    SELECT {CONFIRMATION_COLUMNS}, row_digest FROM console_confirmations
    WHERE act > (SELECT coalesce(max(act), 0) FROM console_sessions WHERE operator_id = $1 AND stage = 'open')
        AND confirmed_by = $1 AND act_name = 'refund' AND currency = $2 AND state IN ('begun', 'done')""",
)
"""Reads the refunds that an operator has confirmed since they signed in, or showed the second factor, last."""

LIST_PROPOSED: Final = query(
    f"""
    SELECT {CONFIRMATION_COLUMNS}, row_digest FROM console_confirmations
    WHERE state = 'proposed' ORDER BY made_at_ms LIMIT $1""",
)
"""Reads what waits for a second person, oldest first."""

FORGET_SHOWN: Final = query(
    "DELETE FROM console_confirmations WHERE state = 'shown' AND made_at_ms < $1 RETURNING id",
)
"""Removes what was shown before a time, and confirmed by nobody."""
