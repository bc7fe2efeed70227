"""Who is calling: reads the bearer key and finds its credential.

Rules:

1. A key is compared by its SHA-256 in constant time; the key itself is never kept.
2. A credential is remembered for at most CREDENTIAL_KEPT_MS, so that a revocation counts within a second everywhere.
3. What is unknown is not remembered, and however many wrong keys come in, a right one is let in.
"""

import hashlib
import hmac
from enum import StrEnum
from typing import Final, Protocol

from payrelay.api.arrival import Headers
from payrelay.clock import Clock
from payrelay.core.credentials import Credential, id_of_key, is_usable
from payrelay.errors import Code, Refusal

CREDENTIAL_KEPT_MS: Final = 1000
"""How long a revoked key may still work."""
CREDENTIALS_KEPT_MAX: Final = 10_000
"""Some 1 KiB each; a service has a handful of keys, one with many phones a few thousand."""

_CHALLENGE: Final = (("WWW-Authenticate", 'Bearer realm="payrelay"'),)
_SCHEME: Final = b"bearer "


class Failure(StrEnum):
    """Why somebody is not let in, for those who count."""

    MISSING = "missing"
    """No credential at all."""
    WRONG = "wrong"
    """Not of the form of a key, or not one of ours."""
    ENDED = "ended"
    """One of ours, expired or revoked: whoever has it is no stranger who guesses."""


class Unauthenticated(Refusal):
    """Nobody whom we know."""

    def __init__(self, failure: Failure, msg: str) -> None:
        super().__init__(Code.UNAUTHENTICATED, msg, headers=_CHALLENGE)
        self.failure = failure


class CredentialSource(Protocol):
    """Where credentials are kept; the store's, or one that counts its calls."""

    async def get(self, credential_id: str) -> Credential | None:
        """Reads one credential, usable or not."""
        ...


class Doorkeeper:
    """Lets in who has a usable key."""

    def __init__(self, credentials: CredentialSource, clock: Clock) -> None:
        self._credentials = credentials
        self._clock = clock
        self._kept: dict[bytes, tuple[Credential, float]] = {}

    async def admit(self, headers: Headers) -> Credential:
        """Gives the credential behind the Authorization header; raises Unauthenticated where there is none.

        Raises StoreUnavailable where the store can't be asked.
        """
        authorization = headers.get(b"authorization")
        if authorization is None:
            raise Unauthenticated(Failure.MISSING, "an Authorization header with a bearer key is required")
        if headers.is_doubled(b"authorization"):
            raise Unauthenticated(Failure.WRONG, "there is more than one Authorization header")
        if authorization[:7].lower() != _SCHEME:
            raise Unauthenticated(Failure.WRONG, "the Authorization header must be of the form: Bearer prk_…")
        key = authorization[7:].strip()
        key_hash = hashlib.sha256(key).digest()
        credential = self._remembered(key_hash)
        if credential is None:
            credential = await self._looked_up(key, key_hash)
        if not is_usable(credential, self._clock.now_ms()):
            raise Unauthenticated(Failure.ENDED, "the key is expired or revoked")
        return credential

    def _remembered(self, key_hash: bytes) -> Credential | None:
        entry = self._kept.get(key_hash)
        if entry is None:
            return None
        credential, read_at_s = entry
        if (self._clock.boot_s() - read_at_s) * 1000 < CREDENTIAL_KEPT_MS:
            return credential
        del self._kept[key_hash]
        return None

    async def _looked_up(self, key: bytes, key_hash: bytes) -> Credential:
        read_at_s = self._clock.boot_s()
        credential_id = id_of_key(key.decode("latin-1"))
        credential = None if credential_id is None else await self._credentials.get(credential_id)
        if credential is None or not hmac.compare_digest(credential.key_hash, key_hash):
            raise Unauthenticated(Failure.WRONG, "the key is not known")
        if len(self._kept) >= CREDENTIALS_KEPT_MAX:
            # The first one in is the oldest: an entry is never moved, only taken out when its second is over.
            del self._kept[next(iter(self._kept))]
        self._kept[key_hash] = (credential, read_at_s)
        return credential
