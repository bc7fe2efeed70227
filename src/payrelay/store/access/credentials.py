"""Credentials in the store: never the key itself, only its hash."""

from typing import Final, TypeAlias

import msgspec

from payrelay.core.access.credential import Credential, Rate, Scope
from payrelay.errors import Outdated, StoreError
from payrelay.store.digests.rows import RowDigests
from payrelay.store.engine.database import Database, Row, Statement, Unit, Value, all_rows
from payrelay.store.statements.access import credentials as statements
from payrelay.store.statements.access.credentials import CREDENTIALS
from payrelay.store.statements.access.principals import LOCK_NAMES, NAME_OF

CREDENTIALS_MAX: Final = 10_000
"""The most that a list gives; a team has a handful."""

_Credentials: TypeAlias = list[Credential]


class Credentials:
    """Stores credentials in a database. A row whose digest is wrong counts as not existing."""

    def __init__(self, database: Database, rows: RowDigests) -> None:
        self._database = database
        self._rows = rows

    async def add(self, credential: Credential) -> None:
        """Stores a new credential.

        Raises Outdated where its principal's name became another principal's; StoreError where its id exists.
        """
        parameters = _parameters(credential)
        digest = self._rows.of(CREDENTIALS, parameters)
        if not await self._database.write(_add((*parameters, digest), credential.principal)):
            raise StoreError(f"there is a credential {credential.id} already")

    async def get(self, credential_id: str) -> Credential | None:
        """Reads one credential, usable or not."""
        found = await self._many(Statement(statements.GET_CREDENTIAL, (credential_id,)))
        return found[0] if found else None

    async def list(self) -> _Credentials:
        """Reads all credentials, oldest first."""
        return await self._many(Statement(statements.LIST_CREDENTIALS, (CREDENTIALS_MAX,)))

    async def revoke(self, credential_id: str, at_ms: int) -> bool:
        """Revokes a credential; False where it is unknown, or was revoked before and keeps that time."""
        statement = Statement(statements.REVOKE_CREDENTIAL, (credential_id, at_ms), is_whole=True)
        return bool(await self._database.write(all_rows(statement)))

    async def _many(self, statement: Statement) -> _Credentials:
        rows = await self._database.read(all_rows(statement))
        return [credential_of(row) for row in await self._rows.trusted(CREDENTIALS, rows)]


def _add(parameters: tuple[Value, ...], principal: str) -> Unit[bool]:
    yield Statement(LOCK_NAMES, ())
    if (yield Statement(NAME_OF, (principal,))):
        raise Outdated(f"{principal!r} has just become the name of another principal; try again")
    return bool((yield Statement(statements.ADD_CREDENTIAL, parameters)))


def _parameters(credential: Credential) -> tuple[Value, ...]:
    rate = credential.rate
    return (
        credential.id,
        credential.principal,
        credential.key_hash,
        _names(credential.scopes),
        None if credential.accounts is None else _names(credential.accounts),
        credential.amount_max_minor,
        None if rate is None else rate.count,
        None if rate is None else rate.window_s,
        credential.created_at_ms,
        credential.expires_at_ms,
        credential.revoked_at_ms,
        credential.payments_max,
    )


def _names(names: frozenset[Scope] | frozenset[str]) -> str:
    return msgspec.json.encode(sorted(names)).decode()


def credential_of(row: Row) -> Credential:
    """Converts a row of CREDENTIAL_COLUMNS."""
    members = dict(zip(statements.CREDENTIAL_COLUMNS.split(", "), row, strict=True))
    count, window_s = members.pop("rate_count"), members.pop("rate_window_s")
    scopes, accounts = str(members.pop("scopes")), members.pop("accounts")
    return msgspec.convert(
        {
            **members,
            "scopes": msgspec.json.decode(scopes, type=frozenset[Scope]),
            "accounts": None if accounts is None else msgspec.json.decode(str(accounts), type=frozenset[str]),
            "rate": None if count is None else msgspec.convert({"count": count, "window_s": window_s}, Rate),
        },
        Credential,
    )
