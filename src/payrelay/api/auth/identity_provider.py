"""Who holds a token of the configured identity provider: reads the JWT with the provider's keys and our settings."""

from typing import Protocol

from joserfc.jwk import Key

from payrelay.api.auth.client_tokens import Reason, TokenRefused
from payrelay.clock import Clock
from payrelay.core.access.credential import Credential
from payrelay.core.access.identity_provider import IdentityClaimsError, IdentityProvider, bearer_of
from payrelay.core.access.signatures import BadSignature, identity_claims, is_identity_token, key_id_of


class IdentityKeySource(Protocol):
    """Gives the identity provider's keys: ``runtime.identity_provider_keys.IdentityProviderKeys``, or a test's."""

    async def find(self, key_id: str) -> Key | None:
        """Gives the key of that id; raises Refusal (unavailable) where none could be fetched yet."""
        ...


class IdentityTokenReader:
    """Lets in who has a token of the provider's that is meant for us."""

    def __init__(self, identity_provider: IdentityProvider, keys: IdentityKeySource, clock: Clock) -> None:
        self._provider = identity_provider
        self._keys = keys
        self._clock = clock

    async def admit(self, text: str) -> Credential:
        """Gives what the token allows; raises TokenRefused, and Refusal (unavailable) where nobody can tell."""
        if not is_identity_token(text):
            raise TokenRefused(Reason.FORM)
        key_id = key_id_of(text)
        key = None if key_id is None else await self._keys.find(key_id)
        if key is None:
            raise TokenRefused(Reason.KEY)
        try:
            return bearer_of(identity_claims(text, key), self._provider, self._clock.now_ms())
        except BadSignature:
            raise TokenRefused(Reason.SIGNATURE) from None
        except IdentityClaimsError as error:
            raise TokenRefused(Reason(error.reason)) from None
