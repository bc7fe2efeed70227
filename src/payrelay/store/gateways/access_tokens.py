"""The access token of a gateway account that all processes share, sealed, with the lease to fetch the next one."""

from typing import Final

from payrelay.clock import Clock
from payrelay.core.gateways.shared_token import SharedToken
from payrelay.errors import StoreUnusable
from payrelay.store.engine.database import Database, Row, Statement, first_row
from payrelay.store.engine.sealing import Seal
from payrelay.store.gateways.steady_time import steady_ms
from payrelay.store.statements.gateways import access_tokens as statements

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
        leased = Statement(statements.LEASE_ACCESS_TOKEN, parameters, is_whole=True)
        return await self._database.write(first_row(leased)) is not None

    async def put(self, text: str, left_s: float) -> None:
        """Stores a token in place of the one before, and ends the lease. Raises StoreUnavailable."""
        sealed = self._seal.seal(text.encode(), self._context)
        parameters = (self._account, sealed, _ms(left_s), self._now_ms())
        await self._database.write(first_row(Statement(statements.PUT_ACCESS_TOKEN, parameters, is_whole=True)))

    async def give_up(self, for_s: float) -> None:
        """Ends the lease without a token; others may lease after ``for_s`` seconds. Raises StoreUnavailable."""
        parameters = (self._account, _ms(for_s), self._now_ms())
        await self._database.write(first_row(Statement(statements.END_TOKEN_LEASE, parameters, is_whole=True)))

    async def drop(self, text: str) -> None:
        """Forgets a token that the gateway called invalid, unless another one replaced it. Raises StoreUnavailable."""
        row = await self._database.read(first_row(self._find()))
        if row is not None and self._opened(row) == text:
            parameters = (self._account, row[0])
            await self._database.write(first_row(Statement(statements.DROP_ACCESS_TOKEN, parameters, is_whole=True)))

    def _find(self) -> Statement:
        return Statement(statements.FIND_ACCESS_TOKEN, (self._account, self._now_ms()))

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
