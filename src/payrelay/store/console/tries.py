"""Counts tries to sign in, and keeps what a browser brings back once; in the store, for all processes together."""

from payrelay.core.console.sign_in.tries import WINDOW_MS, TryLimit, subject_of
from payrelay.store.engine.database import Database, Statement, Unit, all_rows
from payrelay.store.statements.console import acts as statements


class SignInTries:
    """Counts tries to sign in."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def take(self, limit: TryLimit, whose: str, now_ms: int) -> bool:
        """Counts a try before it is made; False where there were too many. Raises StoreError.

        Counted first, so that a thousand tries at one moment are a thousand, and not one.
        """
        return await self._database.write(_take(subject_of(limit, whose), now_ms)) <= limit.tries

    async def forget(self, limit: TryLimit, whose: str) -> None:
        """Begins the count again, because somebody got in. Raises StoreError."""
        statement = Statement(statements.FORGET_TRIES, (subject_of(limit, whose),), is_whole=True)
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

    async def take(self, name: str, bearer: str, now_ms: int) -> str | None:
        """Takes one, and gives its way; None where this bearer has none of that name, or it was taken, or is over.

        Of several processes that ask at one moment only one gets it. Raises StoreError.
        """
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


def _take(subject: str, now_ms: int) -> Unit[int]:
    yield Statement(statements.FORGET_OLD_TRIES, (now_ms - WINDOW_MS,))
    rows = yield Statement(statements.TAKE_TRY, (subject, now_ms, now_ms - WINDOW_MS))
    return int(str(rows[0][0]))
