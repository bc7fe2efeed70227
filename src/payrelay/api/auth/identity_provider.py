"""The reader of an identity provider's tokens: checks a JWT by the provider's keys and the settings."""

from typing import Protocol

from joserfc.jwk import Key

from payrelay.api.auth.client_tokens import Reason, TokenRefused
from payrelay.clock import Clock
from payrelay.core.access.credential import Credential
from payrelay.core.access.identity_provider import IdentityClaimsError, IdentityProvider, bearer_of
from payrelay.core.access.person_names import PersonNames
from payrelay.core.access.signatures import BadSignature, identity_claims, is_identity_token, key_id_of


class IdentityKeySource(Protocol):
    """The identity provider's keys: ``runtime.identity_provider_keys.IdentityProviderKeys``, or a test's."""

    async def find(self, key_id: str) -> Key | None:
        """Gives the key with this id, or None; raises Refusal (unavailable) where no keys could be fetched yet."""


class IdentityTokenReader:
    """Admits bearers of the identity provider's tokens that are meant for this service, under ``names`` of its own."""

    def __init__(
        self, identity_provider: IdentityProvider, keys: IdentityKeySource, names: PersonNames, clock: Clock
    ) -> None:
        self._identity_provider = identity_provider
        self._keys = keys
        self._names = names
        self._clock = clock

    async def admit(self, text: str) -> Credential:
        """Gives the credential of a token; raises TokenRefused, and Refusal (unavailable) while there are no keys."""
        if not is_identity_token(text):
            raise TokenRefused(Reason.FORM)
        key_id = key_id_of(text)
        key = None if key_id is None else await self._keys.find(key_id)
        if key is None:
            raise TokenRefused(Reason.KEY)
        try:
            return bearer_of(identity_claims(text, key), self._identity_provider, self._names, self._clock.now_ms())
        except BadSignature:
            raise TokenRefused(Reason.SIGNATURE) from None
        except IdentityClaimsError as error:
            raise TokenRefused(Reason(error.reason)) from None
