"""Pauses in the store: the accounts on which an operator allows no new effects."""

from typing import Final, TypeAlias

import msgspec

from payrelay.core.gateways.pauses import Pause
from payrelay.store.engine.database import Database, Statement, all_rows
from payrelay.store.engine.queries import query
from payrelay.store.engine.rows import struct_of

PAUSES_MAX: Final = 10_000
"""More accounts than anybody configures."""


_Pauses: TypeAlias = list[Pause]


class Pauses:
    """Stores pauses in a database."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def add(self, pause: Pause) -> bool:
        """Pauses an account; False where it is paused already, and that pause stays."""
        parameters = msgspec.structs.astuple(pause)
        return bool(await self._database.write(all_rows(Statement(ADD_PAUSE, parameters, is_whole=True))))

    async def remove(self, account: str, since_ms: int) -> bool:
        """Ends the pause that began then; False where there is none, or another one."""
        statement = Statement(REMOVE_PAUSE, (account, since_ms), is_whole=True)
        return bool(await self._database.write(all_rows(statement)))

    async def list(self) -> _Pauses:
        """Reads all pauses, by the account's name."""
        rows = await self._database.read(all_rows(Statement(LIST_PAUSES, (PAUSES_MAX,))))
        return [struct_of(row, Pause) for row in rows]


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
