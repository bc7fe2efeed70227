"""Where processes share the access token of one account; what it is for, only its gateway knows."""

from typing import Protocol


class SharedToken(Protocol):
    """A token as a shelf keeps it: its text, how old it is, and how long it is good for."""

    @property
    def text(self) -> str:
        """What is sent."""
        ...

    @property
    def age_s(self) -> float:
        """Seconds since it was fetched."""
        ...

    @property
    def left_s(self) -> float:
        """Seconds until its end; less than 0 after that."""
        ...


class TokenStore(Protocol):
    """Where processes share a token. All of it raises StoreUnavailable where the shelf can't be reached."""

    async def read(self) -> SharedToken | None:
        """Gives the token that is there."""
        ...

    async def lease(self, for_s: float) -> bool:
        """Gives True to the one process that is to fetch the next token; to another one only after so long."""
        ...

    async def put(self, text: str, left_s: float) -> None:
        """Keeps a token in place of the one before, and ends the lease."""
        ...

    async def give_up(self, for_s: float) -> None:
        """Ends the lease without a token: somebody else may try after so long."""
        ...

    async def drop(self, text: str) -> None:
        """Forgets this token, unless another one has taken its place."""
        ...
