"""Credentials in the store: never the key itself, only its hash."""

from typing import Final, TypeAlias

import msgspec

from payrelay.core.access.credential import Credential, Rate, Scope
from payrelay.errors import Outdated, StoreError
from payrelay.store.access.principals import LOCK_NAMES, NAME_OF
from payrelay.store.digests.rows import RowDigests
from payrelay.store.engine.database import Database, Row, Statement, Unit, Value, all_rows
from payrelay.store.engine.queries import query
from payrelay.store.engine.tables import Table

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
        row = self._rows.key.digested(CREDENTIALS, _columns(credential))
        if not await self._database.write(_add(row, credential.principal)):
            raise StoreError(f"there is a credential {credential.id} already")

    async def get(self, credential_id: str) -> Credential | None:
        """Reads one credential, usable or not."""
        found = await self._many(Statement(GET_CREDENTIAL, (credential_id,)))
        return found[0] if found else None

    async def list(self) -> _Credentials:
        """Reads all credentials, oldest first."""
        return await self._many(Statement(LIST_CREDENTIALS, (CREDENTIALS_MAX,)))

    async def revoke(self, credential_id: str, at_ms: int) -> bool:
        """Revokes a credential; False where it is unknown, or was revoked before and keeps that time."""
        statement = Statement(REVOKE_CREDENTIAL, (credential_id, at_ms), is_whole=True)
        return bool(await self._database.write(all_rows(statement)))

    async def _many(self, statement: Statement) -> _Credentials:
        rows = await self._database.read(all_rows(statement))
        return [credential_of(row) for row in await self._rows.trusted(CREDENTIALS, rows)]


def _add(parameters: tuple[Value, ...], principal: str) -> Unit[bool]:
    yield Statement(LOCK_NAMES, ())
    if (yield Statement(NAME_OF, (principal,))):
        raise Outdated(f"{principal!r} has just become the name of another principal; try again")
    return bool((yield Statement(ADD_CREDENTIAL, parameters)))


def _columns(credential: Credential) -> tuple[Value, ...]:
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
    """Converts the columns of a credential's row."""
    members = CREDENTIALS.members(row)
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


CREDENTIALS: Final = Table(
    name="credentials",
    columns=(
        *("id", "principal", "key_hash", "scopes", "accounts", "amount_max_minor", "rate_count", "rate_window_s"),
        *("created_at_ms", "expires_at_ms", "revoked_at_ms", "payments_max"),
    ),
    uncovered={"revoked_at_ms": "a row that was revoked has no digest"},
    ended_by="revoked_at_ms",
)

ADD_CREDENTIAL: Final = query(
    f"""
    {CREDENTIALS.insert()}
    ON CONFLICT DO NOTHING
    RETURNING id""",
)
"""Stores a credential; gives no row where its id exists."""

GET_CREDENTIAL: Final = query(f"{CREDENTIALS.select} WHERE id = $1")
"""Reads one credential."""

LIST_CREDENTIALS: Final = query(f"{CREDENTIALS.select} ORDER BY created_at_ms, id LIMIT $1")
"""Reads the credentials, oldest first."""

REVOKE_CREDENTIAL: Final = query(
    "UPDATE credentials SET revoked_at_ms = $2, row_digest = '' WHERE id = $1 AND revoked_at_ms IS NULL RETURNING id",
)
"""Revokes a credential that isn't revoked yet; the time of the first revocation stays. It loses its digest, so that
nobody can take the revocation back."""
