"""The kinds of gateways that there are. A new gateway is a new line here: no other module imports an adapter."""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final

from pydantic import BaseModel

from payrelay.clock import Clock
from payrelay.gateways.gateway_kind import CommonSettings, GatewayKind
from payrelay.gateways.payhere.account import KIND as PAYHERE
from payrelay.gateways.payhere.kind import PayHereKind, account_of
from payrelay.gateways.payhere.trial.trial import PayHereTrial
from payrelay.gateways.sandbox_trial import SandboxTrial

KINDS: Final[Mapping[str, GatewayKind]] = MappingProxyType({PAYHERE: PayHereKind()})
"""By the value of an account's setting KIND."""
TRIALS: Final[Mapping[str, Callable[[CommonSettings, BaseModel, Clock, float], SandboxTrial]]] = MappingProxyType(
    {PAYHERE: lambda common, own, clock, pace: PayHereTrial(account_of(common, own), clock, pace=pace)}
)
"""What makes the trial of an account at a gateway's sandbox, for the kinds that have one. The number multiplies the
pauses between its calls."""
DEFAULT_KIND: Final = PAYHERE
"""The kind of an account whose settings name none."""
