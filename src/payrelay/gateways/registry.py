"""The kinds of gateways that there are. A new gateway is a new line here: no other module imports an adapter."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from payrelay.gateways.gateway_kind import GatewayKind
from payrelay.gateways.payhere.account import KIND as PAYHERE
from payrelay.gateways.payhere.kind import PayHereKind

KINDS: Final[Mapping[str, GatewayKind]] = MappingProxyType({PAYHERE: PayHereKind()})
"""By the value of an account's setting KIND."""
DEFAULT_KIND: Final = PAYHERE
"""The kind of an account whose settings name none."""
