"""Which function resolves an operation: that follows from its kind, and from what the gateway can do."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Final, TypeAlias

from payrelay.core.gateways.capabilities import ResolutionWay, resolution_way_of
from payrelay.core.payments.operation import Kind
from payrelay.flows.resolution.case import Case
from payrelay.flows.resolution.resend_cancel import resolve_cancel
from payrelay.flows.resolution.resend_capture import resolve_capture
from payrelay.flows.resolution.resend_under_key import is_key_kept, resolve_under_key
from payrelay.flows.resolution.search_payments import (
    resolve_charge,
    resolve_refund,
    resolve_retry,
    resolve_unseen,
    resolve_unseen_authorization,
)

_Resolver: TypeAlias = Callable[[Case], Awaitable[None]]
_SEARCHES: Final[Mapping[Kind, _Resolver]] = {
    Kind.CHARGE: resolve_charge,
    Kind.AUTHORIZATION: resolve_charge,
    Kind.REFUND: resolve_refund,
    Kind.RETRY: resolve_retry,
}
_RESENDINGS: Final[Mapping[Kind, _Resolver]] = {Kind.CAPTURE: resolve_capture, Kind.CANCEL: resolve_cancel}
_OTHERWISE: Final[Mapping[ResolutionWay, _Resolver]] = {
    ResolutionWay.SEND_UNDER_KEY: resolve_under_key,
    ResolutionWay.WAIT: resolve_unseen_authorization,
    ResolutionWay.NONE: resolve_unseen,
}


def resolver_of(kind: Kind, way: ResolutionWay) -> _Resolver:
    """Returns the function that resolves an operation of this kind in this way."""
    if way is ResolutionWay.SEARCH:
        return _SEARCHES[kind]
    # An adapter may do other kinds only once. They have no resolver yet, and need an operator's attention.
    return _RESENDINGS.get(kind, resolve_unseen) if way is ResolutionWay.SEND_AGAIN else _OTHERWISE[way]


async def resolve_case(case: Case) -> None:
    """Makes one try to resolve a case, in the way that its gateway allows."""
    way = resolution_way_of(case.operation.kind, case.account.capabilities, is_key_kept=is_key_kept(case))
    await resolver_of(case.operation.kind, way)(case)
