"""Keyed digests: values that nobody can compute or check without the store's secret.

Rules:

1. Each purpose has a key of its own. So a digest that was made for one purpose is worth nothing for another.
2. Values are packed with their types and lengths before they are hashed. So no two lists of values have equal bytes.
3. The secret is the one of the audit chain (``store.meta.chain_key``), which no rotation of the encryption key changes.
   So a stored digest stays valid for good.
"""

import hashlib
import hmac
from typing import Final, TypeAlias

import msgspec

Value: TypeAlias = str | int | bytes | None

_KEY_OF: Final = b"payrelay digest\0"
_BLOCK_BYTES: Final = 64
_INNER: Final = bytes(byte ^ 0x36 for byte in range(256))
_OUTER: Final = bytes(byte ^ 0x5C for byte in range(256))
_pack = msgspec.msgpack.Encoder().encode


class DigestKey:
    """Makes and compares the keyed digests of one purpose, such as ``signed text``."""

    def __init__(self, secret: bytes, purpose: str) -> None:
        block = hmac.digest(secret, _KEY_OF + purpose.encode(), "sha256").ljust(_BLOCK_BYTES, b"\0")
        # HMAC-SHA256 with its state behind the key kept, which halves the cost of a digest.
        self._inner = hashlib.sha256(block.translate(_INNER))
        self._outer = hashlib.sha256(block.translate(_OUTER))

    def __repr__(self) -> str:
        return "DigestKey()"

    def digest(self, *values: Value) -> str:
        """Gives the HMAC-SHA256 of the values as 64 hex digits; their order and their types count."""
        inner, outer = self._inner.copy(), self._outer.copy()
        inner.update(_pack(values))
        outer.update(inner.digest())
        return outer.hexdigest()

    def fits(self, digest: str | None, *values: Value) -> bool:
        """True where a digest is that of the values, compared in constant time; a missing digest fits nothing."""
        return digest is not None and hmac.compare_digest(digest.encode(), self.digest(*values).encode())
