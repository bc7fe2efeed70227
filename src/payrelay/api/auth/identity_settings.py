"""Makes the reader of an identity provider's tokens from the settings."""

from collections.abc import Callable
from contextlib import AsyncExitStack
from importlib import import_module
from typing import Final, Protocol, TypeAlias

from structlog.typing import FilteringBoundLogger

from payrelay.api.auth.identity_provider import IdentityKeySource, IdentityTokenReader
from payrelay.clock import Clock
from payrelay.core.access.identity_provider import IdentityProvider
from payrelay.core.access.person_names import PersonNames
from payrelay.settings import IdentitySettings

KEYS: Final = "payrelay.runtime.identity_provider_keys"
"""Loaded by its name, and only where an identity provider is set: its HTTP client takes 11 MB."""


class _Keys(IdentityKeySource, Protocol):
    """Keys that are fetched and cached."""

    async def close(self) -> None:
        """Ends a fetch that is under way."""


_KeysAt: TypeAlias = Callable[[str, Clock, FilteringBoundLogger], _Keys]


def identity_token_reader(
    stack: AsyncExitStack,
    identity: IdentitySettings | None,
    names: PersonNames,
    clock: Clock,
    log: FilteringBoundLogger,
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
    keys_at: _KeysAt = import_module(KEYS).keys_at
    keys = keys_at(identity.jwks_url, clock, log)
    stack.push_async_callback(keys.close)
    return IdentityTokenReader(identity_provider, keys, names, clock)
