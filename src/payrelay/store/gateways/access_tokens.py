"""The access token of a gateway account that all processes share, sealed, with the lease to fetch the next one."""

# ruff: noqa: S608 - only columns named here are put into the texts; values are always parameters

from typing import Final

from payrelay.clock import Clock
from payrelay.core.gateways.shared_token import SharedToken
from payrelay.errors import StoreUnusable
from payrelay.store.engine.database import Database, Row, Statement, first_row
from payrelay.store.engine.queries import query
from payrelay.store.engine.sealing import Seal
from payrelay.store.gateways.budget import SERVER_NOW_MS
from payrelay.store.gateways.steady_time import steady_ms

_CONTEXT_PREFIX: Final = "access_token/"


class AccessTokens:
    """Stores one account's token (see ``gateways.token_store``). ``account`` names the token for good."""

    def __init__(self, database: Database, seal: Seal, clock: Clock, account: str) -> None:
        self._database = database
        self._seal = seal
        self._now_ms = steady_ms(clock)
        self._account = account
        self._context = (_CONTEXT_PREFIX + account).encode()

    async def read(self) -> SharedToken | None:
        """Gives the stored token; None also where it can't be opened. Raises StoreUnavailable."""
        row = await self._database.read(first_row(self._find()))
        text = None if row is None else self._opened(row)
        if row is None or text is None:
            return None
        _, age_ms, left_ms = row
        assert isinstance(age_ms, int)  # noqa: S101, a column that is not null
        assert isinstance(left_ms, int)  # noqa: S101, a column that is not null
        return SharedToken(text, age_ms / 1000, left_ms / 1000)

    async def lease(self, for_s: float) -> bool:
        """Leases the fetching of the next token; False where another process has the lease. Raises StoreUnavailable."""
        parameters = (self._account, _ms(for_s), self._now_ms())
        leased = Statement(LEASE_ACCESS_TOKEN, parameters, is_whole=True)
        return await self._database.write(first_row(leased)) is not None

    async def put(self, text: str, left_s: float) -> None:
        """Stores a token in place of the one before, and ends the lease. Raises StoreUnavailable."""
        sealed = self._seal.seal(text.encode(), self._context)
        parameters = (self._account, sealed, _ms(left_s), self._now_ms())
        await self._database.write(first_row(Statement(PUT_ACCESS_TOKEN, parameters, is_whole=True)))

    async def give_up(self, for_s: float) -> None:
        """Ends the lease without a token; others may lease after ``for_s`` seconds. Raises StoreUnavailable."""
        parameters = (self._account, _ms(for_s), self._now_ms())
        await self._database.write(first_row(Statement(END_TOKEN_LEASE, parameters, is_whole=True)))

    async def drop(self, text: str) -> None:
        """Forgets a token that the gateway called invalid, unless another one replaced it. Raises StoreUnavailable."""
        row = await self._database.read(first_row(self._find()))
        if row is not None and self._opened(row) == text:
            parameters = (self._account, row[0])
            await self._database.write(first_row(Statement(DROP_ACCESS_TOKEN, parameters, is_whole=True)))

    def _find(self) -> Statement:
        return Statement(FIND_ACCESS_TOKEN, (self._account, self._now_ms()))

    def _opened(self, row: Row) -> str | None:
        sealed = row[0]
        if not isinstance(sealed, bytes):
            return None
        try:
            return self._seal.open(sealed, self._context).decode()
        except StoreUnusable:
            return None  # sealed with a missing key: another token is fetched


def _ms(seconds: float) -> int:
    return round(seconds * 1000)


FIND_ACCESS_TOKEN: Final = query(
    f"""
    SELECT sealed_token, {SERVER_NOW_MS} - obtained_at_ms, ends_at_ms - {SERVER_NOW_MS}
    FROM access_tokens WHERE account = $1 AND $2::bigint IS NOT NULL""",
    sqlite=("SELECT sealed_token, $2 - obtained_at_ms, ends_at_ms - $2 FROM access_tokens WHERE account = $1",),
)
"""Reads an account's access token, its age, and its remaining life."""

LEASE_ACCESS_TOKEN: Final = query(
    f"""
    INSERT INTO access_tokens (account, obtained_at_ms, ends_at_ms, lease_until_ms)
    SELECT $1, 0, 0, {SERVER_NOW_MS} + $2::bigint WHERE $3::bigint IS NOT NULL
    ON CONFLICT (account) DO UPDATE SET lease_until_ms = excluded.lease_until_ms
    WHERE access_tokens.lease_until_ms <= {SERVER_NOW_MS}
    RETURNING account""",
    sqlite=(
        """
        INSERT INTO access_tokens (account, obtained_at_ms, ends_at_ms, lease_until_ms) VALUES ($1, 0, 0, $3 + $2)
        ON CONFLICT (account) DO UPDATE SET lease_until_ms = excluded.lease_until_ms
        WHERE access_tokens.lease_until_ms <= $3
        RETURNING account""",
    ),
)
"""Leases the fetching of the next access token to one process; gives no row where another one has the lease."""

PUT_ACCESS_TOKEN: Final = query(
    f"""
    INSERT INTO access_tokens (account, sealed_token, obtained_at_ms, ends_at_ms, lease_until_ms)
    SELECT $1, $2::bytea, {SERVER_NOW_MS}, {SERVER_NOW_MS} + $3::bigint, 0 WHERE $4::bigint IS NOT NULL
    ON CONFLICT (account) DO UPDATE
    SET sealed_token = excluded.sealed_token, obtained_at_ms = excluded.obtained_at_ms,
        ends_at_ms = excluded.ends_at_ms, lease_until_ms = 0""",
    sqlite=(
        """
        INSERT INTO access_tokens (account, sealed_token, obtained_at_ms, ends_at_ms, lease_until_ms)
        VALUES ($1, $2, $4, $4 + $3, 0)
        ON CONFLICT (account) DO UPDATE
        SET sealed_token = excluded.sealed_token, obtained_at_ms = excluded.obtained_at_ms,
            ends_at_ms = excluded.ends_at_ms, lease_until_ms = 0""",
    ),
)
"""Stores an access token, and ends the lease."""

END_TOKEN_LEASE: Final = query(
    f"""
    UPDATE access_tokens SET lease_until_ms = {SERVER_NOW_MS} + $2::bigint
    WHERE account = $1 AND $3::bigint IS NOT NULL""",
    sqlite=("UPDATE access_tokens SET lease_until_ms = $3 + $2 WHERE account = $1",),
)
"""Stores when another process may lease the fetching of an access token."""

DROP_ACCESS_TOKEN: Final = query(
    "UPDATE access_tokens SET sealed_token = NULL WHERE account = $1 AND sealed_token = $2"
)
"""Forgets an access token, unless another one has replaced it."""
