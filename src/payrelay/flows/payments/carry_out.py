"""One effect, from its claim to its answer. The six stories that change something are all told by this one.

Rules, each with a test that tries to break it:

1. The intent is committed before anything is sent, and the answer after; no transaction is open while we wait.
2. What is sent has a place in the gateway's budget and a row in ``sending``. A row that never got there was not sent.
3. Once the intent is committed, nothing that the client does cancels it.
4. An outcome that can't be stored is not told: the client hears that it is unknown, and the storing is repeated.
5. Whatever happens to the operation goes through ``apply``, as first-hand news: a row that somebody else changed
   meanwhile is read again and decided anew.

To be changed together: ``flows.apply_change`` (how it changes), ``store.payments.journal`` (what is atomic) and this
file.
"""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial
from typing import Final

import msgspec

from payrelay.core.answers import Answer, Trace, of_outcome
from payrelay.core.outcomes import Evidence, Outcome, OutcomeKind
from payrelay.core.payments.changes import Report
from payrelay.core.payments.idempotency import claim_of, fingerprint
from payrelay.core.payments.operation import EVENT_OF_OUTCOME, Event, JournalEntry, Operation, State
from payrelay.core.payments.sentences import STATE_SENTENCES
from payrelay.errors import Code, Refusal, StoreDoubtful, StoreError
from payrelay.flows.apply_change import OverruledError, apply
from payrelay.flows.payments.answer_repeat import answer_again, answer_held, answer_of_state, located
from payrelay.flows.payments.intent import Intent
from payrelay.flows.relay import Relay, Request
from payrelay.gateways.gateway import Gateway, Sending
from payrelay.gateways.pacing.rate_limiter import CircuitOpen, Permit, priority_of
from payrelay.runtime.hooks import OperationPoint
from payrelay.store.payments.journal import AcceptedOperation, ClaimedOperation, GuardedOperation

SEND_WITHIN_S: Final = 10
"""From the commit of the intent to the last moment at which it may be sent: room for the commit (2 s), an access
token and a connection, and short enough that a client still waits."""

FULL_SENTENCE: Final = "the gateway's budget of calls is used up; nothing was sent"
FAILING_SENTENCE: Final = "the gateway is failing; nothing was sent"
ENDING_SENTENCE: Final = "the service is about to stop; nothing was done"


STORE_AGAIN_AFTER_S: Final = (1, 2, 5, 10, 30, 60, 60, 60, 60, 60)
"""When to try again to store an outcome that the store didn't take; some six minutes in all. After that the row
stays in ``sending`` and is found as lost."""

WITHDRAWALS_MAX: Final = 1_000
"""How many rows this process goes on trying to withdraw at once: as many as may be at their commit when a database goes
away. Those of later requests were never stored, and must not pile up while it is gone."""


UNKNOWN_BY_OUR_FAULT: Final = Outcome(
    kind=OutcomeKind.UNKNOWN,
    code=Code.OUTCOME_UNKNOWN,
    msg=STATE_SENTENCES[State.UNKNOWN],
    evidence=Evidence(cause="internal_error"),
)


LookFirst = Callable[[Intent], Awaitable[Intent]]
"""Looks at the gateway or the store before anything is stored, and gives the intent with what was seen; raises Refusal.
It isn't asked for a repeat."""


async def carry_out(relay: Relay, request: Request, intent: Intent, *, look_first: LookFirst | None = None) -> Answer:
    """Does it, unless it was done before: at most one effect at the gateway for one claim.

    Gives the finished answer, the earlier one byte for byte where this is a repeat, or a 202 that says what is known.
    Raises Refusal where an earlier request stands in the way or the account is paused, and StoreUnavailable where the
    intent could not be stored; nothing was sent then.
    """
    request_print = fingerprint(request.account, intent.call)
    claim = claim_of(request.idempotency_key, request_print, is_unkeyed_claimed=relay.retention.unkeyed_ms > 0)
    if claim is not None:
        earlier = await relay.journal.find_claim(request.principal, claim, now_ms=relay.clock.now_ms())
        if earlier is not None:
            return answer_again(relay, earlier, request, request_print)
    await relay.paused.require_open(request.account)
    if look_first is not None:
        intent = await look_first(intent)
        # A look may last longer than the second in which a pause counts.
        await relay.paused.require_open(request.account)
    attempt = Attempt(relay, request, intent)
    # The work is a task of its own, held by the relay: a client that goes away ends this wait and nothing else.
    work = relay.background.start(attempt.run(request_print, claim))
    try:
        return await asyncio.shield(work)
    except asyncio.CancelledError:
        if relay.background.is_leaving:
            return attempt.unfinished()
        raise


class Attempt:
    """One request's way to the gateway and back; ``operation`` is the row as this attempt last wrote or read it."""

    def __init__(self, relay: Relay, request: Request, intent: Intent) -> None:
        self._relay = relay
        self._request = request
        self._intent = intent
        self._account: Gateway = relay.account(request.account)
        self._has_begun = False

    def unfinished(self) -> Answer:
        """Tells what is known while nobody knows more; raises Refusal where nothing was begun."""
        if not self._has_begun:
            raise Refusal(Code.UNAVAILABLE, ENDING_SENTENCE)
        return answer_of_state(self.operation, self._request.request_id, state=State.UNKNOWN)

    async def run(self, request_print: str, claim: str | None) -> Answer:
        """Stores the intent, gets a place, sends, stores the outcome: the whole story in order."""
        rate_limiter, priority = self._account.rate_limiter, priority_of(self._intent.call)
        permit = await rate_limiter.take_now(priority=priority)
        if permit is None and (circuit_open := rate_limiter.refusal(priority)) is not None:
            raise Refusal(Code.UNAVAILABLE, FAILING_SENTENCE, retry_after_s=circuit_open.retry_after_s)
        send_by_s = self._relay.clock.boot_s() + SEND_WITHIN_S
        try:
            verdict = await self._accept(request_print, claim, has_permit=permit is not None)
        except BaseException as error:  # whatever it was, nothing is sent, and the place must not be lost with it
            _give_back(permit)
            if isinstance(error, StoreDoubtful):
                return await self._tell_doubt("intent_not_stored", error)
            if isinstance(error, StoreError):
                self._withdraw_later("intent_not_stored")
            raise
        if not isinstance(verdict, AcceptedOperation):
            _give_back(permit)
            return answer_held(self._relay, verdict, self._request, request_print)
        self.operation = verdict.operation
        if permit is None:
            permit = await self._wait_for_permit()
            if permit is None:
                return await self._give_up(rate_limiter.refusal(priority))
            await self._require_still_open(permit)
            send_by_s = self._relay.clock.boot_s() + SEND_WITHIN_S
            try:
                await self._grant(permit)
            except StoreDoubtful as error:
                return await self._tell_doubt("grant_not_stored", error)
        sending = Sending(
            operation_id=self.operation.id,
            permit=permit,
            send_by_s=send_by_s,
            is_retry=self._note_retry,
            notify_url=self._notify_url(),
        )
        began_s = self._relay.clock.boot_s()
        self._reach(OperationPoint.SENDING)
        try:
            call = self._intent.sent or self._intent.call
            outcome = await self._account.effect(call, self._intent.expected, sending)
        except Exception:  # an adapter raises nothing; where it does after all, it may have sent
            self._relay.log.exception("effect_raised", operation_id=self.operation.id)
            outcome = UNKNOWN_BY_OUR_FAULT
        finally:
            permit.done()  # the adapter has said so, or failed before it could; only the first word counts
        self._reach(OperationPoint.REPLIED)
        elapsed_s = self._relay.clock.boot_s() - began_s
        self._relay.hooks.call_made(self._request.account, self._intent.call, outcome.kind, elapsed_s)
        return await self._conclude(outcome)

    async def _accept(
        self, request_print: str, claim: str | None, *, has_permit: bool
    ) -> AcceptedOperation | ClaimedOperation | GuardedOperation:
        """Transaction 1: the claim, the guard and the intent, all or nothing."""
        now_ms = self._relay.clock.now_ms()
        intent, bound = self._intent, self._request.credential.bound
        wait_s = SEND_WITHIN_S if has_permit else SEND_WITHIN_S + self._account.queue_s
        self.operation = Operation(
            id=self._relay.new_id("op", now_ms),
            account=self._request.account,
            merchant=self._account.merchant,
            principal=self._request.principal,
            kind=intent.kind,
            state=State.SENDING if has_permit else State.ACCEPTED,
            version=1,
            subject=intent.subject,
            guard=intent.subject,
            claim=claim,
            claim_ends_at_ms=None,
            idempotency_key=self._request.idempotency_key,
            fingerprint=request_print,
            request_id=self._request.request_id,
            order_id=intent.order_id,
            payment_id=intent.payment_id,
            subscription_id=intent.subscription_id,
            amount_minor=intent.amount_minor,
            currency=intent.currency,
            result_ref=None,
            created_at_ms=now_ms,
            updated_at_ms=now_ms,
            send_by_ms=now_ms + int(wait_s * 1000),
            customer_id=intent.customer_id or (bound.customer_id if bound is not None else None),
        )
        entry = JournalEntry(version=1, at_ms=now_ms, event=None, state=self.operation.state, evidence=intent.evidence)
        if self._relay.background.is_leaving:
            raise Refusal(Code.UNAVAILABLE, ENDING_SENTENCE)
        self._has_begun = True
        self._reach(OperationPoint.ACCEPTING)
        verdict = await self._relay.journal.accept(
            self.operation, entry, intent.call, conflicts_with=intent.conflicts_with, now_ms=now_ms
        )
        self._reach(OperationPoint.ACCEPTED)
        return verdict

    async def _grant(self, permit: Permit) -> None:
        """Commits that it may be sent from now on; where that fails, it is not."""
        now_ms = self._relay.clock.now_ms()
        self._reach(OperationPoint.GRANTING)
        try:
            await self._apply(Report(event=Event.GRANTED, send_by_ms=now_ms + SEND_WITHIN_S * 1000))
        except BaseException as error:  # as in run: the place must not be lost
            permit.release_unused()
            if isinstance(error, OverruledError):
                raise Refusal(
                    Code.UNAVAILABLE, "the request waited too long and was given up; nothing was sent"
                ) from error
            if isinstance(error, StoreError) and not isinstance(error, StoreDoubtful):
                self._withdraw_later("grant_not_stored")
            raise
        self._reach(OperationPoint.GRANTED)

    async def _wait_for_permit(self) -> Permit | None:
        """Waits as long as configured; where nobody knows whether there is a place, the intent is withdrawn."""
        until_s = self._relay.clock.boot_s() + self._account.queue_s
        try:
            return await self._account.rate_limiter.take(until_s, priority=priority_of(self._intent.call))
        except StoreError:
            self._withdraw_later("no_place")
            raise

    async def _require_still_open(self, permit: Permit) -> None:
        """Gives the place back and withdraws the intent where the account was paused while it waited; raises Refusal.

        Raises StoreUnavailable where that can't be known.
        """
        try:
            await self._relay.paused.require_open(self._request.account)
        except BaseException as error:  # as in run: the place must not be lost
            permit.release_unused()
            if isinstance(error, Refusal | StoreError):
                await self._withdraw_soon("paused")
            raise

    async def _give_up(self, circuit_open: CircuitOpen | None) -> Answer:
        """No place came: nothing was sent, and the key is given back."""
        await self._withdraw_soon("no_place")
        outcome = Outcome(
            kind=OutcomeKind.NOT_SENT,
            code=Code.GATEWAY_BUSY if circuit_open is None else Code.UNAVAILABLE,
            msg=FULL_SENTENCE if circuit_open is None else FAILING_SENTENCE,
            retry_after_s=None if circuit_open is None else circuit_open.retry_after_s,
        )
        return self._answer(outcome)

    async def _withdraw(self, cause: str) -> bool:
        """Makes the row say that nothing was sent. That is certain: nobody but this attempt would have sent it.

        Left as it is, it would hold its guard until somebody found it stranded, and then be called unknown. It may be
        there, and in ``sending``, although the commit was reported as failed: where the connection was lost right then.
        Gives False where there was nothing to be said.
        """
        with suppress(OverruledError):  # not there, or found stranded and given up by somebody else
            await self._apply(Report(event=Event.NOT_SENT, evidence=Evidence(cause=cause)))
            return True
        return False

    async def _tell_doubt(self, cause: str, error: StoreDoubtful) -> Answer:
        """Nothing was sent; but the row may say that it was about to be, and be settled by sending it if we die now.

        So the client hears that nothing was done (by ``error``) only once the row can't say otherwise any more.
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
        withdrawals, operation_id = self._relay.withdrawals, self.operation.id
        if len(withdrawals) < WITHDRAWALS_MAX:
            withdrawals.add(operation_id)
            task = self._store_later(partial(self._withdraw, cause), OutcomeKind.NOT_SENT)
            task.add_done_callback(lambda _: withdrawals.discard(operation_id))

    async def _note_retry(self, evidence: Evidence) -> bool:
        """Journals that the same effect is about to be sent once more; False where that can't be stored."""
        self._reach(OperationPoint.RESENDING)
        try:
            await self._apply(Report(event=Event.RETRIED, evidence=evidence))
        except (StoreError, OverruledError):
            return False
        self._reach(OperationPoint.RETRIED)
        return True

    async def _conclude(self, outcome: Outcome) -> Answer:
        """Transaction 2: state, history line and answer together; told to the client only once they are kept."""
        answer = self._answer(outcome)
        try:
            return await self._store(outcome, answer)
        except StoreError:
            self._relay.log.error("outcome_not_stored", operation_id=self.operation.id, kind=outcome.kind)
            self._store_later(partial(self._store, outcome, answer), outcome.kind)
            return answer_of_state(self.operation, self._request.request_id, state=State.UNKNOWN)

    async def _store(self, outcome: Outcome, answer: Answer) -> Answer:
        """Stores an outcome with its answer, and gives the answer that is kept now."""
        event = EVENT_OF_OUTCOME[outcome.kind]
        report = Report(event=event, evidence=outcome.evidence, answer=answer, facts=outcome.facts)
        try:
            await self._apply(report)
        except OverruledError as overruled:
            if overruled.is_agreed:  # it says so already: perhaps by our own hand, unconfirmed
                return await self._relay.journal.answer_of(self.operation.id) or answer
            # Somebody settled it before its reply was stored, and otherwise. What stands there was decided by evidence
            # or by a person, and stays; that the two differ is for a person to see, and not to be told either way.
            return answer_of_state(self.operation, self._request.request_id, state=State.UNKNOWN)
        return answer

    def _store_later(self, store: Callable[[], Awaitable[object]], verdict: OutcomeKind) -> "asyncio.Task[None]":
        """Goes on trying to store what only this process knows, when nobody waits for it any more."""
        return self._relay.background.start(self._keep_storing(store, verdict))

    async def _keep_storing(self, store: Callable[[], Awaitable[object]], verdict: OutcomeKind) -> None:
        for pause_s in STORE_AGAIN_AFTER_S:
            await self._relay.pause(pause_s)
            with suppress(StoreError):
                if await store():
                    self._relay.log.info("outcome_stored_late", operation_id=self.operation.id, kind=verdict)
                return
        self._relay.log.error("outcome_given_up", operation_id=self.operation.id, kind=verdict)

    async def _apply(self, report: Report) -> None:
        """Stores what this attempt alone knows.

        Where that fails ``operation`` stays as it was known: whether it was sent once more since is told from there.
        """
        report = msgspec.structs.replace(report, is_firsthand=True)
        self.operation = (await apply(self._relay, self.operation, report)).operation

    def _reach(self, crash_point: OperationPoint) -> None:
        self._relay.hooks.reached(crash_point, self.operation.id)

    def _answer(self, outcome: Outcome) -> Answer:
        trace = Trace(request_id=self._request.request_id, operation_id=self.operation.id)
        return located(of_outcome(outcome, trace), self.operation)

    def _notify_url(self) -> str | None:
        return self._relay.notify_url(self._request.account)


def _give_back(permit: Permit | None) -> None:
    if permit is not None:
        permit.release_unused()
