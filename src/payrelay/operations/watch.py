"""What the stories tell whoever counts: the metrics, when the service runs; nobody, in a test."""

from collections.abc import Callable
from dataclasses import dataclass

from payrelay.core.calls import Effect, Read
from payrelay.core.operations import Operation

CallMade = Callable[[str, Effect | Read, str, float], None]


def _nobody(*_: object) -> None:
    """Counts nothing."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Watch:
    """Two functions that are called as things happen; they must be quick and raise nothing.

    Attributes:
        operation_changed: with an operation, once a change of it is stored.
        call_made: with an account's name, the call, what it came to (a verdict, ``found`` or an error code) and the
            seconds that it took; also for a call of which nothing was sent.
    """

    operation_changed: Callable[[Operation], None] = _nobody
    call_made: CallMade = _nobody
