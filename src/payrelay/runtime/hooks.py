"""Hooks that flows call as things happen: for the metrics, and for tests that crash the process at a named point."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from enum import StrEnum

from payrelay.core.calls import Effect, Read
from payrelay.core.payments.operation import Operation
from payrelay.tracing.spans import Spans

CallMade = Callable[[str, Effect | Read, str, float], None]


class OperationPoint(StrEnum):
    """The crash points of an operation, in their order."""

    ACCEPTING = "accepting"
    """The intent is about to be stored."""
    ACCEPTED = "accepted"
    """The intent is on disk."""
    SENDING = "sending"
    """The call is about to be handed to the gateway's client."""
    RESENDING = "resending"
    """The gateway rejected the access token, and the second sending is about to be stored."""
    RESENT = "resent"
    """The second sending, with a new access token, is on disk; it is about to be made."""
    REPLIED = "replied"
    """The outcome of the call is known."""
    RECORDING = "recording"
    """A change of the operation is about to be stored."""
    RECORDED = "recorded"
    INQUIRING = "looking"
    """A status inquiry is about to be sent."""
    INQUIRED = "looked"
    """The inquiry has ended."""
    RESENDING_TO_RESOLVE = "probing"
    """The call, which the gateway executes only once, is about to be resent to resolve it; that is on disk."""
    RESENT_TO_RESOLVE = "probed"
    """The outcome of the resending is known."""


class FlowPoint(StrEnum):
    """The crash points of checkouts, notifications, customers and events."""

    OPENING = "opening"
    """A checkout is about to be stored."""
    OPENED = "opened"
    """The checkout is on disk."""
    INGESTING = "taking"
    """A notification is about to be stored; the gateway has no answer yet."""
    INGESTED = "taken"
    INQUIRING = "asking"
    """The gateway is about to be asked for a payment or a subscription."""
    INQUIRED = "asked"
    TAKING_SLOT = "taking_slot"
    """The slot for a search of an order is about to be taken."""
    TOOK_SLOT = "took_slot"
    ENDING_SLOT = "ending_slot"
    """What the search showed is about to be stored, with the end of its slot."""
    ENDED_SLOT = "ended_slot"
    ACCEPTING_TOKEN = "believing"  # noqa: S105, a word
    """The token of a notification is about to be accepted."""
    ACCEPTED_TOKEN = "believed"  # noqa: S105, a word
    STORING = "storing"
    """A customer and its event are about to be stored."""
    STORED = "stored"
    NOTING = "noting"
    """A chargeback, or facts of a subscription, are about to be stored with their events."""
    NOTED = "noted"
    FINISHING = "finishing"
    """A checkout's change and its event are about to be stored."""
    FINISHED = "finished"
    CLOSING = "closing"
    """The state of a notification that was worked on is about to be stored."""
    CLOSED = "closed"
    PUBLISHING = "publishing"
    """Events are about to be given their positions, and queued for their endpoints."""
    PUBLISHED = "published"
    LEASING = "claiming"
    """Deliveries are about to be leased by this process."""
    LEASED = "claimed"
    DELIVERING = "delivering"
    """An event is about to be sent to an endpoint."""
    DELIVERED = "delivered"
    """The outcome of the attempt is known."""
    RECORDING_ATTEMPTS = "keeping"
    """The outcomes of attempts are about to be stored."""
    RECORDED_ATTEMPTS = "kept"


def no_hook(*_: object) -> None:
    """Does nothing: the hook where none is set."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Hooks:
    """Functions that are called as things happen. They must be quick, and raise nothing.

    Attributes:
        operation_changed: gets an operation, after a change of it is stored.
        call_made: gets an account's name, the call, its result (an outcome kind, ``found`` or an error code) and the
            seconds that it took; also for a call that was never sent.
        alerted: gets the result of an alert, in one word.
        event_tried: gets the result of an attempted delivery, in one word.
        reached: gets a crash point, and the id of the operation that has reached it.
        passed: gets a crash point, and the id of the object that has reached it, or of its endpoint; some points are
            reached by many objects at once.
        notified: gets an account's name and the authenticity of a notification (``Authenticity``), or ``unreadable``.
        worked_on: gets the state and the reason of a notification that was worked on.
        round_ended: called when the worker has ended a round.
        job_failed: gets the name of a job of the worker that failed.
        spans: records what happens as traces; None where tracing is off.
    """

    operation_changed: Callable[[Operation], None] = no_hook
    call_made: CallMade = no_hook
    alerted: Callable[[str], None] = no_hook
    event_tried: Callable[[str], None] = no_hook
    reached: Callable[[OperationPoint, str], None] = no_hook
    passed: Callable[[FlowPoint, str], None] = no_hook
    notified: Callable[[str, str], None] = no_hook
    worked_on: Callable[[str, str], None] = no_hook
    round_ended: Callable[[], None] = no_hook
    job_failed: Callable[[str], None] = no_hook
    spans: Spans | None = None

    @contextmanager
    def passing(self, before: FlowPoint, after: FlowPoint, id_: str) -> Iterator[None]:
        """Passes one crash point before the work inside, and another after it; not the second where the work fails."""
        self.passed(before, id_)
        yield
        self.passed(after, id_)

    def also_on_change(self, listener: Callable[[Operation], None]) -> "Hooks":
        """Returns hooks that also call a listener with each changed operation."""

        def changed(operation: Operation) -> None:
            self.operation_changed(operation)
            listener(operation)

        return replace(self, operation_changed=changed)

    def traced(self, spans: Spans | None) -> "Hooks":
        """Returns hooks with these spans, whose current one also gets each crash point and each state of an operation.

        Returns the hooks as they are where tracing is off.
        """
        if spans is None:
            return self

        def reached(point: OperationPoint, operation_id: str) -> None:
            self.reached(point, operation_id)
            spans.note(point.name.lower(), payrelay__operation__id=operation_id)

        def changed(operation: Operation) -> None:
            spans.note(payrelay__operation__kind=operation.kind, payrelay__operation__state=operation.state)

        return replace(self, reached=reached, spans=spans).also_on_change(changed)
