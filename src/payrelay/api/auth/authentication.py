"""Who is calling: reads the bearer key or token and finds its credential.

Rules:

1. A key is compared by its SHA-256 in constant time; the key itself is never kept. Tokens have doors of their own:
   client tokens, which begin with ``prt_``, and the JWTs of an identity provider, where one is configured.
2. A credential is remembered for at most CREDENTIAL_KEPT_MS, so that a revocation counts within a second everywhere.
3. What is unknown is not remembered, and however many wrong keys come in, a right one is let in.
"""

import hashlib
import hmac
from enum import StrEnum
from typing import Final, NamedTuple, Protocol

from payrelay.api.http.incoming_request import Headers
from payrelay.clock import Clock
from payrelay.core.access.client_token import PREFIX
from payrelay.core.access.credential import Credential, id_of_key, is_usable
from payrelay.errors import Code, Refusal

CREDENTIAL_KEPT_MS: Final = 1000
"""How long a revoked key may still work."""
CREDENTIALS_KEPT_MAX: Final = 10_000
"""Some 1 KiB each; a service has a handful of keys, one with many phones a few thousand."""

_CHALLENGE: Final = (("WWW-Authenticate", 'Bearer realm="payrelay"'),)
_SCHEME: Final = b"bearer "
_JWT_BEGIN: Final = "eyJ"
"""How a JSON object begins in base64."""


class AuthenticationFailure(StrEnum):
    """Why somebody is not let in, for those who count."""

    MISSING = "missing"
    """No credential at all."""
    WRONG = "wrong"
    """Not of the form of a key, or not one of ours."""
    ENDED = "ended"
    """One of ours, expired or revoked: whoever has it is no stranger who guesses."""


class Unauthenticated(Refusal):
    """Nobody whom we know."""

    def __init__(self, failure: AuthenticationFailure, msg: str, *, reason: str | None = None) -> None:
        super().__init__(Code.UNAUTHENTICATED, msg, headers=_CHALLENGE)
        self.failure = failure
        self.reason = reason
        """Of a token: what exactly was wrong with it, in one word."""


class CredentialSource(Protocol):
    """Where credentials are kept; the store's, or one that counts its calls."""

    async def get(self, credential_id: str) -> Credential | None:
        """Reads one credential, usable or not."""
        ...


class TokenReader(Protocol):
    """Lets in who has a token of one kind."""

    async def admit(self, text: str) -> Credential:
        """Gives what the token allows; raises Unauthenticated where it allows nothing."""
        ...


class TokenReaders(NamedTuple):
    """The doors for tokens; None where there are no such tokens here."""

    client_tokens: TokenReader | None = None
    identity_provider: TokenReader | None = None


class Authenticator:
    """Lets in who has a usable key, or a token that counts."""

    def __init__(self, credentials: CredentialSource, clock: Clock, readers: TokenReaders | None = None) -> None:
        self._credentials = credentials
        self._clock = clock
        self._readers = readers or TokenReaders()
        self._kept: dict[bytes, tuple[Credential, float]] = {}

    async def admit(self, headers: Headers) -> Credential:
        """Gives the credential behind the Authorization header; raises Unauthenticated where there is none.

        Raises StoreUnavailable where the store can't be asked.
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
        credential = self._remembered(key_hash)
        if credential is None:
            credential = await self._looked_up(key, key_hash)
        if not is_usable(credential, self._clock.now_ms()):
            noun, reason = ("key", None) if credential.bound is None else ("token", "expired")
            raise Unauthenticated(AuthenticationFailure.ENDED, f"the {noun} is expired or revoked", reason=reason)
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
        credential = await self._found(key.decode("latin-1"), key_hash)
        if len(self._kept) >= CREDENTIALS_KEPT_MAX:
            # The first one in is the oldest: an entry is never moved, only taken out when its second is over.
            del self._kept[next(iter(self._kept))]
        self._kept[key_hash] = (credential, read_at_s)
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
