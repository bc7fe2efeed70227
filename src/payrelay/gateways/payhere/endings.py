"""Tells from a call's cause what its end says of the gateway: whether it works. Pure."""

from typing import Final

from payrelay.gateways.pacing.circuit_breaker import Ending
from payrelay.gateways.payhere.connections import LossCause
from payrelay.gateways.payhere.wire.replies import Cause

_OURS: Final = frozenset({LossCause.TOO_LATE, LossCause.CLOSED, LossCause.STALE_CONNECTION})
"""We didn't try."""

_FAILED: Final = frozenset(LossCause) - _OURS | {
    Cause.SERVER_ERROR,
    Cause.UNEXPECTED_STATUS,
    Cause.REDIRECTED,
    Cause.NOT_UTF8,
    Cause.NOT_JSON,
    Cause.DOUBLED_MEMBER,
    Cause.OTHER_SHAPE,
    Cause.TOKEN_ECHOED,
}
"""No reply, or none that can be read. A decline, a refusal, a closed door and an ended token are replies."""


def ending_of(cause: str | None) -> Ending:
    """Tells what a call that came to this says of the gateway; None is a plain answer."""
    if cause == Cause.RATE_LIMITED:
        return Ending.BLOCKED
    if cause in _FAILED:
        return Ending.FAILED
    return Ending.NOTHING if cause in _OURS else Ending.ANSWERED
