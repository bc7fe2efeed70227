"""What operators are asked to confirm, and what came of it."""

# ruff: noqa: S608 - only columns named here are put into the texts; values are always parameters

from typing import Final

from payrelay.core.operators.confirmations import Confirmation
from payrelay.store.engine.queries import query
from payrelay.store.engine.tables import StructTable, columns_for

CONSOLE_CONFIRMATIONS: Final = StructTable(
    name="console_confirmations", kind=Confirmation, columns=columns_for(Confirmation)
)

ADD_CONFIRMATION: Final = query(
    f"""
    {CONSOLE_CONFIRMATIONS.insert()}
    RETURNING id""",
)
"""Adds a confirmation."""

CHANGE_CONFIRMATION: Final = query(
    f"""
    UPDATE console_confirmations SET {CONSOLE_CONFIRMATIONS.replaced}
    WHERE id = $1 AND version = $18 - 1
    RETURNING id""",
)
"""Replaces a row by its next version; gives no row where another change came first."""

GET_CONFIRMATION: Final = query(f"{CONSOLE_CONFIRMATIONS.select} WHERE id = $1")
"""Reads one confirmation."""

REFUNDED_SINCE: Final = query(
    f"""
    {CONSOLE_CONFIRMATIONS.select}
    WHERE act > (SELECT coalesce(max(act), 0) FROM console_sessions WHERE operator_id = $1 AND stage = 'open')
        AND confirmed_by = $1 AND act_name = 'refund' AND currency = $2 AND state IN ('begun', 'done')""",
)
"""Reads the refunds that an operator has confirmed since they signed in, or showed the second factor, last."""

LIST_PROPOSED: Final = query(
    f"""
    {CONSOLE_CONFIRMATIONS.select}
    WHERE state = 'proposed' ORDER BY made_at_ms LIMIT $1""",
)
"""Reads what waits for a second person, oldest first."""

FORGET_SHOWN: Final = query(
    "DELETE FROM console_confirmations WHERE state = 'shown' AND made_at_ms < $1 RETURNING id",
)
"""Removes what was shown before a time, and confirmed by nobody."""
