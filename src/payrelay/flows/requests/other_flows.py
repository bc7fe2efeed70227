"""What a request for an effect sets going, or asks, of flows with a story of their own: the pages, and the resolution.

``Relay.find`` gives each. Whoever reads how an effect is carried out need not read them.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from payrelay.core.access.ownership import OrderOwners
from payrelay.core.payments.operation import Operation
from payrelay.flows.relay import Relay, Request


@dataclass(frozen=True, kw_only=True, slots=True)
class OrderPages:
    """The pages of an order that keep a charge of it out.

    Attributes:
        require_over: raises Refusal (in_progress) where a page may be paid, or its reported hold stands. A page whose
            time is over is ended first. Raises StoreError.
        require_none: as ``require_over``, for a charge that is stored already; ends no page whose time is over.
    """

    require_over: Callable[[Relay, Request, OrderOwners], Awaitable[None]]
    require_none: Callable[[Relay, Request, OrderOwners], Awaitable[None]]


@dataclass(frozen=True, kw_only=True, slots=True)
class Inquiries:
    """The status inquiries about open operations.

    Attributes:
        begin: begins one out of turn, in the background, where it isn't too soon for one.
    """

    begin: Callable[[Relay, Operation], None]
