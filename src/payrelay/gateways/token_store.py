"""The store in which processes share one account's access token. Only the account's gateway knows the token's use."""

from typing import Protocol

from payrelay.core.gateways.shared_token import SharedToken


class TokenStore(Protocol):
    """Shares one access token between processes. Each method raises StoreUnavailable where it can't reach the store."""

    async def read(self) -> SharedToken | None:
        """Gives the stored token; None where there is none."""

    async def lease(self, for_s: float) -> bool:
        """Leases the fetching of the next token for ``for_s`` seconds; False where another process has the lease."""

    async def put(self, text: str, left_s: float) -> None:
        """Stores a token in place of the one before, and ends the lease."""

    async def give_up(self, for_s: float) -> None:
        """Ends the lease without a token. Another process may lease after ``for_s`` seconds."""

    async def drop(self, text: str) -> None:
        """Forgets this token, unless another one has replaced it."""
