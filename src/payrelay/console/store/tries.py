"""Counts tries to sign in, and keeps what a browser brings back once; in the store, for all processes together."""

from payrelay.console.rules.sign_in.tries import WINDOW_MS, Counted
from payrelay.store.engine.database import Database, Statement, Unit, all_rows
from payrelay.store.statements.operators import acts as statements


class _Full(Exception):
    """A count is full; nothing is counted then."""


class SignInTries:
    """Counts tries to sign in, by the law of ``console.rules.sign_in.tries``."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def take(self, now_ms: int, *counts: Counted) -> bool:
        """Counts a try in each of these counts before it is made; False, and in none, where one of them is full.

        Counted first, so that a thousand tries at one moment are a thousand, and not one. Where a count is full, it
        only reads. Raises StoreError.
        """
        if await self._database.read(_is_full(counts, now_ms)):
            return False
        try:
            await self._database.write(_take(counts, now_ms))
        except _Full:
            return False
        return True

    async def give_back(self, counted: Counted, tried_at_ms: int, tries: int = 1) -> None:
        """Takes tries off a count, because somebody got in; ``tried_at_ms`` is when. Raises StoreError."""
        statement = Statement(statements.GIVE_TRIES_BACK, (counted.subject, tries, tried_at_ms), is_whole=True)
        await self._database.write(all_rows(statement))

    async def forget(self, counted: Counted) -> None:
        """Begins a count again, because its operator got in. Raises StoreError."""
        statement = Statement(statements.FORGET_TRIES, (counted.subject,), is_whole=True)
        await self._database.write(all_rows(statement))


class Challenges:
    """Keeps what a browser has to bring back once; ``name`` and ``bearer`` are hashes (``token_hash``)."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def add(self, name: str, bearer: str, way: str, *, now_ms: int, ends_at_ms: int) -> None:
        """Adds one that ``bearer`` may bring back; ``way`` is where to go on then. Raises StoreError."""
        await self._database.write(_add(Statement(statements.ADD_CHALLENGE, (name, bearer, way, ends_at_ms)), now_ms))

    async def kept(self, name: str, bearer: str, way: str, *, now_ms: int, ends_at_ms: int) -> str:
        """Adds one unless there is one of that name, and gives the way of the one that there is then.

        So whoever loads a page again adds none. Raises StoreError.
        """
        return await self._database.write(_kept((name, bearer, way, ends_at_ms), now_ms))

    async def way(self, name: str, bearer: str, now_ms: int) -> str | None:
        """Gives the way of one, and leaves it; None where ``take`` would give none. Raises StoreError."""
        rows = await self._database.read(all_rows(Statement(statements.GET_CHALLENGE, (name, bearer, now_ms))))
        return str(rows[0][0]) if rows else None

    async def take(self, name: str, bearer: str, now_ms: int) -> str | None:
        """Takes one, and gives its way; None where this bearer has none of that name, or it was taken, or is over.

        Of several processes that ask at one moment only one gets it. What nobody has to bring back is only looked for,
        so a flood of it writes nothing. Raises StoreError.
        """
        if await self.way(name, bearer, now_ms) is None:
            return None
        statement = Statement(statements.TAKE_CHALLENGE, (name, bearer, now_ms), is_whole=True)
        rows = await self._database.write(all_rows(statement))
        return str(rows[0][0]) if rows else None


def _add(added: Statement, now_ms: int) -> Unit[None]:
    yield Statement(statements.FORGET_OLD_CHALLENGES, (now_ms,))
    yield added


def _kept(values: tuple[str, str, str, int], now_ms: int) -> Unit[str]:
    yield Statement(statements.FORGET_OLD_CHALLENGES, (now_ms,))
    rows = yield Statement(statements.KEEP_CHALLENGE, values)
    return str(rows[0][0])


def _is_full(counts: tuple[Counted, ...], now_ms: int) -> Unit[bool]:
    for each in counts:
        if (yield Statement(statements.IS_FULL, (each.subject, each.limit.tries, now_ms - WINDOW_MS))):
            return True
    return False


def _take(counts: tuple[Counted, ...], now_ms: int) -> Unit[None]:
    began_ms = now_ms - WINDOW_MS
    for each in counts:
        if not (yield Statement(statements.TAKE_TRY, (each.subject, now_ms, began_ms, each.limit.tries))):
            raise _Full
    yield Statement(statements.FORGET_OLD_TRIES, (began_ms,))
