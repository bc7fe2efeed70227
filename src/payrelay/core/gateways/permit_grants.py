"""Permits in a gateway's budget: the values that the store and the rate limiter exchange."""

import msgspec


class PermitGrant(msgspec.Struct, frozen=True):
    """One permit that was granted: its slot, and a random name of its holder, so that no other holder gives it back."""

    slot: int
    holder: str


class PermitsGranted(msgspec.Struct, frozen=True):
    """The result of a request for permits.

    Attributes:
        grants: the permits that were free, at most as many as were requested.
        next_in_s: in how many seconds another one may be free; None where all that were requested were granted.
    """

    grants: tuple[PermitGrant, ...]
    next_in_s: float | None = None


class BudgetSnapshot(msgspec.Struct, frozen=True, kw_only=True):
    """The present state of a budget, as far as this process knows.

    Attributes:
        limit_calls: permits in the whole budget; None where there is no limit.
        used: permits that this process holds, or that are not free again yet after its calls.
        waiting: callers in this process that wait for a permit.
        is_open: whether the circuit breaker is open.
        blocked_s: seconds for which the gateway accepts no calls, because it said so to this process.
    """

    limit_calls: int | None
    used: int
    waiting: int
    is_open: bool
    blocked_s: float
