"""Chance that can be repeated: identifiers and decisions drawn from a seed."""

import hashlib
import uuid
from collections import Counter

FRACTION_BYTES = 7  # 56 bits: as fine as a float can tell apart, with room to spare


class Numbers:
    """Counts up, and can be kept in a file as it stands."""

    def __init__(self, first: int = 0) -> None:
        self._next = first

    def __next__(self) -> int:
        self._next += 1
        return self._next - 1


class Draws:
    """Gives the same sequence for the same seed, one sequence per purpose, so that one does not disturb another."""

    def __init__(self, seed: int) -> None:
        self._seed = seed
        self._drawn: Counter[str] = Counter()

    def _digest(self, purpose: str) -> bytes:
        self._drawn[purpose] += 1
        return hashlib.sha256(f"{self._seed}:{purpose}:{self._drawn[purpose]}".encode()).digest()

    def uuid(self, purpose: str) -> str:
        """Return a lower-case UUID of version 4."""
        return str(uuid.UUID(bytes=self._digest(purpose)[:16], version=4))

    def token(self, purpose: str) -> str:
        """Return 32 upper-case hexadecimal digits, the form of a customer token."""
        return self._digest(purpose)[:16].hex().upper()

    def fraction(self, purpose: str) -> float:
        """Return a number from 0 up to, and without, 1."""
        return int.from_bytes(self._digest(purpose)[:FRACTION_BYTES]) / (1 << 8 * FRACTION_BYTES)
