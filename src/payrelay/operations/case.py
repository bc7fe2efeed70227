"""One open operation that is being settled: what is known of it, and how a step of it is stored."""

from contextlib import suppress
from dataclasses import dataclass
from typing import Final

import msgspec

from payrelay.core.answers import Answer
from payrelay.core.calls import Effect, PaymentsOfOrder, PaymentsOfSubscription
from payrelay.core.operations import FROZEN, PROBED, Event, Line, Operation, State, advance
from payrelay.core.outcomes import Evidence, Facts
from payrelay.core.payments import Payment, Sight
from payrelay.core.proof import GIVEN_UP_AFTER_MS, Control, Look, Seen, Span, open_since_ms, span_of
from payrelay.core.schedules import next_probe_ms, next_search_ms, next_try_ms
from payrelay.core.settlement import BY_PROOF, failed_answer, settled_answer
from payrelay.errors import IllegalTransition, Outdated
from payrelay.gateways.gateway import Gateway
from payrelay.operations.relay import Relay
from payrelay.operations.watch import Stage

DECISIONS_MAX: Final = 5
"""How often a row may change under a reply before that is given up; there are at most three writers of a row."""
SHOWS_IT: Final = frozenset({Event.SUCCEEDED, Event.DIFFERED, Event.PROVED})
"""What a reply can tell that contradicts that an operation failed; so does that it was done already."""

LOOKED_AT_MAX: Final = 50
"""Payment ids that are kept as evidence of one look; an order has a handful."""


@dataclass(kw_only=True, slots=True)
class Case:
    """An operation, everything that its proof rests on, and the ways in which a look at it can end.

    Attributes:
        relay: the rooms below.
        account: where it was sent.
        operation: as it was read, and after a step as it is stored.
        call: what was asked.
        history: its lines, oldest first.
        span: when it can have reached the gateway.
        is_nudged: somebody asked in between; what settles nothing then is not written down.
        until_s: how long to wait for a place in the gateway's budget, by ``clock.boot_s``.
    """

    relay: Relay
    account: Gateway
    operation: Operation
    call: Effect
    history: list[Line]
    span: Span
    is_nudged: bool
    until_s: float

    @property
    def now_ms(self) -> int:
        """The present moment."""
        return self.relay.clock.now_ms()

    @property
    def open_ms(self) -> int:
        """How long its outcome has been open; milliseconds."""
        return self.now_ms - open_since_ms(self.history, self.operation)

    @property
    def timeout_ms(self) -> int:
        """How long one call to the gateway may last."""
        return self.span.ended_ms - self.operation.send_by_ms

    def has_line(self, event: Event) -> bool:
        """Tells whether its history has such a line."""
        return any(line.event is event for line in self.history)

    def reach(self, stage: Stage) -> None:
        """Announces a stage."""
        self.relay.watch.reached(stage, self.operation.id)

    async def observe(self, call: PaymentsOfOrder | PaymentsOfSubscription) -> Sight:
        """Asks the gateway which payments there are; that it can't be asked is no observation."""
        self.reach(Stage.LOOKING)
        sight = await self.account.observe(call, until_s=self.until_s)
        self.reach(Stage.LOOKED)
        return sight

    async def prove(self, look: Look, evidence: Evidence, *, answer: Answer | None = None) -> None:
        """It took effect: the record that was found gives the answer."""
        settled = answer or settled_answer(self.operation, self.call, payment=look.payment, msg=BY_PROOF)
        await self.step(Event.PROVED, evidence, answer=settled, payment=look.payment)

    async def disprove(self, evidence: Evidence) -> None:
        """It took no effect."""
        await self.step(Event.DISPROVED, evidence, answer=failed_answer(self.operation))

    async def unclear(self, evidence: Evidence) -> None:
        """It is for a person."""
        await self.step(Event.UNCLEAR, evidence)

    async def note(self, evidence: Evidence) -> None:
        """It was looked for, and that settled nothing: written down, and looked for again on its day."""
        if self.is_nudged:
            return
        await self.step(Event.LOOKED, evidence, probe_at_ms=self._next_ms())

    async def could_not_look(self) -> None:
        """Nothing could be seen, which is no observation: tried again before its next day, for a week at most."""
        if self.is_nudged:
            return
        now_ms = self.now_ms
        if self.operation.state in PROBED and self.open_ms >= GIVEN_UP_AFTER_MS:
            await self.unclear(Evidence(seen=Seen.UNSEEN))
            return
        at_ms = next_try_ms(open_since_ms(self.history, self.operation), now_ms)
        await self.relay.settling.postpone(self.operation, at_ms)

    async def put_off(self, probe_at_ms: int) -> None:
        """There is nothing to be done before that moment."""
        await self.relay.settling.postpone(self.operation, probe_at_ms)

    async def hear(
        self, event: Event, evidence: Evidence, *, answer: Answer | None = None, payment: Payment | Facts | None = None
    ) -> None:
        """Stores what a sending for proof came to, whatever became of the operation while it was under way.

        Nobody else will ever hear this: where a person has decided meanwhile that it failed, and the reply shows that
        it didn't, a person is called again. What stands otherwise stays, and that the two differ is logged.
        """
        for _ in range(DECISIONS_MAX):
            now = self.operation.state
            is_there = event in SHOWS_IT or evidence.seen == Seen.ALREADY_DONE
            told = Event.REAPPEARED if now is State.FAILED and is_there else event
            try:
                await self.step(told, evidence, answer=answer, payment=payment)
            except Outdated:
                await self._read_again()
            except IllegalTransition:
                self.relay.log.error(
                    "reply_after_settling", operation_id=self.operation.id, state=now, verdict=event.value
                )
                raise
            else:
                return
        raise Outdated(f"operation {self.operation.id} was changed by others {DECISIONS_MAX} times in a row")

    async def _read_again(self) -> None:
        operation = await self.relay.journal.get(self.operation.id)
        if operation is None:
            raise IllegalTransition(f"operation {self.operation.id} is gone from the store")
        self.operation, self.history = operation, await self.relay.journal.history(operation.id)

    async def step(
        self,
        event: Event,
        evidence: Evidence,
        *,
        answer: Answer | None = None,
        payment: Payment | Facts | None = None,
        probe_at_ms: int | None = None,
    ) -> None:
        """Advances the operation by one event and stores it. Raises Outdated where somebody else was quicker."""
        changed, line = advance(
            self.operation,
            event,
            at_ms=self.now_ms,
            retention=self.relay.retention,
            evidence=evidence,
            probe_at_ms=probe_at_ms,
        )
        if self.operation.state is State.FAILED and changed.state is State.FAILED:
            # A look settles nothing anew: without a next day the search is over, and the key is kept no longer for it.
            changed = msgspec.structs.replace(
                changed, probe_at_ms=probe_at_ms, claim_ends_at_ms=self.operation.claim_ends_at_ms
            )
        if payment is not None:
            changed = with_payment(changed, payment)
        self.reach(Stage.RECORDING)
        self.operation = await record(
            self.relay, self.operation, changed, line, answer if changed.state in FROZEN else None
        )
        self.history.append(line)
        self.reach(Stage.RECORDED)
        self.relay.watch.operation_changed(self.operation)
        if event is not Event.LOOKED:
            self.relay.log.info(
                "operation_settling", operation_id=changed.id, kind=changed.kind, state=changed.state, event_name=event
            )

    def _next_ms(self) -> int | None:
        now_ms = self.now_ms
        if self.operation.state is State.FAILED:
            failed_at_ms = next(line.at_ms for line in reversed(self.history) if line.event is not Event.LOOKED)
            return next_search_ms(failed_at_ms, now_ms)
        return next_probe_ms(open_since_ms(self.history, self.operation), now_ms)


async def record(relay: Relay, before: Operation, changed: Operation, line: Line, answer: Answer | None) -> Operation:
    """Stores a change; an operation that is opened again takes its guard back, unless another one has it by now.

    Raises Outdated where somebody else was quicker.
    """
    if before.state is State.FAILED and changed.state is State.NEEDS_ATTENTION:
        with suppress(Outdated):
            return await relay.journal.record(msgspec.structs.replace(changed, guard=changed.subject), line, answer)
    return await relay.journal.record(changed, line, answer)


def with_payment(operation: Operation, payment: Payment | Facts) -> Operation:
    """Gives the operation with what a record or a reply tells of its payment; what was asked or known stands."""
    return msgspec.structs.replace(
        operation,
        payment_id=operation.payment_id or payment.payment_id,
        order_id=operation.order_id or payment.order_id,
        currency=operation.currency or payment.currency,
    )


def evidence_of(look: Look, control: Control | None, seen_by: Evidence | None = None) -> Evidence:
    """Writes a look down, with what the gateway said."""
    return msgspec.structs.replace(
        seen_by or Evidence(), seen=look.seen, control=control, payment_ids=look.looked_at[:LOOKED_AT_MAX]
    )


async def open_case(relay: Relay, account: Gateway, operation: Operation, *, is_nudged: bool, until_s: float) -> Case:
    """Reads everything that the proof rests on. Raises Outdated where the operation was changed meanwhile."""
    history = await relay.journal.history(operation.id)
    if not history or history[-1].version != operation.version:
        raise Outdated(f"operation {operation.id} was changed since it was read")
    return Case(
        relay=relay,
        account=account,
        operation=operation,
        call=await relay.journal.call_of(operation.id),
        history=history,
        span=span_of(history, operation, int(account.timeout_s * 1000)),
        is_nudged=is_nudged,
        until_s=until_s,
    )


def is_looked_for(operation: Operation) -> bool:
    """Tells whether there is anything to be asked about an operation."""
    return operation.state in PROBED or (operation.state is State.FAILED and operation.probe_at_ms is not None)
