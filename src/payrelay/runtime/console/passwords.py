"""Hashes and compares the passwords of operators, with argon2id, beside the event loop."""

import asyncio
from typing import Final

from argon2 import PasswordHasher
from argon2.exceptions import InvalidHashError, VerificationError

AT_ONCE_MAX: Final = 2
"""Each takes 64 MiB and a core for some 50 ms: those who guess wait for each other, and payments don't."""
_NOBODYS: Final = "a password that nobody has"


class Passwords:
    """Hashes passwords, and compares them.

    ``hasher`` has the costs, which a hash carries with it: argon2-cffi's own, those of RFC 9106.
    """

    def __init__(self, hasher: PasswordHasher | None = None) -> None:
        self._hasher = hasher or PasswordHasher()
        self._places = asyncio.Semaphore(AT_ONCE_MAX)
        self._of_nobody: str | None = None

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
