"""Permits in a gateway's budget: the values that the store and the rate limiter exchange."""

import msgspec

from payrelay.core.gateways.fair_shares import OURS, Consumer


class PermitGrant(msgspec.Struct, frozen=True):
    """One permit that was granted to a consumer.

    Attributes:
        slot: the permit.
        holder: a random name of this grant, so that no other holder gives the permit back.
        consumer: gets the permit.
    """

    slot: int
    holder: str
    consumer: Consumer = OURS


class PermitsGranted(msgspec.Struct, frozen=True):
    """The result of a request for permits.

    Attributes:
        grants: the permits that were given, at most as many as were requested.
        next_in_s: in how many seconds another one may be given; None where all that were requested were given.
        refused: the consumers that can get no further permit until then; a part as a whole stands for all its apps.
        is_any_left: whether a permit is free, for other consumers.
    """

    grants: tuple[PermitGrant, ...]
    next_in_s: float | None = None
    refused: frozenset[Consumer] = frozenset()
    is_any_left: bool = False


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
