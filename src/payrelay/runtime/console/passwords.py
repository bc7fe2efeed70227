"""Hashes and compares the passwords of operators, with argon2id, beside the event loop."""

import asyncio
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from argon2 import PasswordHasher
from argon2.exceptions import InvalidHashError, VerificationError

from payrelay.core.access.networks import network_of

AT_ONCE_MAX: Final = 2
"""Each takes 64 MiB and a core for some 50 ms: those who guess wait for each other, and payments don't."""
PLACES_MAX: Final = 8
"""Those who are worked on, and those who wait: the last one waits for some 200 ms. More are told to come again."""
OF_A_NETWORK_MAX: Final = 4
"""Places that one address of the network can have at once, so that it leaves some to others."""
_NOBODYS: Final = "a password that nobody has"


class NoPlace(Exception):
    """As many passwords as may wait are waiting."""


class Passwords:
    """Hashes passwords, and compares them, for those who have a place.

    ``hasher`` has the costs, which a hash carries with it: argon2-cffi's own, those of RFC 9106.
    """

    def __init__(self, hasher: PasswordHasher | None = None) -> None:
        self._hasher = hasher or PasswordHasher()
        self._places = asyncio.Semaphore(AT_ONCE_MAX)
        self._of_nobody: str | None = None
        self._taken: Counter[str] = Counter()

    @contextmanager
    def place(self, address: str) -> Iterator[None]:
        """Takes a place for a sign-in from an address, until it ends; raises NoPlace, at once, where there is none."""
        network = network_of(address)
        if self._taken.total() >= PLACES_MAX or self._taken[network] >= OF_A_NETWORK_MAX:
            raise NoPlace
        self._taken[network] += 1
        try:
            yield
        finally:
            self._taken -= Counter((network,))

    async def hash(self, password: str) -> str:
        """Returns the hash of a password, as the store keeps it."""
        async with self._places:
            return await asyncio.to_thread(self._hasher.hash, password)

    async def fits(self, password_hash: str | None, password: str) -> bool:
        """True where the password is the one of the hash.

        Without a hash it takes as long and is False, so that nobody learns by the time who has an account.
        """
        async with self._places:
            if self._of_nobody is None:
                self._of_nobody = await asyncio.to_thread(self._hasher.hash, _NOBODYS)
            is_right = await asyncio.to_thread(self._verified, password_hash or self._of_nobody, password)
        return is_right and password_hash is not None

    def _verified(self, password_hash: str, password: str) -> bool:
        try:
            return self._hasher.verify(password_hash, password)
        except (VerificationError, InvalidHashError):
            return False
