"""Places in a gateway's budget, as those who keep them and those who give them out speak of them."""

import msgspec


class PermitGrant(msgspec.Struct, frozen=True):
    """One place that was taken: the slot, and a random name of this taking, so that nobody ends another one's."""

    slot: int
    holder: str


class PermitsTaken(msgspec.Struct, frozen=True):
    """What a look for places came to.

    Attributes:
        grants: as many as there were, and no more than were asked for.
        next_in_s: when there may be another one; None where all came that were asked for.
    """

    grants: tuple[PermitGrant, ...]
    next_in_s: float | None = None


class BudgetSnapshot(msgspec.Struct, frozen=True, kw_only=True):
    """How a budget stands at this moment, as far as this process knows.

    Attributes:
        limit_calls: places in the whole budget; None where there is no limit.
        used: places that this process holds, or that rest after its calls.
        waiting: those who wait for a place in this process.
        is_open: whether the gateway fails, and is left alone.
        blocked_s: seconds for which the gateway takes no calls, because it said so to this process.
    """

    limit_calls: int | None
    used: int
    waiting: int
    is_open: bool
    blocked_s: float
