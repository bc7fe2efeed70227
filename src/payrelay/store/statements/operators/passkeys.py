"""The passkeys of operators."""

# ruff: noqa: S608 - only columns named here are put into the texts; values are always parameters

from typing import Final

from payrelay.core.operators.operator import Passkey
from payrelay.store.engine.queries import query
from payrelay.store.engine.tables import StructTable, columns_for

OPERATOR_PASSKEYS: Final = StructTable(name="operator_passkeys", kind=Passkey, columns=columns_for(Passkey))

ADD_PASSKEY: Final = query(
    f"""
    {OPERATOR_PASSKEYS.insert()}
    ON CONFLICT DO NOTHING
    RETURNING id""",
)
"""Adds a passkey; gives no row where somebody has it."""

CHANGE_PASSKEY: Final = query(
    f"""
    UPDATE operator_passkeys SET {OPERATOR_PASSKEYS.replaced}
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
    {OPERATOR_PASSKEYS.select}
    WHERE operator_id = $1 ORDER BY made_at_ms, id LIMIT $2""",
)
"""Reads the passkeys of an operator, the oldest first."""
