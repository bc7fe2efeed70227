"""What a kind of gateway brings along: its own settings, how the books know its accounts, and how one is opened.

Knows no provider. Which kinds there are stands in the registry, which alone imports their adapters.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

import msgspec
from pydantic import BaseModel

from payrelay.clock import Clock
from payrelay.core.gateways.rate_limit import RateLimit
from payrelay.gateways.gateway import Gateway
from payrelay.gateways.pacing.rate_limiter import RateLimiter
from payrelay.gateways.token_store import TokenStore


class CommonSettings(msgspec.Struct, frozen=True, kw_only=True):
    """What the settings say of an account of every kind.

    Attributes:
        name: as it stands in our paths.
        environment: ``sandbox`` or ``live``.
        base_url: where the gateway is; None for its own address in that environment.
        limit: calls in a window; None for no limit.
        timeout_s: the longest one call may take, connection and all.
        queue_s: the longest wait for a place in the budget.
        timezone: of the gateway's dates.
    """

    name: str
    environment: str
    base_url: str | None
    limit: RateLimit | None
    timeout_s: float
    queue_s: float
    timezone: str


class AccountIdentity(msgspec.Struct, frozen=True, kw_only=True):
    """How the books know an account; 16 hex digits each, made of the settings alone.

    Attributes:
        app: the same for the same credentials, whatever else of the account is changed.
        merchant: the same for the same merchant, under every name.
    """

    app: str
    merchant: str


@dataclass(frozen=True, kw_only=True, slots=True)
class GatewayResources:
    """What an account is opened with.

    Attributes:
        clock: tells the time.
        merchant: what the books have had the account's merchant as since it was first used; None where there are none.
        rate_limiter: gives out the places in its budget.
        token_store: gives the store in which processes share an access token, by the token's name. None where they
            share nothing.
    """

    clock: Clock
    merchant: str | None
    rate_limiter: RateLimiter
    token_store: Callable[[str], TokenStore] | None


class GatewayKind(Protocol):
    """One kind of gateway."""

    @property
    def settings(self) -> type[BaseModel]:
        """The settings that an account of this kind has beside everybody's; unknown ones are refused with all."""
        ...

    @property
    def defaults(self) -> Mapping[str, object]:
        """What of everybody's settings this kind has a default for; written as in the environment."""
        ...

    def identity(self, common: CommonSettings, own: BaseModel) -> AccountIdentity:
        """Tells how the books know an account."""
        ...

    def open(self, common: CommonSettings, own: BaseModel, resources: GatewayResources) -> Gateway:
        """Makes the account's gateway; nothing is called yet."""
        ...
