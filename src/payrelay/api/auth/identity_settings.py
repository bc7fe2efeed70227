"""Makes the reader of an identity provider's tokens from the settings."""

from contextlib import AsyncExitStack

from structlog.typing import FilteringBoundLogger

from payrelay.api.auth.identity_provider import IdentityTokenReader
from payrelay.clock import Clock
from payrelay.core.access.identity_provider import IdentityProvider
from payrelay.runtime.identity_provider_keys import IdentityProviderKeys, Jwks
from payrelay.settings import IdentitySettings


def identity_token_reader(
    stack: AsyncExitStack, identity: IdentitySettings | None, clock: Clock, log: FilteringBoundLogger
) -> IdentityTokenReader | None:
    """Returns the reader of an identity provider's tokens, closed with the stack; None where none is configured."""
    if identity is None:
        return None
    identity_provider = IdentityProvider(
        issuer=identity.issuer,
        audience=identity.audience,
        customer_claim=identity.customer_claim,
        claim_is=identity.customer_claim_is,
        order_claim=identity.order_claim,
        amount_claim=identity.amount_claim,
        currency_claim=identity.currency_claim,
        principal=identity.principal,
        scopes=identity.scopes,
        accounts=identity.accounts or None,
    )
    keys = IdentityProviderKeys(Jwks(identity.jwks_url), clock, log)
    stack.push_async_callback(keys.close)
    return IdentityTokenReader(identity_provider, keys, clock)
