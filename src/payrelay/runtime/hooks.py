"""What the stories tell whoever counts: the metrics, when the service runs; nobody, in a test."""

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

from payrelay.core.calls import Effect, Read
from payrelay.core.payments.operation import Operation

CallMade = Callable[[str, Effect | Read, str, float], None]


class OperationPoint(StrEnum):
    """The places on an operation's way between which the process may die, in their order; each is announced."""

    ACCEPTING = "accepting"
    """Its intent is about to be stored."""
    ACCEPTED = "accepted"
    """Its intent is on disk."""
    GRANTING = "granting"
    """It got its place after a wait, and that is about to be stored."""
    GRANTED = "granted"
    SENDING = "sending"
    """It is about to be handed to the gateway's client."""
    RESENDING = "resending"
    """It was turned away for its token, and its second sending is about to be stored."""
    RETRIED = "resent"
    REPLIED = "replied"
    """What the gateway's client made of it is known."""
    RECORDING = "recording"
    """A change of it is about to be stored."""
    RECORDED = "recorded"
    INQUIRING = "looking"
    """The gateway is about to be asked what became of it."""
    INQUIRED_ABOUT = "looked"
    RESENT_TO_RESOLVE = "probing"
    """It is about to be sent once more, which can't do it twice, and that is on disk."""
    INQUIRED = "probed"


class FlowPoint(StrEnum):
    """The same for what comes in and what is told: on the ways of checkouts, notifications, customers and events."""

    OPENING = "opening"
    """A checkout is about to be stored."""
    OPENED = "opened"
    """It is on disk."""
    TAKING = "taking"
    """A notification is about to be stored; whoever posts it has no answer yet."""
    TAKEN = "taken"
    ASKING = "asking"
    """The gateway is about to be asked for the payment that somebody told of."""
    ASKED = "asked"
    BELIEVING = "believing"
    """The token that came with a notification is about to be accepted."""
    BELIEVED = "believed"
    STORING = "storing"
    """A customer and what is told of it are about to be stored."""
    STORED = "stored"
    NOTING = "noting"
    """A chargeback, or what became of a subscription, is about to be stored with what is told of it."""
    NOTED = "noted"
    FINISHING = "finishing"
    """A checkout's change and what is told of it are about to be stored."""
    FINISHED = "finished"
    CLOSING = "closing"
    """It is about to be stored where a notification stands after it was worked on."""
    CLOSED = "closed"
    PUBLISHING = "publishing"
    """Events are about to be given their positions and queued for their endpoints."""
    PUBLISHED = "published"
    CLAIMING = "claiming"
    """Deliveries are about to be taken by this process."""
    CLAIMED = "claimed"
    DELIVERING = "delivering"
    """An event is about to be sent to an endpoint."""
    DELIVERED = "delivered"
    """What the endpoint said is known."""
    KEEPING = "keeping"
    """What came of deliveries is about to be stored."""
    KEPT = "kept"


def nobody(*_: object) -> None:
    """Stands where nobody is to be told."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Hooks:
    """Functions that are called as things happen; they must be quick and raise nothing.

    Attributes:
        operation_changed: with an operation, once a change of it is stored.
        call_made: with an account's name, the call, what it came to (a verdict, ``found`` or an error code) and the
            seconds that it took; also for a call of which nothing was sent.
        alerted: with what became of an alert, in one word.
        event_tried: with what came of sending an event, in one word.
        reached: with a stage and the id of an operation that has come there.
        passed: with a passage and the id of what has come there, or an endpoint's id; a few are of many at once.
        notified: with an account's name and who a notification that came to it is from: one of
            ``notifications.OutcomeKind``, or ``unreadable``.
        worked_on: with where a notification came to stand, and why there.
    """

    operation_changed: Callable[[Operation], None] = nobody
    call_made: CallMade = nobody
    alerted: Callable[[str], None] = nobody
    event_tried: Callable[[str], None] = nobody
    reached: Callable[[OperationPoint, str], None] = nobody
    passed: Callable[[FlowPoint, str], None] = nobody
    notified: Callable[[str, str], None] = nobody
    worked_on: Callable[[str, str], None] = nobody
