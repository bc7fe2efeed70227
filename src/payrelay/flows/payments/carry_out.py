"""Carries out one effect, from its claim to its answer. All flows that change something at the gateway share it.

Rules, each with a test that tries to break it:

1. The intent is committed before anything is sent, and the answer after; no transaction is open during the call.
2. A call goes out only with a permit and a row in ``sending``. Before there is a permit nothing is stored, so that a
   refusal leaves no row.
3. Once the intent is committed, nothing that the client does cancels it.
4. An outcome that can't be stored is not reported. The client gets a 202 with an unknown outcome, and the storing is
   repeated.
5. While requests may come again whose operations the database has lost, nothing goes out that may have gone out before
   (``flows.requests.recovery_gate``).
6. Every change of the operation goes through ``apply`` as a first-hand report: where another writer changed the row
   meanwhile, the report is decided anew on the current row.

To be changed together: ``flows.apply_change`` (how it changes), ``store.payments.journal`` (what is atomic) and this
file.
"""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial
from typing import Final, TypeAlias

import msgspec

from payrelay.core.answers import Answer, Trace, of_outcome
from payrelay.core.outcomes import Evidence, Outcome, OutcomeKind
from payrelay.core.payments.changes import Report
from payrelay.core.payments.operation import EVENT_OF_OUTCOME, SEND_WITHIN_S, Event, Operation, State
from payrelay.core.payments.operation_answers import answer_of_state, with_operation_headers
from payrelay.errors import Code, Refusal, StoreDoubtful, StoreError
from payrelay.flows.access.ownership import require_own
from payrelay.flows.apply_change import OverruledError, apply
from payrelay.flows.operations.answer_repeat import (
    answer_known,
    find_equal,
    find_repeated,
    identified_by,
)
from payrelay.flows.operations.unknown_outcome import UNKNOWN_BY_OUR_FAULT, as_in_recovery
from payrelay.flows.payments.free_order import require_free, require_no_page
from payrelay.flows.relay import Relay, Request
from payrelay.flows.requests.intent import Intent, new_operation, store_new
from payrelay.flows.requests.recovery_gate import clear
from payrelay.gateways.gateway import Gateway, Sending
from payrelay.gateways.pacing.rate_limiter import Permit, priority_of
from payrelay.runtime.hooks import OperationPoint
from payrelay.store.payments.journal import AcceptedOperation, ClaimedOperation, GuardedOperation

FULL_SENTENCE: Final = "the gateway's budget of calls is used up; this request was not sent"
FAILING_SENTENCE: Final = "the gateway is failing; this request was not sent"
ENDING_SENTENCE: Final = "the service is about to stop; this request was not sent"


STORE_AGAIN_AFTER_S: Final = (1, 2, 5, 10, 30, 60, 60, 60, 60, 60)
"""The pauses before each further try to store an outcome; some six minutes in all. After that the row stays in
``sending``, and the recovery finds it."""

WITHDRAWALS_MAX: Final = 1_000
"""Rows that this process tries to withdraw at the same time: as many as may be at their commit when a database goes
away. The rows of later requests were never stored, and must not pile up meanwhile."""


Preparation = Callable[[Intent], Awaitable[Intent]]
"""Reads from the gateway or the store before anything is stored, and returns the completed intent; raises Refusal.
A repeat needs none."""

_Done: TypeAlias = Answer | ClaimedOperation | GuardedOperation
"""What an attempt comes to: its answer, or the operation that was there already."""


async def carry_out(relay: Relay, request: Request, intent: Intent, *, prepare: Preparation | None = None) -> Answer:
    """Carries out an intent, unless the request is a repeat: at most one effect at the gateway for one claim.

    Returns the finished answer; for a repeat the earlier answer byte for byte; or a 202 that says what is known.
    Raises Refusal where its subject is foreign to the caller, where an earlier operation or an open page blocks this
    one, where it may repeat a charge from before Payrelay, and where the account is paused. Raises StillRunning for a
    repeat of a request that is under way, StoreUnavailable where the intent could not be stored, and what the intent's
    condition raises.
    Nothing was sent then.
    """
    fingerprint, claim = identified_by(relay, request, intent.call)
    done: _Done | None = await find_repeated(relay, request, intent, fingerprint, claim)
    if done is None:
        intent = await _prepared(relay, request, intent, prepare)
        cleared = await clear(relay, request, intent, fingerprint, claim)
        done = cleared if isinstance(cleared, Answer) else await _attempted(relay, request, cleared, fingerprint, claim)
    return done if isinstance(done, Answer) else answer_known(relay, done, request, fingerprint)


async def _prepared(relay: Relay, request: Request, intent: Intent, prepare: Preparation | None) -> Intent:
    """Returns the intent of a request that is no repeat, once nothing that is stored is in its way; raises Refusal."""
    await relay.paused.require_open(request.account)
    await require_free(relay, request, intent, await require_own(relay, request, intent.subject))
    if prepare is None:
        return intent
    intent = await prepare(intent)
    # The preparation may last longer than the second in which a pause takes effect.
    await relay.paused.require_open(request.account)
    return intent


async def _attempted(relay: Relay, request: Request, intent: Intent, fingerprint: str, claim: str | None) -> _Done:
    """Makes the attempt. It is a task of its own, held by the relay: a client that disconnects ends only this wait."""
    attempt = Attempt(relay, request, intent)
    running, spans = attempt.run(fingerprint, claim), relay.hooks.spans
    work = relay.background.start(running if spans is None else spans.around(f"operation {intent.kind}", running))
    try:
        return await asyncio.shield(work)
    except asyncio.CancelledError:
        if relay.background.is_leaving:
            return attempt.unfinished()
        raise


class Attempt:
    """One request to the gateway and its reply; ``operation`` is the row as this attempt last wrote or read it."""

    def __init__(self, relay: Relay, request: Request, intent: Intent) -> None:
        self._relay = relay
        self._request = request
        self._intent = intent
        self._account: Gateway = request.gateway
        self._has_begun = False
        self._held_id: str | None = None
        self._order_has_more = True

    def unfinished(self) -> Answer:
        """Answers 202 with an unknown outcome; raises Refusal where the attempt has stored nothing yet."""
        if not self._has_begun:
            raise Refusal(Code.UNAVAILABLE, ENDING_SENTENCE)
        return answer_of_state(self.operation, self._request.request_id, state=State.UNKNOWN)

    async def run(self, fingerprint: str, claim: str | None) -> _Done:
        """Gets a permit, stores the intent, sends the call and stores the outcome, in this order.

        Returns the operation that has the claim or the guard where that is another one; nothing was sent then. Raises
        Refusal where no permit came in time, or the account was paused meanwhile: nothing was stored then.
        """
        permit = await self._permit()
        if isinstance(permit, GuardedOperation):
            return permit
        await self._require_cleared(permit)
        send_by_s = self._relay.clock.boot_s() + SEND_WITHIN_S
        try:
            acceptance = await self._accept(fingerprint, claim)
        except BaseException as error:  # whatever it was, nothing is sent, and the permit must not be lost
            permit.release_unused()
            if isinstance(error, StoreDoubtful):
                return await self._answer_doubtful("intent_not_stored", error)
            if isinstance(error, StoreError):
                self._withdraw_later("intent_not_stored")
            raise
        if not isinstance(acceptance, AcceptedOperation):
            permit.release_unused()
            return acceptance
        self.operation = acceptance.operation
        return await self._look_again(permit) or await self._send_and_conclude(permit, send_by_s)

    async def run_held(self, held: Operation, evidence: Evidence) -> Answer:
        """Sends a held operation that an operator, whom ``evidence`` names, decided to send; else as ``run``.

        Raises Refusal where no permit came in time, or the account was paused meanwhile; Outdated and OverruledError
        where the operation is held no more; StoreError. Nothing was sent then. After a StoreDoubtful the row may be in
        ``sending`` all the same: it is not withdrawn, because another operator may have had it sent meanwhile.
        """
        self.operation, self._held_id = held, held.id
        permit = await self._permit()
        if isinstance(permit, GuardedOperation):
            return answer_known(self._relay, permit, self._request, held.fingerprint)
        send_by_s = self._relay.clock.boot_s() + SEND_WITHIN_S
        send_by_ms = self._relay.clock.now_ms() + SEND_WITHIN_S * 1000
        try:
            await self._relay.database.lost_commits.require_effects_allowed()
            decided = Report(event=Event.DECIDED_SEND, evidence=evidence, send_by_ms=send_by_ms)
            self.operation = (await apply(self._relay, held, decided)).operation
        except BaseException:  # as in run: the permit must not be lost
            permit.release_unused()
            raise
        self._has_begun = True
        return await self._send_and_conclude(permit, send_by_s)

    async def _send_and_conclude(self, permit: Permit, send_by_s: float) -> Answer:
        """Sends an operation whose intent is stored, and stores its outcome."""
        sending = Sending(
            operation_id=self.operation.id,
            permit=permit,
            send_by_s=send_by_s,
            journal_resend=self._journal_resend,
            notify_url=self._relay.notify_url(self._request.account),
        )
        outcome = await self._send(sending)
        return await self._conclude(outcome)

    async def _permit(self) -> Permit | GuardedOperation:
        """Gives a permit; waits for one as long as configured, unless another operation has the guard: returns that.

        Raises Refusal where none came; StoreUnavailable.
        """
        rate_limiter, priority = self._account.rate_limiter, priority_of(self._intent.call)
        requester = self._request.credential.requester
        permit = await rate_limiter.take_now(priority=priority, requester=requester)
        if permit is not None:
            return permit
        if rate_limiter.open_circuit(priority) is None:
            guarded = await self._relay.journal.find_guard(self._account.merchant, self._intent.subject)
            if guarded is not None and guarded.operation.id != self._held_id:
                return guarded
            until_s = self._relay.clock.boot_s() + self._account.queue_s
            permit = await rate_limiter.take(until_s, priority=priority, requester=requester)
        if permit is None:
            circuit_open = rate_limiter.open_circuit(priority)
            if circuit_open is None:
                raise Refusal(Code.GATEWAY_BUSY, FULL_SENTENCE)
            raise Refusal(Code.UNAVAILABLE, FAILING_SENTENCE, retry_after_s=circuit_open.retry_after_s)
        try:
            # The wait may be longer than the second in which a pause takes effect.
            await self._relay.paused.require_open(self._request.account)
        except BaseException:  # as in run: the permit must not be lost
            permit.release_unused()
            raise
        return permit

    async def _require_cleared(self, permit: Permit) -> None:
        """Raises Refusal where the request needs to be cleared anew; the wait for the permit may have been long."""
        try:
            await self._relay.database.lost_commits.require_same(self._intent.recovery)
        except BaseException:  # as in run: the permit must not be lost
            permit.release_unused()
            raise

    async def _send(self, sending: Sending) -> Outcome:
        """Makes the call; an adapter that raises may have sent it, so that its outcome is unknown."""
        began_s = self._relay.clock.boot_s()
        self._reach(OperationPoint.SENDING)
        try:
            call = self._intent.sent or self._intent.call
            outcome = await self._account.effect(call, self._intent.expected, sending)
        except Exception:  # the adapter's contract is to raise nothing
            self._relay.log.exception("effect_raised", operation_id=self.operation.id)
            outcome = UNKNOWN_BY_OUR_FAULT
        finally:
            sending.permit.done()  # only the first call of it counts; an adapter that failed may not have made one
        self._reach(OperationPoint.REPLIED)
        elapsed_s = self._relay.clock.boot_s() - began_s
        self._relay.hooks.call_made(self._request.account, self._intent.call, outcome.kind, elapsed_s)
        return outcome

    async def _accept(
        self, fingerprint: str, claim: str | None
    ) -> AcceptedOperation | ClaimedOperation | GuardedOperation:
        """Stores the claim, the guard and the intent in one transaction."""
        self.operation = new_operation(
            self._relay,
            self._request,
            self._intent,
            state=State.SENDING,
            identified_by=(fingerprint, claim),
            send_within_ms=SEND_WITHIN_S * 1000,
        )
        if self._relay.background.is_leaving:
            raise Refusal(Code.UNAVAILABLE, ENDING_SENTENCE)
        self._has_begun = True
        return await store_new(self._relay, self._request, self.operation, self._intent, self._intent.evidence)

    async def _look_again(self, permit: Permit) -> ClaimedOperation | None:
        """Looks for what came between the first look and the storing of the intent, whose guard keeps it out from here.

        Another principal may have charged the order, or a page of it was opened: raises Refusal. Or an equal request
        with a key succeeded: returns its operation. The permit is released then and the intent withdrawn, as where the
        store fails.
        """
        try:
            if self._intent.subject == f"order/{self._intent.order_id}":
                own_id = self.operation.id
                owners = await require_own(self._relay, self._request, self._intent.subject, but_for=own_id)
                await require_no_page(self._relay, self._request, owners)
                self._order_has_more = owners.has_more
            earlier = await find_equal(
                self._relay, self._request, self._intent, self.operation.fingerprint, but_for=self.operation.id
            )
        except BaseException as error:  # as in run: the permit must not be lost
            permit.release_unused()
            if isinstance(error, Refusal | StoreError):
                await self._withdraw_soon("order_taken")
            raise
        if earlier is not None:
            permit.release_unused()
            await self._withdraw_soon("repeated")
        return earlier

    async def _withdraw(self, cause: str) -> bool:
        """Stores that nothing was sent, which is certain: only this attempt would have sent it.

        Otherwise the row would hold its guard until the recovery found it stranded and called it unknown. The row may
        be stored, and in ``sending``, although its commit was reported as failed: the connection was lost right then.
        Returns False where the row was never stored, or another process has ended it.
        """
        with suppress(OverruledError):
            await self._apply(Report(event=Event.NOT_SENT, evidence=Evidence(cause=cause)))
            return True
        return False

    async def _answer_doubtful(self, cause: str, error: StoreDoubtful) -> Answer:
        """Withdraws an intent whose commit is in doubt, and raises ``error``: nothing was sent.

        Where the withdrawal fails, the row may still be in ``sending``, and after a crash the resolution might send
        it. The client then gets a 202 with an unknown outcome instead.
        """
        try:
            await self._withdraw(cause)
        except StoreError:
            self._withdraw_later(cause)
            return self.unfinished()
        raise error

    async def _withdraw_soon(self, cause: str) -> None:
        """Withdraws at once, or as soon as the store takes it."""
        try:
            await self._withdraw(cause)
        except StoreError:
            self._withdraw_later(cause)

    def _withdraw_later(self, cause: str) -> None:
        withdrawals, operation_id = self._relay.under_way.withdrawals, self.operation.id
        if len(withdrawals) < WITHDRAWALS_MAX:
            withdrawals.add(operation_id)
            task = self._store_later(partial(self._withdraw, cause), OutcomeKind.NOT_SENT)
            task.add_done_callback(lambda _: withdrawals.discard(operation_id))

    async def _journal_resend(self, evidence: Evidence) -> bool:
        """Journals that the call is about to be retried with a new token; False where that can't be stored."""
        self._reach(OperationPoint.RESENDING)
        try:
            await self._apply(Report(event=Event.RESENT, evidence=evidence))
        except (StoreError, OverruledError):
            return False
        self._reach(OperationPoint.RESENT)
        return True

    async def _conclude(self, outcome: Outcome) -> Answer:
        """Stores the outcome in one transaction, and then answers; answers 202 while the outcome can't be stored."""
        outcome = as_in_recovery(outcome, self._intent.recovery)
        answer = self._answer(outcome)
        try:
            return await self._store(outcome, answer)
        except StoreError:
            self._relay.log.error("outcome_not_stored", operation_id=self.operation.id, outcome=outcome.kind)
            self._store_later(partial(self._store, outcome, answer), outcome.kind)
            return answer_of_state(self.operation, self._request.request_id, state=State.UNKNOWN)

    async def _store(self, outcome: Outcome, answer: Answer) -> Answer:
        """Stores an outcome with its answer, and returns the answer that is stored now."""
        event = EVENT_OF_OUTCOME[outcome.kind]
        report = Report(event=event, evidence=outcome.evidence, answer=answer, facts=outcome.facts)
        try:
            await self._apply(report)
        except OverruledError as overruled:
            if overruled.is_agreed:  # perhaps an earlier try of this attempt stored it, unconfirmed
                return await self._relay.journal.answer_of(self.operation.id) or answer
            # The operation was resolved otherwise before its reply was stored, by evidence or by an operator, and that
            # stays. An operator must see that the two differ; the client is told neither.
            return answer_of_state(self.operation, self._request.request_id, state=State.UNKNOWN)
        return answer

    def _store_later(self, store: Callable[[], Awaitable[object]], kind: OutcomeKind) -> "asyncio.Task[None]":
        """Begins a background task that goes on trying to store what only this process knows."""
        return self._relay.background.start(self._keep_storing(store, kind))

    async def _keep_storing(self, store: Callable[[], Awaitable[object]], kind: OutcomeKind) -> None:
        for pause_s in STORE_AGAIN_AFTER_S:
            await self._relay.pause(pause_s)
            with suppress(StoreError):
                if await store():
                    self._relay.log.info("outcome_stored_late", operation_id=self.operation.id, outcome=kind)
                return
        self._relay.log.error("outcome_given_up", operation_id=self.operation.id, outcome=kind)

    async def _apply(self, report: Report) -> None:
        """Stores a report that only this attempt can make.

        Where that fails ``operation`` stays as it was: from its version follows what was sent once more since.
        """
        report = msgspec.structs.replace(report, is_firsthand=True, may_be_paid_again=self._order_has_more)
        self.operation = (await apply(self._relay, self.operation, report)).operation

    def _reach(self, crash_point: OperationPoint) -> None:
        self._relay.hooks.reached(crash_point, self.operation.id)

    def _answer(self, outcome: Outcome) -> Answer:
        trace = Trace(request_id=self._request.request_id, operation_id=self.operation.id)
        return with_operation_headers(of_outcome(outcome, trace), self.operation)
