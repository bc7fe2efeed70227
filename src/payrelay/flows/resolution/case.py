"""One operation that is being resolved: what is known of it, and how the results of inquiries are stored."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from payrelay.core.calls import Effect, PaymentsOfOrder, PaymentsOfSubscription
from payrelay.core.outcomes import Evidence, Facts
from payrelay.core.payments.changes import Change, Report
from payrelay.core.payments.operation import INQUIRED, Event, JournalEntry, Operation, State
from payrelay.core.payments.payment import NoObservation, Observation, Payment, PaymentsSeen
from payrelay.core.payments.proof import GIVEN_UP_AFTER_MS, Match, MatchResult, SendingWindow, open_since_ms
from payrelay.core.payments.resolved_answers import BY_PROOF, failed_answer, resolved_answer
from payrelay.core.payments.schedules import next_inquiry_ms, next_search_ms, next_try_ms
from payrelay.flows.apply_change import apply
from payrelay.flows.relay import Relay
from payrelay.gateways.gateway import Gateway
from payrelay.runtime.hooks import OperationPoint

Inquire: TypeAlias = Callable[[PaymentsOfOrder | PaymentsOfSubscription], Awaitable[Observation]]
"""Asks which payments there are. A failed inquiry gives NoObservation."""


@dataclass(kw_only=True, slots=True)
class Case:
    """An operation, everything that its proof rests on, and the ways in which an inquiry about it can end.

    Attributes:
        relay: the stores, runtime parts and gateways.
        account: where the operation was sent.
        operation: the row as it was read, and after a change as it is stored.
        call: the operation's call.
        history: its journal entries, oldest first.
        span: when it can have reached the gateway.
        is_urgent: the inquiry is out of turn, for a client or an operator; one without a result is not stored then.
        until_s: when to stop waiting for a permit, by ``clock.boot_s``.
        inquire_elsewhere: asks for payments in place of the gateway; None where the gateway is asked.
    """

    relay: Relay
    account: Gateway
    operation: Operation
    call: Effect
    history: list[JournalEntry]
    span: SendingWindow
    is_urgent: bool
    until_s: float
    inquire_elsewhere: Inquire | None = None

    @property
    def now_ms(self) -> int:
        """The present moment; milliseconds since 1970."""
        return self.relay.clock.now_ms()

    @property
    def open_ms(self) -> int:
        """How long its outcome has been open; milliseconds."""
        return self.now_ms - open_since_ms(self.history, self.operation)

    @property
    def timeout_ms(self) -> int:
        """How long one call to the gateway may last; milliseconds."""
        return self.span.ended_ms - self.operation.send_by_ms

    def has_entry(self, event: Event) -> bool:
        """Tells whether the history has an entry of this event."""
        return any(entry.event is event for entry in self.history)

    def reach(self, crash_point: OperationPoint) -> None:
        """Announces a crash point of the operation."""
        self.relay.hooks.reached(crash_point, self.operation.id)

    async def inquire(self, call: PaymentsOfOrder | PaymentsOfSubscription) -> Observation:
        """Asks the gateway which payments there are. A failed inquiry gives NoObservation, and proves nothing."""
        self.reach(OperationPoint.INQUIRING)
        if self.inquire_elsewhere is None:
            observation = await self.account.inquire(call, until_s=self.until_s)
        else:
            observation = await self.inquire_elsewhere(call)
        self.reach(OperationPoint.INQUIRED)
        return observation

    async def search(self, call: PaymentsOfOrder | PaymentsOfSubscription) -> PaymentsSeen | None:
        """Returns the payments that the gateway shows; None where the inquiry failed, and then plans the next one."""
        observation = await self.inquire(call)
        if isinstance(observation, NoObservation):
            await self.no_observation()
            return None
        if isinstance(observation, PaymentsSeen):
            return observation
        return PaymentsSeen(payments=(), evidence=observation.evidence)

    async def owned_by_others(self, payments: Sequence[Payment]) -> frozenset[str]:
        """Gives those of the payments that belong to other operations or checkouts, or are from before Payrelay."""
        ids = tuple(payment.payment_id for payment in payments)
        others = await self.relay.resolution.owned_by_others(self.operation, ids)
        return others | await self.relay.money.imported_payments.of_before(self.operation.merchant, payments)

    async def prove(self, match: Match, evidence: Evidence) -> None:
        """Stores that the operation took effect, with an answer composed of the record that was found."""
        answer = resolved_answer(self.operation, self.call, payment=match.payment, msg=BY_PROOF)
        facts = match.payment or Facts()
        await self.apply(Report(event=Event.PROVED, evidence=evidence, answer=answer, facts=facts))

    async def disprove(self, evidence: Evidence) -> None:
        """Stores that the operation took no effect."""
        await self.apply(Report(event=Event.DISPROVED, evidence=evidence, answer=failed_answer(self.operation)))

    async def unclear(self, evidence: Evidence) -> None:
        """Stores that the operation needs an operator's attention."""
        await self.apply(Report(event=Event.UNCLEAR, evidence=evidence))

    async def note(self, evidence: Evidence) -> None:
        """Stores an inquiry that proved nothing, and when the next one is due; does nothing for one out of turn."""
        if self.is_urgent:
            return
        await self.apply(Report(event=Event.INQUIRED_ABOUT, evidence=evidence, inquire_at_ms=self._next_ms()))

    async def no_observation(self) -> None:
        """Plans the next inquiry after one that failed or showed nothing; does nothing for one out of turn.

        Once the outcome has been open for GIVEN_UP_AFTER_MS, the operation needs an operator's attention instead.
        """
        if self.is_urgent:
            return
        now_ms = self.now_ms
        if self.operation.state in INQUIRED and self.open_ms >= GIVEN_UP_AFTER_MS:
            await self.unclear(Evidence(seen=MatchResult.UNSEEN))
            return
        at_ms = next_try_ms(open_since_ms(self.history, self.operation), now_ms)
        await self.relay.resolution.postpone(self.operation, at_ms)

    async def postpone(self, inquire_at_ms: int) -> None:
        """Plans the next inquiry for a moment before which nothing can be done."""
        await self.relay.resolution.postpone(self.operation, inquire_at_ms)

    async def apply(self, report: Report) -> None:
        """Changes the operation by a report. Raises what ``flows.apply_change`` raises."""
        change = await apply_resolution(self.relay, self.operation, report)
        self.operation = change.operation
        self.history += (*change.meanwhile, change.entry)

    def _next_ms(self) -> int | None:
        now_ms = self.now_ms
        if self.operation.state is State.FAILED:
            failed_at_ms = next(
                entry.at_ms for entry in reversed(self.history) if entry.event is not Event.INQUIRED_ABOUT
            )
            return next_search_ms(failed_at_ms, now_ms)
        return next_inquiry_ms(open_since_ms(self.history, self.operation), now_ms)


async def apply_resolution(relay: Relay, operation: Operation, report: Report) -> Change:
    """Changes an operation, and logs that, unless the change is only an inquiry that proved nothing."""
    change = await apply(relay, operation, report)
    state, event = change.entry.state, change.entry.event
    if event is not Event.INQUIRED_ABOUT:
        relay.log.info(
            "operation_resolution", operation_id=operation.id, kind=operation.kind, state=state, event_name=event
        )
    return change


def is_inquired(operation: Operation) -> bool:
    """Tells whether inquiries are still made about an operation."""
    return operation.state in INQUIRED or (operation.state is State.FAILED and operation.inquire_at_ms is not None)
