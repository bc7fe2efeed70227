"""Operators, invitations and sessions in the store. A row whose digest is wrong counts as not existing.

The secret of a second factor is sealed, and bound to its operator. Of what somebody carries the store has a hash.
"""

from collections.abc import Sequence
from typing import Final, TypeAlias

import msgspec

from payrelay.core.operators.operator import (
    ConsoleSession,
    Invitation,
    NewAct,
    Operator,
    OperatorAct,
    PasskeyChange,
    is_active_admin,
)
from payrelay.core.secret import Secret
from payrelay.errors import Code, Outdated, Refusal
from payrelay.store.digests.rows import RowDigests
from payrelay.store.engine.database import Database, Row, Statement, Unit, all_rows
from payrelay.store.engine.queries import Query
from payrelay.store.engine.rows import StructT, blob_of
from payrelay.store.engine.sealing import Seal
from payrelay.store.engine.tables import StructTable
from payrelay.store.operators.acts import OperatorActs
from payrelay.store.operators.passkeys import Passkeys, removal_of_all
from payrelay.store.statements.operators import operators as statements
from payrelay.store.statements.operators.operators import CONSOLE_SESSIONS, OPERATOR_INVITATIONS, OPERATORS

OPERATORS_MAX: Final = 1_000
"""The most that a list gives; a company has a handful."""
SESSIONS_MAX: Final = 100
SESSIONS_KEPT_MS: Final = 30 * 86_400_000
"""How long a session is kept after its end."""
LAST_ADMIN: Final = "this is the last administrator; make another one first"

_Operators: TypeAlias = list[Operator]
_Sessions: TypeAlias = list[ConsoleSession]


class OperatorChange(msgspec.Struct, frozen=True, kw_only=True):
    """What changes at once, or not at all, with the line about it.

    Attributes:
        at_ms: when; milliseconds since 1970, UTC.
        act: the line of the history; None only for a sign-in that has not come to its end.
        added: a new operator.
        changed: an operator's next version.
        totp_secret: the new secret of the second factor of ``changed``.
        passkey: what changes of the passkeys of an operator.
        found: whom a sign-in found; whatever lets them in must still be the same.
        leaves_admin: whether an administrator who can sign in must be left.
        ends_everything: ends all sessions and invitations of ``changed``, and destroys the secret and the passkeys of
            its second factor where it has none any more.
        removes_totp: destroys the secret of an authenticator app that ``changed`` has no more.
        ends_invitation, ends_session: the id of one that must be going on.
        invitation, session: a new one.
    """

    at_ms: int
    act: NewAct | None
    added: Operator | None = None
    changed: Operator | None = None
    totp_secret: Secret | None = None
    passkey: PasskeyChange | None = None
    found: Operator | None = None
    leaves_admin: bool = False
    ends_everything: bool = False
    removes_totp: bool = False
    ends_invitation: str | None = None
    ends_session: str | None = None
    invitation: Invitation | None = None
    session: ConsoleSession | None = None


class Operators:
    """Stores operators with their invitations and sessions; ``acts`` has the history of what they do.

    Attributes:
        passkeys: reads their passkeys.
    """

    def __init__(self, database: Database, seal: Seal, rows: RowDigests, acts: OperatorActs) -> None:
        self._database = database
        self._seal = seal
        self._rows = rows
        self._acts = acts
        self.passkeys = Passkeys(database, rows)

    async def carry_out(self, change: OperatorChange) -> OperatorAct | None:
        """Stores a change with its line, and gives the line.

        Raises Outdated where another change came first, an e-mail address is taken, or what should end has ended, such
        as an invitation. Raises Refusal: forbidden where whoever acts may not any more; conflict where no administrator
        would be left. Raises StoreError. Nothing is stored then.
        """
        sealed = None
        if change.totp_secret is not None and change.changed is not None:
            sealed = self._seal.seal(change.totp_secret.reveal().encode(), statements.totp_context(change.changed.id))
        return await self._acts.written(lambda: self._carried_out(change, sealed))

    async def get(self, operator_id: str) -> Operator | None:
        """Reads one operator. Raises StoreError."""
        return await self._one(OPERATORS, statements.GET_OPERATOR, operator_id)

    async def by_email(self, email: str) -> Operator | None:
        """Reads the operator with an e-mail address, which is in small letters. Raises StoreError."""
        return await self._one(OPERATORS, statements.FIND_BY_EMAIL, email)

    async def by_subject(self, subject_hash: str) -> Operator | None:
        """Reads the operator whom the sign-in provider knows by a subject. Raises StoreError."""
        return await self._one(OPERATORS, statements.FIND_BY_SUBJECT, subject_hash)

    async def list(self) -> _Operators:
        """Reads all operators, in the order of their addresses. Raises StoreError."""
        rows = await self._database.read(all_rows(Statement(statements.LIST_OPERATORS, (OPERATORS_MAX,))))
        return await self._rows.values(OPERATORS, rows)

    async def totp_secret(self, operator_id: str) -> Secret | None:
        """Opens the secret of an operator's second factor; None where there is none.

        Raises StoreUnusable where somebody else has written it, StoreError.
        """
        rows = await self._database.read(all_rows(Statement(statements.GET_TOTP, (operator_id,))))
        if not rows or rows[0][0] is None:
            return None
        return Secret(self._seal.open(blob_of(rows[0][0]), statements.totp_context(operator_id)).decode())

    async def invitation(self, token_hash: str) -> Invitation | None:
        """Reads the invitation with a token. Raises StoreError."""
        return await self._one(OPERATOR_INVITATIONS, statements.FIND_INVITATION, token_hash)

    async def invitation_of(self, operator_id: str) -> Invitation | None:
        """Reads an operator's invitation that nobody has ended; it may be over. Raises StoreError."""
        return await self._one(OPERATOR_INVITATIONS, statements.OPEN_INVITATION, operator_id)

    async def session(self, token_hash: str) -> ConsoleSession | None:
        """Reads the session with a token. Raises StoreError."""
        return await self._one(CONSOLE_SESSIONS, statements.FIND_SESSION, token_hash)

    async def sessions_of(self, operator_id: str) -> _Sessions:
        """Reads the sessions of an operator that nobody has ended, newest first; some are over. Raises StoreError."""
        statement = Statement(statements.LIST_SESSIONS, (operator_id, SESSIONS_MAX))
        return await self._rows.values(CONSOLE_SESSIONS, await self._database.read(all_rows(statement)))

    async def see(self, session: ConsoleSession, now_ms: int) -> ConsoleSession:
        """Notes that a session is used now, and gives it so; nothing happens where it was ended meanwhile.

        Raises StoreError.
        """
        seen = msgspec.structs.replace(session, seen_at_ms=now_ms)
        digests = (self._rows.of(CONSOLE_SESSIONS, CONSOLE_SESSIONS.row(each)) for each in (seen, session))
        statement = Statement(statements.SEE_SESSION, (session.id, now_ms, *digests), is_whole=True)
        await self._database.write(all_rows(statement))
        return seen

    def _carried_out(self, change: OperatorChange, sealed: bytes | None) -> Unit[OperatorAct | None]:
        act = None if change.act is None else (yield from self._acts.appended(change.act))
        number = 0 if act is None else act.number
        if change.found is not None:
            yield from self._as_found(change.found)
        if change.ends_invitation is not None:
            yield from _must(Statement(statements.END_INVITATION, (change.ends_invitation, change.at_ms)))
        if change.ends_session is not None:
            yield from _must(Statement(statements.END_SESSION, (change.ends_session, change.at_ms)))
        if change.added is not None:
            yield from _must(self._put(statements.ADD_OPERATOR, change.added, number))
        if change.changed is not None:
            yield from self._changed(change.changed, change, number, sealed)
        if change.passkey is not None:
            yield from self.passkeys.written(change.passkey, number)
        if change.invitation is not None:
            yield self._with_digest(statements.ADD_INVITATION, OPERATOR_INVITATIONS, change.invitation)
        if change.session is not None:
            yield Statement(statements.FORGET_SESSIONS, (change.at_ms - SESSIONS_KEPT_MS,))
            session = msgspec.structs.replace(change.session, act=number)
            yield self._with_digest(statements.ADD_SESSION, CONSOLE_SESSIONS, session)
        return act

    def _as_found(self, found: Operator) -> Unit[None]:
        """Locks the operator: a half sign-in has no line, behind which its unit would be alone."""
        rows = self._right((yield Statement(statements.LOCK_OPERATOR, (found.id,))))
        if not rows or rows[0].lets_in != found.lets_in:
            raise Outdated("what lets the operator in was changed since it was read")

    def _right(self, rows: Sequence[Row]) -> _Operators:
        return self._rows.verifier().values(OPERATORS, rows)

    def _changed(self, operator: Operator, change: OperatorChange, number: int, sealed: bytes | None) -> Unit[None]:
        yield from _must(self._put(statements.CHANGE_OPERATOR, operator, number or operator.act))
        if change.leaves_admin:
            everybody = self._right((yield Statement(statements.LIST_OPERATORS, (OPERATORS_MAX,))))
            if not any(map(is_active_admin, everybody)):
                raise Refusal(Code.CONFLICT, LAST_ADMIN)
        if change.ends_everything:
            yield Statement(statements.END_INVITATIONS_OF, (operator.id, change.at_ms))
            yield Statement(statements.END_SESSIONS_OF, (operator.id, change.at_ms))
        is_without = change.ends_everything and operator.second_factor is None
        if sealed is not None or is_without or change.removes_totp:
            yield Statement(statements.PUT_TOTP, (operator.id, sealed))
        if is_without:
            yield removal_of_all(operator.id)

    def _put(self, query: Query, operator: Operator, number: int) -> Statement:
        return self._with_digest(query, OPERATORS, msgspec.structs.replace(operator, act=number))

    def _with_digest(self, query: Query, table: StructTable[StructT], value: StructT) -> Statement:
        return Statement(query, self._rows.key.digested(table, table.row(value)))

    async def _one(self, table: StructTable[StructT], query: Query, key: str) -> StructT | None:
        found = await self._rows.values(table, await self._database.read(all_rows(Statement(query, (key,)))))
        return found[0] if found else None


def _must(statement: Statement) -> Unit[None]:
    if not (yield statement):
        raise Outdated("it was changed since it was read")
