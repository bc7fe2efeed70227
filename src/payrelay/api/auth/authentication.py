"""The authenticator: reads the bearer key or token of a request, and finds its credential.

Rules:

1. A key is compared by its SHA-256 in constant time; the key itself is never kept. Tokens have readers of their own:
   one for client tokens, which begin with ``prt_``, and one for the JWTs of an identity provider, where configured.
2. A cached credential admits for at most CREDENTIAL_CACHED_MS, so that a revocation counts within a second everywhere.
   An older one only names a caller whom the store can't confirm now, for the log and the metrics.
3. Unknown credentials are not cached. However many wrong keys come in, a valid key is admitted.
4. Requests of one credential that must be read share one read, which is not shared beyond the time of rule 2.
"""

import asyncio
import hashlib
import hmac
from enum import StrEnum
from typing import Final, NamedTuple, Protocol

from payrelay.api.http.incoming_request import Headers
from payrelay.clock import Clock
from payrelay.core.access.client_token import PREFIX
from payrelay.core.access.credential import Credential, id_of_key, is_usable
from payrelay.errors import Code, Refusal, StoreError

CREDENTIAL_CACHED_MS: Final = 1000
"""How long a revoked key may still work."""
CREDENTIALS_CACHED_MAX: Final = 10_000
"""Some 1 KiB each. A service has a handful of keys; one with many apps has a few thousand tokens."""

_CHALLENGE: Final = (("WWW-Authenticate", 'Bearer realm="payrelay"'),)
_SCHEME: Final = b"bearer "
_JWT_BEGIN: Final = "eyJ"
"""How a JSON object begins in base64."""


class AuthenticationFailure(StrEnum):
    """Why a caller is not admitted, as the metrics count it."""

    MISSING = "missing"
    """No credential at all."""
    WRONG = "wrong"
    """Not of the form of a key, or not a known one."""
    ENDED = "ended"
    """A known one, expired or revoked: its bearer is not guessing keys."""


class Unauthenticated(Refusal):
    """The caller is not authenticated."""

    def __init__(self, failure: AuthenticationFailure, msg: str, *, reason: str | None = None) -> None:
        super().__init__(Code.UNAUTHENTICATED, msg, headers=_CHALLENGE)
        self.failure = failure
        self.reason = reason
        """Of a token: what was wrong with it, in one word."""


class CredentialSource(Protocol):
    """The stored credentials: ``store.access.credentials.Credentials``, or a test's."""

    async def get(self, credential_id: str) -> Credential | None:
        """Reads one credential, usable or not; raises StoreUnavailable."""


class TokenReader(Protocol):
    """Admits bearers of one kind of token."""

    async def admit(self, text: str) -> Credential:
        """Gives the credential of a token; raises Unauthenticated where the token is not valid."""


class TokenReaders(NamedTuple):
    """The readers of each kind of token; None where the service accepts no such tokens."""

    client_tokens: TokenReader | None = None
    identity_provider: TokenReader | None = None


class Authenticator:
    """Admits callers with a usable key or a valid token."""

    def __init__(self, credentials: CredentialSource, clock: Clock, readers: TokenReaders | None = None) -> None:
        self._credentials = credentials
        self._clock = clock
        self._readers = readers or TokenReaders()
        self._cache: dict[bytes, tuple[Credential, float]] = {}
        self._reads: dict[bytes, asyncio.Future[StoreError | None]] = {}

    async def admit(self, headers: Headers) -> Credential:
        """Gives the credential in the Authorization header.

        Raises Unauthenticated where the header has no valid one, StoreUnavailable where the store can't be read.
        """
        authorization = headers.get(b"authorization")
        if authorization is None:
            raise Unauthenticated(
                AuthenticationFailure.MISSING, "an Authorization header with a bearer key is required"
            )
        if headers.is_doubled(b"authorization"):
            raise Unauthenticated(AuthenticationFailure.WRONG, "there is more than one Authorization header")
        if authorization[:7].lower() != _SCHEME:
            raise Unauthenticated(
                AuthenticationFailure.WRONG, "the Authorization header must be of the form: Bearer prk_…"
            )
        key = authorization[7:].strip()
        key_hash = hashlib.sha256(key).digest()
        credential = self._cached(key_hash)
        if credential is None:
            credential = await self._read_once(key, key_hash)
        if not is_usable(credential, self._clock.now_ms()):
            noun, reason = ("key", None) if credential.bound is None else ("token", "expired")
            raise Unauthenticated(AuthenticationFailure.ENDED, f"the {noun} is expired or revoked", reason=reason)
        return credential

    def _cached(self, key_hash: bytes) -> Credential | None:
        entry = self._cache.get(key_hash)
        if entry is None:
            return None
        credential, read_at_s = entry
        return credential if (self._clock.boot_s() - read_at_s) * 1000 < CREDENTIAL_CACHED_MS else None

    def last_seen(self, headers: Headers) -> Credential | None:
        """Gives the credential in the Authorization header as it was last read, however long ago; admits nobody."""
        authorization = headers.get(b"authorization") or b""
        entry = self._cache.get(hashlib.sha256(authorization[7:].strip()).digest())
        return None if entry is None else entry[0]

    async def _read_once(self, key: bytes, key_hash: bytes) -> Credential:
        """Reads a credential, or waits for another request's read of it."""
        under_way = self._reads.get(key_hash)
        if under_way is not None:
            await asyncio.wait({under_way})
            if (error := under_way.result()) is not None:
                raise error
            # That it is unknown is not shared, nor is what was read too long ago, or for a request that went away.
            return self._cached(key_hash) or await self._read(key, key_hash)
        self._reads[key_hash] = read = asyncio.get_running_loop().create_future()
        failed = None
        try:
            return await self._read(key, key_hash)
        except StoreError as error:
            failed = error
            raise
        finally:
            del self._reads[key_hash]
            read.set_result(failed)

    async def _read(self, key: bytes, key_hash: bytes) -> Credential:
        read_at_s = self._clock.boot_s()
        try:
            credential = await self._found(key.decode("latin-1"), key_hash)
        except Refusal:
            self._cache.pop(key_hash, None)
            raise
        self._cache.pop(key_hash, None)
        if len(self._cache) >= CREDENTIALS_CACHED_MAX:
            # The first entry is the oldest: an entry that is read again goes to the end.
            del self._cache[next(iter(self._cache))]
        self._cache[key_hash] = (credential, read_at_s)
        return credential

    async def _found(self, text: str, key_hash: bytes) -> Credential:
        credential_id = id_of_key(text)
        credential = None
        if credential_id is not None:
            credential = await self._credentials.get(credential_id)
        elif text.startswith(PREFIX) and self._readers.client_tokens is not None:
            return await self._readers.client_tokens.admit(text)
        elif text.startswith(_JWT_BEGIN) and self._readers.identity_provider is not None:
            return await self._readers.identity_provider.admit(text)
        if credential is None or not hmac.compare_digest(credential.key_hash, key_hash):
            raise Unauthenticated(AuthenticationFailure.WRONG, "the key is not known")
        return credential
