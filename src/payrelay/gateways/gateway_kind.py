"""The interface of a kind of gateway: its settings, the identity of its accounts, and the opening of an account.

This module knows no gateway. The registry lists the kinds, and it alone imports their adapters.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

import msgspec
from pydantic import BaseModel

from payrelay.clock import Clock
from payrelay.core.gateways.rate_limit import RateLimit
from payrelay.gateways.gateway import Gateway
from payrelay.gateways.http.pool import BeginSpan
from payrelay.gateways.pacing.rate_limiter import RateLimiter
from payrelay.gateways.token_store import TokenStore


class CommonSettings(msgspec.Struct, frozen=True, kw_only=True):
    """The settings that an account of every kind has.

    Attributes:
        name: the first segment of the account's paths.
        environment: ``sandbox`` or ``live``.
        base_url: the gateway's address; None for its default address in that environment.
        limit: calls in a window; None for no limit.
        timeout_s: the longest one call may take, with its connection.
        queue_s: the longest wait for a permit.
        timezone: the zone of the gateway's dates.
    """

    name: str
    environment: str
    base_url: str | None
    limit: RateLimit | None
    timeout_s: float
    queue_s: float
    timezone: str


class AccountIdentity(msgspec.Struct, frozen=True, kw_only=True):
    """The names by which the store knows an account; 16 hex digits each, made of the settings alone.

    Attributes:
        app: equal for equal credentials, whatever else of the account is changed.
        merchant: equal for one merchant under every name.
    """

    app: str
    merchant: str


@dataclass(frozen=True, kw_only=True, slots=True)
class GatewayResources:
    """The shared parts that an account is opened with.

    Attributes:
        clock: tells the time.
        merchant: the merchant under which the store has known the account since its first use; None without a store.
        rate_limiter: gives out the permits of the account's budget.
        token_store: gives the store in which processes share an access token, by the token's name. None where they
            share nothing.
        date_seen: gets the Date header of each reply, so that a clock that is wrong is noticed.
        begin_span: records the calls to the gateway; None where nothing is traced.
    """

    clock: Clock
    merchant: str | None
    rate_limiter: RateLimiter
    token_store: Callable[[str], TokenStore] | None
    date_seen: Callable[[str], None] | None = None
    begin_span: BeginSpan | None = None


class GatewayKind(Protocol):
    """One kind of gateway."""

    @property
    def settings(self) -> type[BaseModel]:
        """The settings of this kind beside the common ones; unknown settings are refused."""

    @property
    def defaults(self) -> Mapping[str, object]:
        """This kind's defaults for common settings, written as in the environment."""

    def identity(self, common: CommonSettings, own: BaseModel) -> AccountIdentity:
        """Gives the names by which the store knows an account."""

    def open(self, common: CommonSettings, own: BaseModel, resources: GatewayResources) -> Gateway:
        """Makes the gateway of an account, and calls nothing yet."""
