"""Makes PayHere accounts from their settings."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import TypeAlias

import msgspec
from pydantic import BaseModel

from payrelay.gateways.gateway_kind import AccountIdentity, CommonSettings, GatewayResources
from payrelay.gateways.http.exchange import Network
from payrelay.gateways.payhere.account import BASE_URLS, Account, app_of, merchant_of, token_name_of
from payrelay.gateways.payhere.client import PayHere
from payrelay.gateways.payhere.connections import GatewayConnections
from payrelay.gateways.payhere.settings import DEFAULTS, PayHereSettings
from payrelay.gateways.payhere.wire.checkout_forms import HashAmounts

Connect: TypeAlias = Callable[[Account], Network]
"""Makes the connections of an account."""


class PayHereKind:
    """PayHere as a kind of gateway. ``connect`` makes an account's connections; without it they use the network."""

    def __init__(self, connect: Connect | None = None) -> None:
        self._connect = connect

    @property
    def settings(self) -> type[BaseModel]:
        """Gives the model of the settings that only PayHere has."""
        return PayHereSettings

    @property
    def defaults(self) -> Mapping[str, object]:
        """Gives PayHere's rate limit and time zone."""
        return DEFAULTS

    def identity(self, common: CommonSettings, own: BaseModel) -> AccountIdentity:
        """Gives the names by which the store knows an account."""
        account = account_of(common, own)
        return AccountIdentity(app=app_of(account), merchant=merchant_of(account))

    def open(self, common: CommonSettings, own: BaseModel, resources: GatewayResources) -> PayHere:
        """Makes the client of an account."""
        account = msgspec.structs.replace(account_of(common, own), known_as=resources.merchant)
        connect = self._connect or partial(_connected, resources)
        return PayHere(
            account,
            clock=resources.clock,
            rate_limiter=resources.rate_limiter,
            connections=connect(account),
            token_store=None if resources.token_store is None else resources.token_store(token_name_of(account)),
        )


def _connected(resources: GatewayResources, account: Account) -> GatewayConnections:
    return GatewayConnections(
        account.base_url,
        resources.clock,
        timeout_s=account.timeout_s,
        begin_span=resources.begin_span,
        date_seen=resources.date_seen,
    )


def account_of(common: CommonSettings, own: BaseModel) -> Account:
    """Combines the common settings and PayHere's own to an account."""
    assert isinstance(own, PayHereSettings)  # noqa: S101, the settings of this kind were read by its own model
    return Account(
        name=common.name,
        environment=common.environment,
        base_url=common.base_url or BASE_URLS[common.environment],
        app_id=own.app_id,
        app_secret=own.app_secret,
        merchant_id=own.merchant_id,
        merchant_secret=own.merchant_secret,
        limit=common.limit,
        timeout_s=common.timeout_s,
        queue_s=common.queue_s,
        timezone=common.timezone,
        hash_amounts=HashAmounts(
            preapproval_lkr_minor=own.preapproval_amount_lkr,
            preapproval_other_minor=own.preapproval_amount_other,
            trial_lkr_minor=own.trial_amount_lkr,
            trial_other_minor=own.trial_amount_other,
        ),
        approval_amounts=own.approval_amounts,
        signs_elsewhere=own.signs_elsewhere,
    )
