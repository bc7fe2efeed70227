"""Hashes and compares the passwords of operators, with argon2id, beside the event loop."""

import asyncio
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Final

from argon2 import PasswordHasher
from argon2.exceptions import InvalidHashError, VerificationError

from payrelay.core.access.networks import network_of

PLACES_MAX: Final = 8
"""One is worked on, for some 50 ms, and the others wait; more are told to come again. Each takes 64 MiB and four
threads, so that two at once keep payments waiting."""
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
        self._thread = ThreadPoolExecutor(1, "passwords")
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
        return await asyncio.get_running_loop().run_in_executor(self._thread, self._hasher.hash, password)

    async def fits(self, password_hash: str | None, password: str) -> bool:
        """True where the password is the one of the hash.

        Without a hash it takes as long and is False, so that nobody learns by the time who has an account.
        """
        loop = asyncio.get_running_loop()
        is_right = await loop.run_in_executor(self._thread, self._verified, password_hash, password)
        return is_right and password_hash is not None

    def _verified(self, password_hash: str | None, password: str) -> bool:
        if self._of_nobody is None:
            self._of_nobody = self._hasher.hash(_NOBODYS)
        try:
            return self._hasher.verify(password_hash or self._of_nobody, password)
        except (VerificationError, InvalidHashError):
            return False
