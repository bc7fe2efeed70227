"""Derives from a call's cause whether the gateway works. Pure."""

from typing import Final

from payrelay.gateways.pacing.circuit_breaker import Ending
from payrelay.gateways.payhere.connections import LossCause
from payrelay.gateways.payhere.wire.replies import Cause

_OURS: Final = frozenset({LossCause.TOO_LATE, LossCause.CLOSED, LossCause.STALE_CONNECTION})
"""Causes of calls that Payrelay itself did not make."""

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
"""No reply, or an unreadable one. A decline, a refusal, a rejection and an expired token are replies."""


def ending_of(cause: str | None) -> Ending:
    """Says what a call with this cause tells of the gateway; None is an answer without a cause."""
    if cause == Cause.RATE_LIMITED:
        return Ending.BLOCKED
    if cause in _FAILED:
        return Ending.FAILED
    return Ending.NOTHING if cause in _OURS else Ending.ANSWERED
