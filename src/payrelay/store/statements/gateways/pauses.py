"""Pauses: accounts that accept no new effects."""

from typing import Final

from payrelay.store.engine.queries import query

ADD_PAUSE: Final = query(
    """
    INSERT INTO paused_accounts (account, since_ms, reason, operator) VALUES ($1, $2, $3, $4)
    ON CONFLICT DO NOTHING
    RETURNING account""",
)
"""Pauses an account; gives no row where it is paused already."""

REMOVE_PAUSE: Final = query("DELETE FROM paused_accounts WHERE account = $1 AND since_ms = $2 RETURNING account")
"""Ends the pause of an account that began at $2; gives no row where that one has ended."""

LIST_PAUSES: Final = query("SELECT account, since_ms, reason, operator FROM paused_accounts ORDER BY account LIMIT $1")
"""Reads which accounts are paused."""
