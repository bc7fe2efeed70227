"""Which story finds out what became of an effect: it follows from what the gateway can do."""

from collections.abc import Awaitable, Callable, Mapping
from types import MappingProxyType
from typing import Final, TypeAlias

from payrelay.core.gateways.capabilities import Way, way_of
from payrelay.core.payments.operation import Kind
from payrelay.flows.resolution.case import Case
from payrelay.flows.resolution.resend_cancel import settle_cancel
from payrelay.flows.resolution.resend_capture import settle_capture
from payrelay.flows.resolution.resend_under_key import is_key_kept, settle_under_key
from payrelay.flows.resolution.search_payments import (
    settle_charge,
    settle_hold_unseen,
    settle_refund,
    settle_retry,
    settle_unseen,
)

_Story: TypeAlias = Callable[[Case], Awaitable[None]]
_SEARCHES: Final[Mapping[Kind, _Story]] = MappingProxyType(
    {
        Kind.CHARGE: settle_charge,
        Kind.AUTHORIZATION: settle_charge,
        Kind.REFUND: settle_refund,
        Kind.RETRY: settle_retry,
    }
)
_SENDINGS: Final[Mapping[Kind, _Story]] = MappingProxyType({Kind.CAPTURE: settle_capture, Kind.CANCEL: settle_cancel})
_OTHERWISE: Final[Mapping[Way, _Story]] = MappingProxyType(
    {Way.SEND_UNDER_KEY: settle_under_key, Way.WAIT: settle_hold_unseen, Way.NONE: settle_unseen}
)


def story_of(kind: Kind, way: Way) -> _Story:
    """Gives the story that finds out what became of an effect in this way."""
    if way is Way.SEARCH:
        return _SEARCHES[kind]
    # An adapter that says of another effect that it is done only once has no story here yet: it is for a person.
    return _SENDINGS.get(kind, settle_unseen) if way is Way.SEND_AGAIN else _OTHERWISE[way]


async def settle_case(case: Case) -> None:
    """Looks once for what became of a case, in the way that its gateway allows."""
    way = way_of(case.operation.kind, case.account.capabilities, is_key_kept=is_key_kept(case))
    await story_of(case.operation.kind, way)(case)
