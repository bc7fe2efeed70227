"""The kinds of gateways that there are. Nobody else imports an adapter: to add a provider is to add a line here."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from payrelay.gateways.gateway_kind import GatewayKind
from payrelay.gateways.payhere.account import KIND as PAYHERE
from payrelay.gateways.payhere.kind import PayHereKind

KINDS: Final[Mapping[str, GatewayKind]] = MappingProxyType({PAYHERE: PayHereKind()})
"""By the word that stands in the setting KIND."""
DEFAULT_KIND: Final = PAYHERE
"""Where an account names none."""
