"""The history of what operators did: one chain, each line with a keyed hash over itself and the line before it.

Rules:

1. A change that an operator makes and its line are one unit of work: ``appended`` is a part of the unit.
2. Behind its line a unit is alone: another unit with a line has committed by then, or gets Outdated and begins again.
   So what a unit reads behind its line is still so when it commits, also where two units change different rows.
3. Who does something in a session must have it still, and the role for it, when the line is added.
4. A line is never changed or removed. Whoever can write to the database and lacks the key can make none.
5. What rows name the number of a line (``operators.act``, ``console_sessions.act``, ``console_confirmations.act``) may
   not name a line that isn't there. So lines that were removed from the end are missed, unless the rows are put back
   too.
"""

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Final, TypeAlias

import msgspec

from payrelay.core.keyed_digest import DigestKey
from payrelay.core.operators.operator import NewAct, Operator, OperatorAct, is_live
from payrelay.core.operators.roles import Act, require_may
from payrelay.errors import Code, Outdated, Refusal
from payrelay.store.digests.rows import RowKey, RowVerifier
from payrelay.store.engine.database import Database, Row, Statement, T, Unit, all_rows
from payrelay.store.engine.rows import struct_of
from payrelay.store.statements.operators import acts as statements
from payrelay.store.statements.operators.operators import (
    CONSOLE_SESSIONS,
    GET_OPERATOR,
    GET_SESSION,
    NEWEST_ACT_OF_ROWS,
    OPERATORS,
)

PURPOSE: Final = "operator act"
"""Of the keyed hash; never changed."""
PAGE: Final = 500
ATTEMPTS_MAX: Final = 10
"""Each further attempt needs another process that added a line at the same moment."""
SESSION_OVER: Final = "your session has ended meanwhile; sign in again"
_FIRST: Final = ""
_END: Final = 2**62

_Acts: TypeAlias = list[OperatorAct]


class OperatorActs:
    """Adds lines to the history, reads it, and checks it; ``secret`` is the key of the audit chain."""

    def __init__(self, database: Database, secret: bytes) -> None:
        self._database = database
        self._key = DigestKey(secret, PURPOSE)
        self._rows = RowKey(secret)

    def appended(self, new: NewAct, *needs: Act) -> Unit[OperatorAct]:
        """Adds a line within a unit of work; whoever acts in a session may do ``new.act`` and ``needs``.

        Raises, which undoes all: Outdated where another process was quicker; Refusal (forbidden) where the session has
        ended meanwhile, or the role is another one.
        """
        rows = yield Statement(statements.LAST_ACT, ())
        number, before = (int(str(rows[0][0])), str(rows[0][1])) if rows else (0, _FIRST)
        members = (number + 1, *msgspec.structs.astuple(new)[:-1])
        act = struct_of((*members, self._key.digest(before, *members)), OperatorAct)
        if not (yield Statement(statements.ADD_ACT, msgspec.structs.astuple(act))):
            raise Outdated("another line of the operators' history came first")
        if new.session_id:
            yield from self._required(new, (new.act, *needs))
        if "/" in act.subject:  # a noun and an id: something that has a page, with the lines about it
            yield Statement(statements.ADD_SUBJECT, (act.subject, act.number))
        return act

    def operator(self, operator_id: str) -> Unit[Operator | None]:
        """Reads an operator within a unit of work; None where there is none, or the row's digest is wrong."""
        rows = yield Statement(GET_OPERATOR, (operator_id,))
        right = RowVerifier(self._rows).values(OPERATORS, rows)
        return right[0] if right else None

    async def written(self, unit: Callable[[], Unit[T]]) -> T:
        """Carries out a unit of work with a line in it; begins it again where another process was quicker.

        Raises StoreError; Outdated where the unit goes on meeting something else than it expects.
        """
        for _ in range(ATTEMPTS_MAX - 1):
            try:
                return await self._database.write(unit())
            except Outdated:
                continue
        return await self._database.write(unit())

    async def before(self, number: int | None, limit: int) -> _Acts:
        """Reads the lines before a number, newest first; the newest of all where the number is None."""
        statement = Statement(statements.ACTS_BEFORE, (_END if number is None else number, limit))
        return list(map(_act, await self._database.read(all_rows(statement))))

    async def about(self, subject: str, limit: int) -> _Acts:
        """Reads the newest lines about one thing, newest first. Raises StoreError."""
        return list(map(_act, await self._database.read(all_rows(Statement(statements.ACTS_ABOUT, (subject, limit))))))

    async def write_line(self, new: NewAct, seen: int) -> OperatorAct | None:
        """Adds a line that changes no row; ``seen`` is the newest line about the same thing that its writer saw.

        None where there is a newer one by now, and nothing is stored then. Raises StoreError.
        """
        return await self.written(lambda: self._line(new, seen))

    def unseen(self, subject: str, seen: int) -> Unit[bool]:
        """Tells within a unit of work whether there is a newer line about a thing than the one that was seen."""
        rows = yield Statement(statements.ACTS_ABOUT, (subject, 1))
        return bool(rows) and int(str(rows[0][0])) > seen

    def _required(self, new: NewAct, acts: tuple[Act, ...]) -> Unit[None]:
        operator = yield from self.operator(new.operator_id)
        sessions = RowVerifier(self._rows).values(CONSOLE_SESSIONS, (yield Statement(GET_SESSION, (new.session_id,))))
        session = sessions[0] if sessions else None
        if operator is None or session is None or not is_live(session, operator, new.at_ms):
            raise Refusal(Code.FORBIDDEN, SESSION_OVER)
        require_may(operator.role, *acts)

    def _line(self, new: NewAct, seen: int) -> Unit[OperatorAct | None]:
        if (yield from self.unseen(new.subject, seen)):
            return None
        return (yield from self.appended(new))

    async def check(self) -> AsyncIterator[tuple[OperatorAct, str | None]]:
        """Reads all lines, oldest first, each with what is wrong with it, or None. Raises StoreError."""
        number, before = 0, _FIRST
        while rows := await self._database.read(all_rows(Statement(statements.ACTS_AFTER, (number, PAGE)))):
            for row in rows:
                act = _act(row)
                yield act, self._wrong(act, number, before)
                number, before = act.number, act.hash
            await asyncio.sleep(0)  # the embedded database reads without waiting: a server's requests have their turn

    async def newest_named(self) -> int:
        """Reads the highest number that a row names, and then has to be there. Raises StoreError."""
        [[number]] = await self._database.read(all_rows(Statement(NEWEST_ACT_OF_ROWS, ())))
        return number if isinstance(number, int) else 0

    def _wrong(self, act: OperatorAct, before_number: int, before_hash: str) -> str | None:
        if act.number != before_number + 1:
            return f"line {before_number + 1} is missing before it"
        if not self._key.fits(act.hash, before_hash, *msgspec.structs.astuple(act)[:-1]):
            return "it was changed, or the line before it was: its hash doesn't follow"
        return None


def _act(row: Row) -> OperatorAct:
    return struct_of(row, OperatorAct)
