"""The identity of the database, sealed: made once, and changed when a recovery begins or ends."""

import secrets
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Final

import msgspec

from payrelay.core.database.incarnations import Beginning, DatabaseIdentity, Incarnation
from payrelay.errors import Outdated, StoreUnusable
from payrelay.store.engine.database import Database, Statement, Unit, all_rows
from payrelay.store.engine.rows import blob_of
from payrelay.store.engine.sealing import Seal
from payrelay.store.gateways.budget import BLOCK_ALL_PERMITS, BLOCK_PERMITS
from payrelay.store.statements import meta as statements

DATABASE_IDENTITY: Final = "database_identity"
"""Its name in ``meta``."""
_CONTEXT: Final = b"meta/database_identity"
_ID_BYTES: Final = 16
_CHANGE_ATTEMPTS_MAX: Final = 10
"""Each further attempt needs another process that changed the identity between two statements."""

_encode: Final = msgspec.json.Encoder().encode
_decode: Final = msgspec.json.Decoder(DatabaseIdentity).decode


class IdentityStore:
    """Reads and changes the identity of a database."""

    def __init__(self, database: Database, seal: Seal) -> None:
        self._database = database
        self._seal = seal

    async def read(self) -> DatabaseIdentity:
        """Reads the identity as it counts in the tables where it is (``DatabaseIdentity.in_place``).

        Raises StoreUnavailable; StoreUnusable where it is missing or can't be opened.
        """
        stored, place = await self._database.read(_stored())
        return self._opened(stored).in_place(place)

    async def change(self, changed: Callable[[DatabaseIdentity], DatabaseIdentity]) -> DatabaseIdentity:
        """Replaces the identity by what ``changed`` gives for it, at once or not at all; returns the new one.

        An incarnation that begins, begins in the tables where the identity is. ``changed`` is called again where
        another process changed it meanwhile; what it raises comes out here, and nothing is changed. Raises as ``read``.
        """
        for _ in range(_CHANGE_ATTEMPTS_MAX):
            stored, place = await self._database.read(_stored())
            before = self._opened(stored)
            identity = changed(before)
            if identity.current.number != before.current.number:
                identity = identity.with_current(msgspec.structs.replace(identity.current, place=place))
            replaced = Statement(
                statements.REPLACE_META, (DATABASE_IDENTITY, self._sealed(identity), stored), is_whole=True
            )
            if await self._database.write(all_rows(replaced)):
                return identity
        raise Outdated("other processes went on changing the identity of the database")

    async def newest_elsewhere(self) -> int:
        """Gives the newest incarnation of this database in the tables that other schemas have of it; 0 where none has.

        A dump that is brought back once more takes the place of what the first recovery numbered. Raises as ``read``.
        """
        mine, rows = (
            await self.read(),
            await self._database.read(all_rows(Statement(statements.ELSEWHERE, (DATABASE_IDENTITY,)))),
        )
        newest = 0
        for row in rows:
            with suppress(StoreUnusable):  # another installation's, under another key
                other = self._opened(None if row[0] is None else blob_of(row[0]))
                newest = max(newest, other.current.number if other.id == mine.id else 0)
        return newest

    async def block_budgets(self, now_ms: int, for_ms: int, merchants: Iterable[str] = ()) -> None:
        """Keeps the permits of all budgets from all processes for a while. Raises StoreUnavailable.

        These are the budgets of the merchants that have any row, and of ``merchants``. PostgreSQL has the time itself;
        ``now_ms`` is that of the embedded database.
        """
        await self._database.write(_blocked(now_ms, for_ms, sorted(merchants)))

    def _sealed(self, identity: DatabaseIdentity) -> bytes:
        return self._seal.seal(_encode(identity), _CONTEXT)

    def _opened(self, stored: bytes | None) -> DatabaseIdentity:
        if stored is None:
            raise StoreUnusable("the identity of the database is missing from it; bring it back from a backup")
        return _decode(self._seal.open(stored, _CONTEXT))


def new_identity(seal: Seal, at_ms: int, place: str) -> bytes:
    """Draws the identity of a database that begins now in the tables of a place; gives it as it is stored."""
    first = Incarnation(number=1, reason=Beginning.CREATED, began_at_ms=at_ms, place=place)
    return seal.seal(_encode(DatabaseIdentity(id=secrets.token_hex(_ID_BYTES), incarnations=(first,))), _CONTEXT)


async def place_of(database: Database) -> str:
    """Names the tables of a database by what the server alone can give them; empty for an embedded one.

    Raises StoreUnavailable.
    """
    rows = await database.read(all_rows(Statement(statements.PLACE, ())))
    return str(rows[0][0])


def _stored() -> Unit[tuple[bytes | None, str]]:
    """Gives the stored identity, and where it is."""
    rows = yield Statement(statements.GET_META_IN_PLACE, (DATABASE_IDENTITY,))
    return (blob_of(rows[0][0]), str(rows[0][1])) if rows else (None, "")


def _blocked(now_ms: int, for_ms: int, merchants: list[str]) -> Unit[None]:
    yield Statement(BLOCK_ALL_PERMITS, (for_ms, now_ms))
    for merchant in merchants:
        yield Statement(BLOCK_PERMITS, (merchant, for_ms, now_ms))
