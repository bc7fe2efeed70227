"""What a request for a new effect must do first, while a request whose first try was lost may still come again.

Rules:

1. Outside of a recovery, and for a principal that has acknowledged it, a request goes on as ever.
2. What the gateway does only once goes on too: a second try changes nothing.
3. What the gateway's records show is looked for first. That is not done before all that the lost commits may have
   begun has ended, and the gateway has had time to show it.
4. What no record shows is held for a person.
"""

from enum import StrEnum

import msgspec

from payrelay.core.calls import Effect, Refund
from payrelay.core.database.incarnations import Incarnation
from payrelay.core.gateways.capabilities import Capabilities, ResolutionWay, resolution_way_of
from payrelay.core.payments.operation import Kind

_LOOKED_FOR = frozenset({Kind.CHARGE, Kind.REFUND, Kind.RETRY})
"""Kinds of which a record tells all that an answer says. That of an authorization lacks the token for its capture."""


class Step(StrEnum):
    """What a request for a new effect must do."""

    GO = "go"
    """It goes on."""
    TOO_EARLY = "too_early"
    """It comes again later: the gateway may not show yet what an earlier try did."""
    LOOK = "look"
    """It goes on where the gateway shows no effect of an earlier try."""
    HOLD = "hold"
    """It waits until a person decides."""


class Clearance(msgspec.Struct, frozen=True):
    """The step of one request; ``wait_ms`` is how long it must wait, in milliseconds, where it comes too early."""

    step: Step
    wait_ms: int = 0


def clearance_of(
    kind: Kind,
    call: Effect,
    can: Capabilities,
    incarnation: Incarnation | None,
    principal: str,
    *,
    wait_ms: int,
) -> Clearance:
    """Decides what a request of ``principal`` must do before its effect is begun.

    ``wait_ms`` is how long the gateway may not show yet what was begun in the lost window, in milliseconds, as
    ``wait_until_shown_ms`` gives it. Its ``shown_after_ms`` is the longest time from a commit to the end of the call,
    and the time that the gateway takes to show it.
    """
    lost = None if incarnation is None or not incarnation.is_recovering else incarnation.lost
    if incarnation is None or lost is None or principal in incarnation.acknowledged:
        return Clearance(Step.GO)
    way = resolution_way_of(kind, can, is_key_kept=False)  # the key was the id of the lost operation
    if way is ResolutionWay.SEND_AGAIN:
        return Clearance(Step.GO)
    is_part = isinstance(call, Refund) and call.amount_minor is not None
    if way is not ResolutionWay.SEARCH or kind not in _LOOKED_FOR or is_part:
        return Clearance(Step.HOLD)
    return Clearance(Step.LOOK) if wait_ms <= 0 else Clearance(Step.TOO_EARLY, wait_ms)
