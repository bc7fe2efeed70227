"""Client tokens in the store: issued and unexpired ones, never the text of one."""

# ruff: noqa: S608 - only columns named here are put into the texts; values are always parameters

from typing import Final, TypeAlias

import msgspec

from payrelay.core.access.allowance import Allowance
from payrelay.core.access.client_token import ClientToken, Parentage
from payrelay.core.access.credential import Scope
from payrelay.errors import StoreError
from payrelay.store.access.credentials import CREDENTIALS, credential_of
from payrelay.store.digests.rows import RowDigests
from payrelay.store.engine.database import Database, Row, Statement, count_rows, first_row
from payrelay.store.engine.queries import query
from payrelay.store.engine.tables import Table
from payrelay.store.statements.pagination import ListIndex, Listing, read_page


class StoredClientToken(msgspec.Struct, frozen=True, kw_only=True):
    """A token that was issued, and the time of its revocation; milliseconds since 1970, UTC."""

    token: ClientToken
    revoked_at_ms: int | None


_Page: TypeAlias = list[StoredClientToken]


class ClientTokens:
    """Stores client tokens in a database. A row whose digest is wrong counts as not existing."""

    def __init__(self, database: Database, rows: RowDigests) -> None:
        self._database = database
        self._rows = rows

    async def add(self, token: ClientToken) -> None:
        """Stores a token that is about to be issued; raises StoreError where its id exists."""
        names = msgspec.json.encode(sorted(token.scopes)).decode()
        allowance = None if token.allowance is None else msgspec.json.encode(token.allowance).decode()
        digest = self._rows.of(CLIENT_TOKENS, (token.id, token.principal, token.credential_id, None))
        parameters = (
            *(token.id, token.principal, token.credential_id, token.account, token.customer_id, token.order_id),
            *(names, token.issued_at_ms, token.expires_at_ms, None, allowance, digest),
        )
        if not await self._write(Statement(ADD_CLIENT_TOKEN, parameters, is_whole=True)):
            raise StoreError(f"there is a client token {token.id} already")

    async def parentage(self, token_id: str) -> Parentage | None:
        """Reads whether a token was revoked, and its parent; None where it is unknown or was forgotten."""
        row = await self._database.read(first_row(Statement(FIND_PARENT, (token_id,))))
        if row is None:
            return None
        principal, revoked_at_ms, digest, *parent = row
        assert revoked_at_ms is None or isinstance(revoked_at_ms, int)  # noqa: S101, an integer column
        is_own = await self._rows.is_right(CLIENT_TOKENS, (token_id, principal, parent[0], revoked_at_ms, digest))
        parents = await self._rows.trusted(CREDENTIALS, [parent])
        if not (is_own and parents):
            return None
        return Parentage(revoked_at_ms=revoked_at_ms, parent=credential_of(parents[0]))

    async def list(
        self, principal: str, account: str, *, customer_id: str | None, before: str | None, limit: int
    ) -> _Page:
        """Reads one page of a principal's tokens on an account, newest first; with ``customer_id`` only of that one."""
        of_customer = {} if customer_id is None else {"customer_id": customer_id}
        equal = {"principal": principal, "account": account, **of_customer}
        rows = await read_page(self._database, LIST_CLIENT_TOKENS, equal, before=before, limit=limit)
        return [_issued(row) for row in rows]

    async def revoke(self, token_id: str, principal: str, account: str, at_ms: int) -> bool:
        """Revokes a principal's token, once or again; False where the principal has none of that id on the account."""
        parameters = (token_id, principal, account, at_ms)
        return bool(await self._write(Statement(REVOKE_CLIENT_TOKEN, parameters, is_whole=True)))

    async def revoke_of_customer(self, customer_id: str, principal: str, at_ms: int) -> int:
        """Revokes all of a principal's tokens for a customer; gives the number of those that were still valid."""
        return await self._write(Statement(REVOKE_OF_CUSTOMER, (customer_id, principal, at_ms), is_whole=True))

    async def revoke_some(
        self,
        principal: str,
        at_ms: int,
        *,
        customer_id: str | None,
        credential_id: str | None,
        issued_until_ms: int | None = None,
    ) -> int:
        """Revokes a principal's tokens, limited to a customer and a key where these are given; gives their number.

        With ``issued_until_ms`` only those that were issued until then. Tokens that are revoked keep their time.
        """
        parameters = (principal, customer_id, credential_id, at_ms, issued_until_ms)
        return await self._write(Statement(REVOKE_SOME, parameters, is_whole=True))

    async def prune(self, now_ms: int, limit: int) -> int:
        """Forgets at most ``limit`` tokens that have expired; gives their number."""
        return await self._write(Statement(PRUNE_CLIENT_TOKENS, (now_ms, limit), is_whole=True))

    async def _write(self, statement: Statement) -> int:
        return await self._database.write(count_rows(statement))


def _issued(row: Row) -> StoredClientToken:
    members = dict(zip(_COLUMNS, row, strict=True))
    revoked_at_ms = members.pop("revoked_at_ms")
    scopes = msgspec.json.decode(str(members.pop("scopes")), type=frozenset[Scope])
    stored = members.pop("allowance")
    allowance = None if stored is None else msgspec.json.decode(str(stored), type=Allowance)
    token = msgspec.convert({**members, "scopes": scopes, "allowance": allowance}, ClientToken)
    return msgspec.convert({"token": token, "revoked_at_ms": revoked_at_ms}, StoredClientToken)


_COVERED: Final = ("id", "principal", "credential_id")
_SHOWN: Final = ("account", "customer_id", "order_id", "scopes", "issued_at_ms", "expires_at_ms")
_COLUMNS: Final = (*_COVERED, *_SHOWN, "revoked_at_ms", "allowance")
"""The columns of an issued token."""
_ISSUED: Final = ", ".join(_COLUMNS)
CLIENT_TOKENS: Final = Table(
    name="client_tokens",
    columns=(*_COVERED, "revoked_at_ms"),
    uncovered={
        **dict.fromkeys((*_SHOWN, "allowance"), "the token's own text has it, signed; the row only shows it"),
        "revoked_at_ms": "a row that was revoked has no digest",
    },
    ended_by="revoked_at_ms",
)

ADD_CLIENT_TOKEN: Final = query(
    f"""
    INSERT INTO client_tokens ({_ISSUED}, row_digest)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)
    ON CONFLICT DO NOTHING
    RETURNING id""",
)
"""Stores a token that is about to be issued; gives no row where its id exists."""

FIND_PARENT: Final = query(
    f"""
    SELECT client_tokens.principal, client_tokens.revoked_at_ms, client_tokens.row_digest,
      {CREDENTIALS.qualified}, credentials.row_digest
    FROM client_tokens JOIN credentials ON credentials.id = client_tokens.credential_id WHERE client_tokens.id = $1""",
)
"""Reads when a token was revoked, and the key that issued it."""

REVOKE_CLIENT_TOKEN: Final = query(
    """
    UPDATE client_tokens SET revoked_at_ms = coalesce(revoked_at_ms, $4), row_digest = ''
    WHERE id = $1 AND principal = $2 AND account = $3 RETURNING id""",
)
"""Revokes a principal's token on an account; the time of the first revocation stays."""

REVOKE_OF_CUSTOMER: Final = query(
    """
    UPDATE client_tokens SET revoked_at_ms = $3, row_digest = ''
    WHERE customer_id = $1 AND principal = $2 AND revoked_at_ms IS NULL RETURNING id""",
)
"""Revokes all of a principal's tokens for a customer."""

REVOKE_SOME: Final = query(
    """
    UPDATE client_tokens SET revoked_at_ms = $4, row_digest = ''
    WHERE principal = $1 AND revoked_at_ms IS NULL AND ($2::text IS NULL OR customer_id = $2::text)
      AND ($3::text IS NULL OR credential_id = $3::text) AND ($5::bigint IS NULL OR issued_at_ms <= $5::bigint)
    RETURNING id""",
)
"""Revokes a principal's tokens: of a customer, of a key, of both, or all of them; with $5 only those issued until then.
"""

PRUNE_CLIENT_TOKENS: Final = query(
    """
    DELETE FROM client_tokens
    WHERE id IN (SELECT id FROM client_tokens WHERE expires_at_ms <= $1 ORDER BY expires_at_ms LIMIT $2)
    RETURNING id""",
)
"""Forgets expired tokens, a limited number at a time."""

LIST_CLIENT_TOKENS: Final = Listing(
    "client_tokens",
    _ISSUED,
    (ListIndex(("customer_id", "principal"), is_sorted=False), ListIndex(("principal", "account"))),
)
"""The listed columns of tokens, and the indexes of the list."""
