"""The reader of client tokens: checks a token's text, and finds the token and the key that issued it.

The checks, in this order: form, signature, claims, times, whether the issuing key is still usable, and whether the
token was revoked. The metrics count the reason of a refusal; the bearer learns only a part of it.
"""

from enum import StrEnum
from typing import Final, NamedTuple, Protocol

from payrelay.api.auth.authentication import AuthenticationFailure, Unauthenticated
from payrelay.clock import Clock
from payrelay.core.access.client_token import ClaimsError, ClientToken, Parentage, has_begun, narrowed
from payrelay.core.access.credential import Credential, is_usable
from payrelay.core.access.signatures import BadSignature, SigningKey, is_client_token, key_id_of, verified


class Reason(StrEnum):
    """Why a token is refused, as the metrics count it."""

    FORM = "form"
    """Too long, or not of the form of a token."""
    KEY = "key"
    """Signed with a key that is not known, or not known any more."""
    SIGNATURE = "signature"
    CLAIMS = "claims"
    """Its signature is valid, but it is no token for this service."""
    ISSUER = "issuer"
    AUDIENCE = "audience"
    EARLY = "early"
    EXPIRED = "expired"
    REVOKED = "revoked"
    UNKNOWN = "unknown"
    """Signed by this service, but not stored: it ended, or was issued after the backup that the store came from."""
    PARENT = "parent"
    """The key that issued it is revoked or has expired."""


ENDED: Final = frozenset({Reason.EARLY, Reason.EXPIRED, Reason.REVOKED, Reason.UNKNOWN, Reason.PARENT})
"""The reasons of tokens that were valid once, or will be: their bearers are not guessing."""


class TokenRefused(Unauthenticated):
    """The token is not valid here."""

    def __init__(self, reason: Reason) -> None:
        failure = AuthenticationFailure.ENDED if reason in ENDED else AuthenticationFailure.WRONG
        msg = "the token is expired or revoked" if reason in ENDED else "the token is not known"
        super().__init__(failure, msg, reason=reason)


class KeySource(Protocol):
    """The stored signing keys: ``store.access.signing_keys.SigningKeys``, or a test's."""

    async def find(self, key_id: str) -> SigningKey | None:
        """Gives the key with this id, or None."""


class ParentageSource(Protocol):
    """The issued tokens: ``store.access.client_tokens.ClientTokens``, or a test's."""

    async def parentage(self, token_id: str) -> Parentage | None:
        """Reads whether a token was revoked, and its parent."""


class TokenSources(NamedTuple):
    """The stored keys and tokens that client tokens are checked against."""

    keys: KeySource
    tokens: ParentageSource


class ClientTokenReader:
    """Admits bearers of valid client tokens."""

    def __init__(self, sources: TokenSources, clock: Clock) -> None:
        self._sources = sources
        self._clock = clock

    async def admit(self, text: str) -> Credential:
        """Gives the credential of a token; raises TokenRefused, and StoreUnavailable where the store can't be read."""
        token = await self._read(text)
        now_ms = self._clock.now_ms()
        if not has_begun(token, now_ms):
            raise TokenRefused(Reason.EARLY)
        if token.expires_at_ms <= now_ms:
            raise TokenRefused(Reason.EXPIRED)
        parentage = await self._sources.tokens.parentage(token.id)
        if parentage is None:
            raise TokenRefused(Reason.UNKNOWN)
        try:
            credential = narrowed(parentage.parent, token)
        except ClaimsError:
            raise TokenRefused(Reason.CLAIMS) from None
        if not is_usable(credential, now_ms):
            raise TokenRefused(Reason.PARENT)
        if parentage.revoked_at_ms is not None:
            raise TokenRefused(Reason.REVOKED)
        return credential

    async def _read(self, text: str) -> ClientToken:
        if not is_client_token(text):
            raise TokenRefused(Reason.FORM)
        key_id = key_id_of(text)
        key = None if key_id is None else await self._sources.keys.find(key_id)
        if key is None:
            raise TokenRefused(Reason.KEY)
        try:
            return verified(text, key)
        except BadSignature:
            raise TokenRefused(Reason.SIGNATURE) from None
        except ClaimsError:
            raise TokenRefused(Reason.CLAIMS) from None
