"""Makes accounts at PayHere of their settings."""

from collections.abc import Callable, Mapping
from typing import TypeAlias

import msgspec
from pydantic import BaseModel

from payrelay.gateways.gateway_kind import AccountIdentity, CommonSettings, GatewayResources
from payrelay.gateways.payhere.account import BASE_URLS, Account, app_of, merchant_of, token_name_of
from payrelay.gateways.payhere.client import PayHere
from payrelay.gateways.payhere.connections import Network
from payrelay.gateways.payhere.settings import DEFAULTS, PayHereSettings
from payrelay.gateways.payhere.wire.forms import HashAmounts

Ways: TypeAlias = Callable[[Account], Network]
"""Gives the way to an account's gateway."""


class PayHereKind:
    """PayHere, as a kind of gateway. ``ways`` lead to the accounts; without them it is the network."""

    def __init__(self, ways: Ways | None = None) -> None:
        self._ways = ways

    @property
    def settings(self) -> type[BaseModel]:
        """Gives the fields that only PayHere has."""
        return PayHereSettings

    @property
    def defaults(self) -> Mapping[str, object]:
        """Gives PayHere's limit and zone."""
        return DEFAULTS

    def identity(self, common: CommonSettings, own: BaseModel) -> AccountIdentity:
        """Tells how the books know an account."""
        account = account_of(common, own)
        return AccountIdentity(app=app_of(account), merchant=merchant_of(account))

    def open(self, common: CommonSettings, own: BaseModel, resources: GatewayResources) -> PayHere:
        """Makes the client of an account."""
        account = msgspec.structs.replace(account_of(common, own), known_as=resources.merchant)
        return PayHere(
            account,
            clock=resources.clock,
            rate_limiter=resources.rate_limiter,
            connections=None if self._ways is None else self._ways(account),
            token_store=None if resources.token_store is None else resources.token_store(token_name_of(account)),
        )


def account_of(common: CommonSettings, own: BaseModel) -> Account:
    """Says the settings of an account in the adapter's words."""
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
    )
