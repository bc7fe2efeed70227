"""Who holds a client token: reads the text, and finds the token and the key that issued it.

What is held against a token, in this order: its form, its signature, its claims, its times, whether it was revoked,
and whether its parent is still good. What is wrong with it is said to those who count, and only in part to its bearer.
"""

from enum import StrEnum
from typing import Final, NamedTuple, Protocol

from payrelay.api.auth.authentication import AuthenticationFailure, Unauthenticated
from payrelay.clock import Clock
from payrelay.core.access.client_token import ClaimsError, ClientToken, Parentage, has_begun, narrowed
from payrelay.core.access.credential import Credential, is_usable
from payrelay.core.access.signatures import BadSignature, SigningKey, is_client_token, key_id_of, verified


class Reason(StrEnum):
    """Why a token is refused, for those who count."""

    FORM = "form"
    """Too long, or not of the form of a token."""
    KEY = "key"
    """Signed with a key that nobody knows, or knows any more."""
    SIGNATURE = "signature"
    CLAIMS = "claims"
    """Signed, and not a token for this."""
    ISSUER = "issuer"
    AUDIENCE = "audience"
    EARLY = "early"
    EXPIRED = "expired"
    REVOKED = "revoked"
    UNKNOWN = "unknown"
    """Signed by us, and not in the store: it ended, or was issued after the backup that this store came from."""
    PARENT = "parent"
    """The key that issued it is revoked or has expired."""


ENDED: Final = frozenset({Reason.EARLY, Reason.EXPIRED, Reason.REVOKED, Reason.UNKNOWN, Reason.PARENT})
"""It was one of ours, or the provider's, and good at some time: whoever has it is no stranger who guesses."""


class TokenRefused(Unauthenticated):
    """The token opens nothing here."""

    def __init__(self, reason: Reason) -> None:
        failure = AuthenticationFailure.ENDED if reason in ENDED else AuthenticationFailure.WRONG
        msg = "the token is expired or revoked" if reason in ENDED else "the token is not known"
        super().__init__(failure, msg, reason=reason)


class KeySource(Protocol):
    """Where the signing keys are kept; ``store.access.signing_keys.SigningKeys``, or one for a test."""

    async def find(self, key_id: str) -> SigningKey | None:
        """Gives the key of that id."""
        ...


class ParentageSource(Protocol):
    """Where issued tokens are kept; ``store.access.client_tokens.ClientTokens``, or one for a test."""

    async def parentage(self, token_id: str) -> Parentage | None:
        """Reads whether a token was revoked, and its parent."""
        ...


class TokenSources(NamedTuple):
    """What client tokens are held against."""

    keys: KeySource
    tokens: ParentageSource


class ClientTokenReader:
    """Lets in who has a client token that counts."""

    def __init__(self, sources: TokenSources, clock: Clock) -> None:
        self._sources = sources
        self._clock = clock

    async def admit(self, text: str) -> Credential:
        """Gives what the token allows now; raises TokenRefused, and StoreUnavailable where nobody can tell."""
        token = await self._read(text)
        now_ms = self._clock.now_ms()
        if not has_begun(token, now_ms):
            raise TokenRefused(Reason.EARLY)
        if token.expires_at_ms <= now_ms:
            raise TokenRefused(Reason.EXPIRED)
        found = await self._sources.tokens.parentage(token.id)
        if found is None:
            raise TokenRefused(Reason.UNKNOWN)
        try:
            credential = narrowed(found.parent, token)
        except ClaimsError:
            raise TokenRefused(Reason.CLAIMS) from None
        if not is_usable(credential, now_ms):
            raise TokenRefused(Reason.PARENT)
        if found.revoked_at_ms is not None:
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
