"""Operators' passkeys in the store. A row whose digest is wrong counts as not existing.

They change within a unit of work of ``Operators``, together with the operator and the line of the history.
"""

# ruff: noqa: S608 - only columns named here are put into the texts; values are always parameters

from typing import Final, TypeAlias

import msgspec

from payrelay.core.operators.operator import PASSKEYS_MAX, Passkey, PasskeyChange
from payrelay.errors import Outdated
from payrelay.store.digests.rows import RowDigests
from payrelay.store.engine.database import Database, Statement, Unit, all_rows
from payrelay.store.engine.queries import Query, query
from payrelay.store.engine.tables import StructTable, columns_for

READ_MAX: Final = 10 * PASSKEYS_MAX
"""The most that is read of one operator: what somebody else has written counts as not existing, and is few."""

_Passkeys: TypeAlias = list[Passkey]


class Passkeys:
    """Stores passkeys."""

    def __init__(self, database: Database, rows: RowDigests) -> None:
        self._database = database
        self._rows = rows

    async def of(self, operator_id: str) -> _Passkeys:
        """Reads the passkeys of an operator, the oldest first. Raises StoreError."""
        statement = Statement(LIST_PASSKEYS, (operator_id, READ_MAX))
        return await self._rows.values(OPERATOR_PASSKEYS, await self._database.read(all_rows(statement)))

    def written(self, change: PasskeyChange, number: int) -> Unit[None]:
        """Changes one within a unit of work; ``number`` is of the line that tells of it.

        Raises Outdated where somebody has it already, or it was changed or removed meanwhile.
        """
        if change.added is not None:
            yield from _must(self._put(ADD_PASSKEY, change.added, number))
        if change.changed is not None:
            yield from _must(self._put(CHANGE_PASSKEY, change.changed, number))
        if change.removed is not None:
            gone = (change.removed.id, change.removed.operator_id)
            yield from _must(Statement(REMOVE_PASSKEY, gone))

    def _put(self, query: Query, passkey: Passkey, number: int) -> Statement:
        row = OPERATOR_PASSKEYS.row(msgspec.structs.replace(passkey, act=number))
        return Statement(query, self._rows.key.digested(OPERATOR_PASSKEYS, row))


def removal_of_all(operator_id: str) -> Statement:
    """Gives what removes all passkeys of an operator."""
    return Statement(REMOVE_PASSKEYS_OF, (operator_id,))


def _must(statement: Statement) -> Unit[None]:
    if not (yield statement):
        raise Outdated("a passkey was changed since it was read")


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
