import asyncio
import json
from collections.abc import Sequence

import msgspec
import pytest
from tests.flows.operators.test_decide import decision_on
from tests.flows.world import CHARGE, KEYED_MS, START_MS, UNKEYED_MS, Gate, Raising, World, asked, outcome_of

from payrelay.core.gateways.fair_shares import Consumer
from payrelay.core.gateways.pauses import Pause
from payrelay.core.gateways.permit_grants import PermitsGranted
from payrelay.core.gateways.rate_limit import RateLimit
from payrelay.core.outcomes import OutcomeKind
from payrelay.core.payments.operation import (
    EVENT_OF_OUTCOME,
    FIRST_INQUIRY_MS,
    FROZEN,
    OPEN_STATES,
    SEND_WITHIN_S,
    TRANSITIONS,
    Event,
    State,
)
from payrelay.errors import Code, Outdated, Refusal, StoreDoubtful, StoreUnavailable
from payrelay.flows.apply_change import ATTEMPTS_MAX
from payrelay.flows.operators.decide import decide
from payrelay.flows.payments.carry_out import STORE_AGAIN_AFTER_S, WITHDRAWALS_MAX
from payrelay.flows.payments.charge import charge
from payrelay.flows.payments.recover_after_crash import recover
from payrelay.gateways.pacing.circuit_breaker import EFFECT_TRIALS_AFTER_S, ENDED_MIN, PAUSE_S
from payrelay.gateways.pacing.rate_limiter import Ending, RateLimiter
from payrelay.gateways.pacing.shared_budget import MemoryBudget
from payrelay.store.gateways.pauses import Pauses

OTHER_CHARGE = msgspec.structs.replace(CHARGE, amount_minor=200_000)
DOWN = Raising(StoreUnavailable("the disk is full"))


async def refused(world: World, key: str | None = "k-1", **members: object) -> Refusal:
    """Gives the refusal that a charge gets."""
    with pytest.raises(Refusal) as caught:
        await charge(world.relay, asked(key, **members), CHARGE)
    return caught.value


async def waiting_charge(world: World, key: str = "k-1") -> "asyncio.Task[object]":
    """Begins a charge that finds no room in the budget, and comes back when it waits."""
    task: asyncio.Task[object] = asyncio.ensure_future(charge(world.relay, asked(key), CHARGE))
    await world.account.timer.is_set.wait()
    return task


class TestVerdicts:
    """Each kind of outcome: the state of the row, the answer, what is stored, what a repeat gets."""

    @pytest.mark.parametrize("kind", OutcomeKind)
    async def test_the_row_and_the_answer_agree(self, world: World, kind: OutcomeKind) -> None:
        """The client gets 202 exactly while the row is open, and a header with the operation's address."""
        world.account.script.append(outcome_of(kind))
        answer = await charge(world.relay, asked(), CHARGE)
        row = await world.operation()
        assert row.state is TRANSITIONS[State.SENDING, EVENT_OF_OUTCOME[kind]]
        assert (answer.http_status == 202) is (row.state in OPEN_STATES)
        assert dict(answer.headers)["Payrelay-Operation"] == row.id
        assert ("Location" in dict(answer.headers)) is (answer.http_status == 202)

    @pytest.mark.parametrize("kind", OutcomeKind)
    async def test_the_answer_is_stored_exactly_where_it_is_final(self, world: World, kind: OutcomeKind) -> None:
        """A repeat gets it byte for byte; an open operation, or one that was not sent, has no answer to store."""
        world.account.script.append(outcome_of(kind))
        answer = await charge(world.relay, asked(), CHARGE)
        row = await world.operation()
        kept = await world.journal.answer_of(row.id)
        assert kept == (answer if row.state in FROZEN else None)

    @pytest.mark.parametrize("kind", [OutcomeKind.SUCCEEDED, OutcomeKind.DECLINED, OutcomeKind.REFUSED])
    async def test_a_repeat_gets_the_finished_answer_again(self, world: World, kind: OutcomeKind) -> None:
        """Byte for byte, marked, without a second call and without waiting for the disk."""
        world.account.script.append(outcome_of(kind))
        first = await charge(world.relay, asked(), CHARGE)
        again = await charge(world.relay, asked(), CHARGE)
        assert (again.body, again.http_status) == (first.body, first.http_status)
        assert dict(again.headers)["Idempotent-Replayed"] == "true"
        assert len(world.account.sent) == 1
        assert world.steps.passed.count("accept") == 1

    @pytest.mark.parametrize("kind", [OutcomeKind.UNKNOWN, OutcomeKind.PENDING, OutcomeKind.DIFFERED])
    async def test_a_repeat_of_an_open_operation_gets_its_state(self, world: World, kind: OutcomeKind) -> None:
        """A repeat gets 202, and never causes a second call; while an operator is needed, Retry-After is an hour."""
        world.account.script.append(outcome_of(kind))
        await charge(world.relay, asked(), CHARGE)
        again = await charge(world.relay, asked(), CHARGE)
        assert again.http_status == 202
        codes = {OutcomeKind.PENDING: Code.PENDING, OutcomeKind.DIFFERED: Code.NEEDS_ATTENTION}
        assert again.code is codes.get(kind, Code.OUTCOME_UNKNOWN)
        assert again.retry_after_s == (3_600 if kind is OutcomeKind.DIFFERED else 10)
        assert "Idempotent-Replayed" not in dict(again.headers)
        assert len(world.account.sent) == 1

    @pytest.mark.parametrize("kind", [OutcomeKind.NOT_SENT, OutcomeKind.NOT_EXECUTED])
    async def test_what_took_no_effect_is_sent_by_its_repeat(self, world: World, kind: OutcomeKind) -> None:
        """``retry: same_key`` means what it says."""
        world.account.script.append(outcome_of(kind))
        await charge(world.relay, asked(), CHARGE)
        assert (await charge(world.relay, asked(), CHARGE)).http_status == 200
        assert world.account.ledger == [CHARGE]

    async def test_an_adapter_that_raises_leaves_the_outcome_unknown(self, world: World) -> None:
        """The adapter may have sent; its fault must not become a false answer, nor cost a permit."""
        world.limit_to(RateLimit(1, 10.0))
        world.account.script.append(RuntimeError("a bug"))
        answer = await charge(world.relay, asked(), CHARGE)
        assert (answer.code, (await world.operation()).state) == (Code.OUTCOME_UNKNOWN, State.UNKNOWN)
        world.clock.passed_ms += 10_000
        assert world.account.rate_limiter.snapshot().used == 0
        assert "effect_raised" in world.log_events


class TestRepeats:
    """Keys, fingerprints and guards."""

    async def test_another_request_under_the_key_is_refused(self, world: World) -> None:
        """It must get neither the first one's answer nor a charge of its own."""
        await charge(world.relay, asked(), CHARGE)
        with pytest.raises(Refusal) as caught:
            await charge(world.relay, asked(), OTHER_CHARGE)
        assert caught.value.code is Code.IDEMPOTENCY_MISMATCH

    async def test_keys_of_different_principals_have_nothing_to_do_with_each_other(self, world: World) -> None:
        """Two shops number their requests alike."""
        await charge(world.relay, asked(), CHARGE)
        await charge(world.relay, asked(principal="other"), world.charge_of(2))
        assert len(world.account.ledger) == 2

    async def test_without_a_key_the_same_request_is_a_repeat(self, world: World) -> None:
        """Clients of the interface know no key, and phones repeat."""
        await charge(world.relay, asked(None), CHARGE)
        again = await charge(world.relay, asked(None), CHARGE)
        assert dict(again.headers)["Idempotent-Replayed"] == "true"
        assert world.account.ledger == [CHARGE]

    @pytest.mark.parametrize(("key", "kept_ms"), [("k-1", KEYED_MS), (None, UNKEYED_MS)])
    async def test_an_answer_is_kept_for_its_time_and_no_longer(
        self, world: World, key: str | None, kept_ms: int
    ) -> None:
        """To the millisecond, whether or not somebody has pruned."""
        await charge(world.relay, asked(key), CHARGE)
        world.clock.passed_ms = kept_ms - 1
        await charge(world.relay, asked(key), CHARGE)
        world.clock.passed_ms = kept_ms
        await charge(world.relay, asked(key), CHARGE)
        assert len(world.account.ledger) == 2

    async def test_with_the_window_off_only_the_guard_holds_a_repeat(self, world: World) -> None:
        """Who turns it off wants equal charges without keys."""
        world.limit_to(None, unkeyed_ms=0)
        await charge(world.relay, asked(None), CHARGE)
        await charge(world.relay, asked(None), CHARGE)
        assert len(world.account.ledger) == 2

    @pytest.mark.parametrize("key", ["k-1", None])
    async def test_a_repeat_while_the_first_runs_is_in_progress(self, world: World, key: str | None) -> None:
        """Which of the two the client hears of first is chance; there is one charge."""
        gate = Gate()
        world.steps.put("effect", gate)
        first = asyncio.ensure_future(charge(world.relay, asked(key), CHARGE))
        await gate.reached.wait()
        refusal = await refused(world, key)
        gate.opened.set()
        assert (refusal.code, refusal.operation_id) == (Code.IN_PROGRESS, (await world.operation()).id)
        assert (await first).http_status == 200

    async def test_of_many_at_once_one_is_sent(self, world: World) -> None:
        """They all pass the search for a claim together; the store decides."""
        answers = await asyncio.gather(
            *(charge(world.relay, asked(), CHARGE) for _ in range(20)), return_exceptions=True
        )
        assert world.account.ledger == [CHARGE]
        assert {answer.code for answer in answers if isinstance(answer, Refusal)} == {Code.IN_PROGRESS}

    @pytest.mark.parametrize(("principal", "is_named"), [("shop", True), ("other", False)])
    async def test_a_second_charge_of_an_open_order_is_refused_whoever_asks(
        self, world: World, principal: str, *, is_named: bool
    ) -> None:
        """With another key it would else be sent; the operation with the guard is named to its owner only.

        So is the moment of the next look at the gateway.
        """
        world.account.script.append(outcome_of(OutcomeKind.UNKNOWN))
        await charge(world.relay, asked("k-1"), CHARGE)
        refusal = await refused(world, "k-2", principal=principal)
        operation_id = (await world.operation()).id
        assert refusal.code is Code.IN_PROGRESS
        assert refusal.operation_id == (operation_id if is_named else None)
        assert refusal.retry_after_s == (FIRST_INQUIRY_MS // 1000 if is_named else 10)
        assert world.account.ledger == [CHARGE]

    async def test_another_name_for_the_same_merchant_is_no_way_around_the_guard(self, world: World) -> None:
        """The guard is about the account at the gateway, however often it is configured."""
        world.accounts["second"] = world.accounts["gateway"]
        world.account.script.append(outcome_of(OutcomeKind.UNKNOWN))
        await charge(world.relay, asked("k-1"), CHARGE)
        with pytest.raises(Refusal, match="is not final yet"):
            await charge(world.relay, msgspec.structs.replace(asked("k-2"), account="second"), CHARGE)

    async def test_an_account_that_is_not_configured_is_not_found(self, world: World) -> None:
        """Nothing is stored for it."""
        with pytest.raises(Refusal) as caught:
            await charge(world.relay, msgspec.structs.replace(asked(), account="nowhere"), CHARGE)
        assert caught.value.code is Code.NOT_FOUND
        assert await world.operations() == []


class TestIntent:
    """The intent is on disk before anything is sent, and says until when it may be."""

    async def test_the_row_says_sending_when_the_call_goes_out(self, world: World) -> None:
        """A crash in that moment leaves a row that says what may have happened."""
        await charge(world.relay, asked(), CHARGE)
        assert world.account.states_when_sent == [State.SENDING]
        assert await world.states() == [State.SENDING, State.SUCCEEDED]

    async def test_nothing_is_sent_after_the_time_in_the_row(self, world: World) -> None:
        """The resolution counts from there; a late sender would send what was declared lost."""
        await charge(world.relay, asked(), CHARGE)
        assert (await world.operation()).send_by_ms == START_MS + SEND_WITHIN_S * 1000
        assert world.account.sent[0].send_by_s == SEND_WITHIN_S

    async def test_a_store_that_is_down_lets_nothing_out_and_uses_no_permit(self, world: World) -> None:
        """The client gets 503, nothing is sent, and the budget is as it was."""
        world.limit_to(RateLimit(1, 10.0))
        world.steps.put("accept", DOWN)
        with pytest.raises(StoreUnavailable):
            await charge(world.relay, asked(), CHARGE)
        assert (world.account.sent, await world.operations()) == ([], [])
        assert world.account.rate_limiter.snapshot().used == 0

    async def test_an_intent_whose_commit_was_not_confirmed_is_withdrawn(self, world: World) -> None:
        """The connection was lost at the commit: the row is stored, and would call unknown what was never sent."""
        world.steps.put("accepted", DOWN)
        with pytest.raises(StoreUnavailable):
            await charge(world.relay, asked(), CHARGE)
        await world.relay.background.finish(5)
        assert await world.states() == [State.SENDING, State.NOT_SENT]
        assert (await charge(world.relay, asked(), CHARGE)).http_status == 200
        assert (world.log_events, world.relay.under_way.withdrawals) == (["outcome_stored_late"], set())

    async def test_what_may_be_there_is_withdrawn_before_anybody_hears_that_nothing_was_done(
        self, world: World
    ) -> None:
        """If the process died now, the resolution would send a capture that its client believes was not made."""
        world.steps.put("accepted", Raising(StoreDoubtful("the connection was lost at the commit")))
        with pytest.raises(StoreUnavailable):
            await charge(world.relay, asked(), CHARGE)
        assert await world.states() == [State.SENDING, State.NOT_SENT]
        assert world.account.sent == []

    async def test_while_it_can_not_be_withdrawn_it_is_unknown(self, world: World) -> None:
        """Nothing was sent, but nobody can say yet that nothing will be."""
        world.steps.put("accepted", Raising(StoreDoubtful("the connection was lost at the commit")))
        world.steps.put("get", DOWN)
        answer = await charge(world.relay, asked(), CHARGE)
        assert (answer.http_status, answer.code) == (202, Code.OUTCOME_UNKNOWN)
        await world.relay.background.finish(5)
        assert await world.states() == [State.SENDING, State.NOT_SENT]
        assert (await charge(world.relay, asked(), CHARGE)).http_status == 200

    async def test_withdrawals_do_not_pile_up_while_the_store_is_gone(self, world: World) -> None:
        """Of thousands of requests in an outage only those at its beginning can have left a row."""
        world.relay.under_way.withdrawals.update(f"op_{number}" for number in range(WITHDRAWALS_MAX))
        world.steps.put("accepted", DOWN)
        with pytest.raises(StoreUnavailable):
            await charge(world.relay, asked(), CHARGE)
        await world.relay.background.finish(5)
        assert await world.states() == [State.SENDING]

    async def test_a_repeat_uses_no_permit(self, world: World) -> None:
        """A repeat sends nothing, and the next request needs the permit."""
        await charge(world.relay, asked(), CHARGE)
        world.limit_to(RateLimit(1, 10.0))
        await charge(world.relay, asked(), CHARGE)
        assert world.account.rate_limiter.snapshot().used == 0


class TestBudget:
    """An operation without a free permit: it waits, and nothing is stored before it has one."""

    async def test_without_a_permit_it_waits_and_is_sent_when_one_is_free(self, world: World) -> None:
        """Nothing is stored meanwhile; the time to send counts from the permit."""
        world.limit_to(RateLimit(1, 10.0))
        permit = await world.account.rate_limiter.take_now()
        assert permit is not None
        task = await waiting_charge(world)
        assert await world.operations() == []
        world.clock.passed_ms += 3_000
        permit.release_unused()
        await task
        assert await world.states() == [State.SENDING, State.SUCCEEDED]
        assert world.account.states_when_sent == [State.SENDING]
        assert (await world.operation()).send_by_ms == START_MS + 3_000 + SEND_WITHIN_S * 1000
        assert world.account.sent[0].send_by_s == 3 + SEND_WITHIN_S

    async def test_when_no_permit_comes_nothing_is_stored_and_it_may_be_repeated(self, world: World) -> None:
        """The client gets 503, nothing was sent, and the key is free. A flood of such requests fills no disk."""
        world.limit_to(RateLimit(1, 10.0))
        world.account.queue_s = 0.0
        permit = await world.account.rate_limiter.take_now()
        refusal = await refused(world)
        assert (refusal.code, await world.operations()) == (Code.GATEWAY_BUSY, [])
        assert permit is not None
        permit.release_unused()
        assert (await charge(world.relay, asked(), CHARGE)).http_status == 200

    async def test_equal_requests_that_wait_are_sent_once(self, world: World) -> None:
        """Neither finds a claim of the other before it waits; the second one's permit goes back."""
        world.limit_to(RateLimit(2, 10.0))
        permits = [await world.account.rate_limiter.take_now() for _ in range(2)]
        tasks = [await waiting_charge(world), await waiting_charge(world)]
        for permit in permits:
            assert permit is not None
            permit.release_unused()
        await asyncio.gather(*tasks, return_exceptions=True)
        assert (len(world.account.sent), len(await world.operations())) == (1, 1)
        assert world.account.rate_limiter.snapshot().used == 1

    async def test_what_is_blocked_does_not_wait(self, world: World) -> None:
        """The order has an open operation: the client is told so at once, and does not wait for a permit first."""
        world.account.script.append(outcome_of(OutcomeKind.UNKNOWN))
        await charge(world.relay, asked(), CHARGE)
        world.limit_to(RateLimit(1, 10.0))
        await world.account.rate_limiter.take_now()
        assert (await refused(world, "k-2")).code is Code.IN_PROGRESS

    async def test_an_account_that_is_paused_meanwhile_makes_nothing(self, world: World) -> None:
        """An operator stopped it while the request waited; the permit goes back."""
        world.limit_to(RateLimit(1, 10.0))
        permit = await world.account.rate_limiter.take_now()
        assert permit is not None
        task = await waiting_charge(world)
        await Pauses(world.database).add(Pause(account="gateway", since_ms=1, reason="stop", operator="ann"))
        world.clock.passed_ms += 2_000
        permit.release_unused()
        with pytest.raises(Refusal):
            await task
        assert (await world.operations(), world.account.rate_limiter.snapshot().used) == ([], 0)

    async def test_while_the_gateway_fails_nothing_is_stored(self, world: World) -> None:
        """Rejected before the intent: nothing to withdraw, no guard, and Retry-After says when to try again."""
        await circuit_open(world)
        refusal = await refused(world)
        assert (refusal.code, refusal.retry_after_s) == (Code.UNAVAILABLE, PAUSE_S + EFFECT_TRIALS_AFTER_S)
        assert (await world.operations(), world.account.sent) == ([], [])

    async def test_a_repeat_gets_its_answer_while_the_gateway_fails(self, world: World) -> None:
        """It needs no call."""
        first = await charge(world.relay, asked(), CHARGE)
        await circuit_open(world)
        assert (await charge(world.relay, asked(), CHARGE)).body == first.body

    async def test_what_waits_when_the_gateway_is_found_failing_is_refused(self, world: World) -> None:
        """Nothing is on disk yet, and its key is free."""
        world.limit_to(RateLimit(1, 10.0))
        permit = await world.account.rate_limiter.take_now()
        assert permit is not None
        task = await waiting_charge(world)
        for _ in range(ENDED_MIN):
            permit.report(Ending.FAILED, "timeout")
        with pytest.raises(Refusal) as caught:
            await task
        assert (caught.value.code, await world.operations()) == (Code.UNAVAILABLE, [])

    async def test_what_waits_when_the_budget_is_lost_stores_nothing(self, world: World) -> None:
        """Nobody knows whether a permit is free: nothing is sent."""
        world.limit_to(RateLimit(1, 10.0))
        await world.account.rate_limiter.take_now()
        budget = LostBudget(RateLimit(1, 10.0), world.clock)
        world.account.rate_limiter = RateLimiter(
            RateLimit(1, 10.0), world.clock, timer=world.account.timer, budget=budget
        )
        with pytest.raises(StoreUnavailable):
            await charge(world.relay, asked(), CHARGE)
        assert await world.operations() == []


class LostBudget(MemoryBudget):
    """Is full at first, and then in a store that is down."""

    takes = 0

    async def take(self, wanted: Sequence[Consumer], permit_s: float) -> PermitsGranted:  # noqa: ARG002, the face of a budget
        """Can't say, the second time."""
        self.takes += 1
        if self.takes > 1:
            raise StoreUnavailable("down")
        return PermitsGranted((), 1.0)


async def circuit_open(world: World) -> None:
    """Opens the circuit breaker."""
    permit = await world.account.rate_limiter.take_now()
    assert permit is not None
    for _ in range(ENDED_MIN):
        permit.report(Ending.FAILED, "timeout")
    permit.done()


class TestResending:
    """The one retry with a new token, after a dead access token."""

    async def test_the_retry_is_journaled_first(self, world: World) -> None:
        """The history has both sendings, and the version went up before the second one."""
        world.account.has_dead_token = True
        await charge(world.relay, asked(), CHARGE)
        row = await world.operation()
        events = [entry.event for entry in await world.journal.history(row.id)]
        assert (events, world.account.resendings) == ([None, Event.RESENT, Event.SUCCEEDED], [True])

    @pytest.mark.parametrize("error", [StoreUnavailable("down"), Outdated("changed")])
    async def test_it_is_forbidden_where_it_can_not_be_journaled(self, world: World, error: Exception) -> None:
        """Then nothing was executed, and the client's answer says so."""
        world.account.has_dead_token = True
        world.steps.put("record", Raising(error), times=1 if isinstance(error, StoreUnavailable) else ATTEMPTS_MAX)
        await charge(world.relay, asked(), CHARGE)
        assert (world.account.resendings, world.account.ledger) == ([False], [])
        assert (await world.operation()).state is State.NOT_SENT

    async def test_it_is_forbidden_after_the_row_was_declared_lost(self, world: World) -> None:
        """The resolution may have begun by now."""
        world.account.has_dead_token = True
        gate = Gate()
        world.steps.put("effect", gate)
        task = asyncio.ensure_future(charge(world.relay, asked(), CHARGE))
        await gate.reached.wait()
        await recover(world.relay, is_sole_owner=True)
        gate.opened.set()
        await task
        assert (world.account.resendings, world.account.ledger) == ([False], [])
        assert await world.states() == [State.SENDING, State.UNKNOWN, State.NOT_SENT]


class TestConclusion:
    """An outcome is answered once it is stored, and stored as soon as it can be."""

    @pytest.mark.parametrize(
        ("step", "error", "times"),
        [
            ("record", StoreUnavailable("down"), 3),
            ("recorded", StoreUnavailable("the connection was lost at the commit"), 1),
            ("record", Outdated("changed"), ATTEMPTS_MAX),
        ],
    )
    async def test_an_outcome_that_can_not_be_stored_is_stored_later(
        self, world: World, step: str, error: Exception, times: int
    ) -> None:
        """The client gets an unknown outcome; its repeat, a moment later, gets the answer."""
        world.steps.put(step, Raising(error), times=times)
        answer = await charge(world.relay, asked(), CHARGE)
        assert (answer.http_status, json.loads(answer.body)["data"]) == (202, None)
        await world.relay.background.finish(5)
        assert (await charge(world.relay, asked(), CHARGE)).http_status == 200
        assert await world.states() == [State.SENDING, State.SUCCEEDED]
        assert (world.log_events, world.account.ledger) == (["outcome_not_stored", "outcome_stored_late"], [CHARGE])

    async def test_an_outcome_that_is_never_stored_is_given_up_and_found_as_lost(self, world: World) -> None:
        """After some six minutes the row speaks for itself: it may have been sent.

        The log calls the reply's outcome so, as the metrics do: ``kind`` is the operation's in every other record.
        """
        world.steps.put("record", DOWN, times=len(STORE_AGAIN_AFTER_S) + 1)
        await charge(world.relay, asked(), CHARGE)
        await world.relay.background.finish(5)
        assert world.pauses == list(STORE_AGAIN_AFTER_S)
        assert world.log_events[-1] == "outcome_given_up"
        assert {record["outcome"] for record in world.log_records} == {OutcomeKind.SUCCEEDED}
        assert await recover(world.relay, is_sole_owner=True) == 1
        assert (await world.operation()).state is State.UNKNOWN

    @pytest.mark.parametrize("kind", OutcomeKind)
    async def test_a_reply_after_the_row_was_declared_lost_still_counts(self, world: World, kind: OutcomeKind) -> None:
        """It is the best evidence there is."""
        world.account.script.append(outcome_of(kind))
        gate = Gate()
        world.steps.put("executed", gate)
        task = asyncio.ensure_future(charge(world.relay, asked(), CHARGE))
        await gate.reached.wait()
        await recover(world.relay, is_sole_owner=True)
        gate.opened.set()
        await task
        final = TRANSITIONS[State.SENDING, EVENT_OF_OUTCOME[kind]]
        # The row says already that nobody knows; to say it again would hide what the resolution has begun since.
        content = [] if final is State.UNKNOWN else [final]
        assert await world.states() == [State.SENDING, State.UNKNOWN, *content]

    @pytest.mark.parametrize(("resolved_as", "status"), [(OutcomeKind.SUCCEEDED, 200), (OutcomeKind.DECLINED, 202)])
    async def test_a_reply_to_what_was_resolved_meanwhile_changes_nothing(
        self, world: World, resolved_as: OutcomeKind, status: int
    ) -> None:
        """The stored answer is given where the two agree; where they differ, an operator must look, and 202 is true."""
        gate = Gate()
        world.steps.put("executed", gate)
        task = asyncio.ensure_future(charge(world.relay, asked(), CHARGE))
        await gate.reached.wait()
        await world.resolve(resolved_as)
        gate.opened.set()
        answer = await task
        assert answer.http_status == status
        assert await world.states() == [State.SENDING, TRANSITIONS[State.SENDING, EVENT_OF_OUTCOME[resolved_as]]]
        assert ("reply_after_resolution" in world.log_events) is (status == 202)

    @pytest.mark.parametrize(
        "kind", [OutcomeKind.NOT_SENT, OutcomeKind.NOT_EXECUTED, OutcomeKind.REFUSED, OutcomeKind.DECLINED]
    )
    async def test_a_sending_that_came_to_nothing_says_nothing_once_there_was_another(
        self, world: World, kind: OutcomeKind
    ) -> None:
        """A machine that slept found its row given up and sent once more: that nothing was sent would be a lie."""
        world.account.script.append(outcome_of(kind))
        gate = Gate()
        world.steps.put("executed", gate)
        task = asyncio.ensure_future(charge(world.relay, asked(), CHARGE))
        await gate.reached.wait()
        await recover(world.relay, is_sole_owner=True)
        await world.journal_resending()
        gate.opened.set()
        assert (await task).http_status == 202
        assert await world.states() == [State.SENDING, State.UNKNOWN, State.UNKNOWN]

    async def test_a_reply_behind_a_decision_that_it_failed_takes_the_order_back(self, world: World) -> None:
        """A machine slept, and its row was given up and decided: no second charge until an operator has looked."""
        gate = Gate()
        world.steps.put("executed", gate)
        task = asyncio.ensure_future(charge(world.relay, asked(), CHARGE))
        await gate.reached.wait()
        await recover(world.relay, is_sole_owner=True)
        await decide(world.relay, decision_on(await world.operation(), State.FAILED))
        gate.opened.set()
        await task
        row = await world.operation()
        assert (row.state, row.guard) == (State.NEEDS_ATTENTION, row.subject)
        with pytest.raises(Refusal, match="same order"):
            await charge(world.relay, asked("k-2"), CHARGE)

    async def test_after_a_late_reply_and_a_second_decision_no_inquiry_is_made(self, world: World) -> None:
        """An operator has seen the reply: to find it again would alert somebody every day for a month."""
        gate = Gate()
        world.steps.put("executed", gate)
        task = asyncio.ensure_future(charge(world.relay, asked(), CHARGE))
        await gate.reached.wait()
        await recover(world.relay, is_sole_owner=True)
        await decide(world.relay, decision_on(await world.operation(), State.FAILED))
        gate.opened.set()
        await task
        made = await decide(world.relay, decision_on(await world.operation(), State.FAILED))
        assert made.operation.inquire_at_ms is None

    async def test_what_was_called_failed_and_paid_beside_another_charge_is_told(self, world: World) -> None:
        """Its reply shows, and an operator decides it, after the other charge has looked at what the order has."""
        first, second = Gate(), Gate()
        world.steps.put("executed", first)
        late = asyncio.ensure_future(charge(world.relay, asked("k-1"), CHARGE))
        await first.reached.wait()
        await recover(world.relay, is_sole_owner=True)
        failed = (await decide(world.relay, decision_on(await world.operation(), State.FAILED))).operation
        world.steps.put("effect", second, first=world.steps.passed.count("effect") + 1)
        other = asyncio.ensure_future(charge(world.relay, asked("k-2"), CHARGE))
        await second.reached.wait()
        first.opened.set()
        await late
        back = await world.journal.get(failed.id)
        assert back is not None
        assert (await decide(world.relay, decision_on(back))).operation.state is State.SUCCEEDED
        second.opened.set()
        assert (await other).http_status == 200

        told = await world.relay.money.paid_again.told(since_ms=0)
        assert [each.order_id for each in told] == ["A-1"]

    async def test_an_outcome_of_a_row_that_is_gone_is_not_answered(self, world: World) -> None:
        """Where an older database was restored, it doesn't say what happened."""
        world.steps.put("record", Raising(Outdated("gone")))
        world.steps.put("get", world.forget)
        answer = await charge(world.relay, asked(), CHARGE)
        assert answer.http_status == 202
        assert "reply_after_resolution" in world.log_events


class TestCancellation:
    """A client that disconnects ends only its wait."""

    @pytest.mark.parametrize("step", ["accept", "accepted", "effect", "executed", "record", "recorded"])
    async def test_a_client_that_goes_away_cancels_nothing(self, world: World, step: str) -> None:
        """From the intent on, at every step, it is carried to its end and stored."""
        gate = Gate()
        world.steps.put(step, gate)
        task = asyncio.ensure_future(charge(world.relay, asked(), CHARGE))
        await gate.reached.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        gate.opened.set()
        assert await world.relay.background.finish(5) == 0
        assert (await charge(world.relay, asked(), CHARGE)).http_status == 200
        assert world.account.ledger == [CHARGE]

    async def test_a_client_that_goes_away_before_the_intent_leaves_nothing(self, world: World) -> None:
        """Nothing was promised yet."""
        gate = Gate()
        world.steps.put("find", gate)
        task = asyncio.ensure_future(charge(world.relay, asked(), CHARGE))
        await gate.reached.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert (await world.operations(), world.account.sent) == ([], [])

    async def test_a_client_that_goes_away_while_it_waits_for_a_permit_is_still_charged(self, world: World) -> None:
        """Its intent is on disk; whether the answer reaches it was never certain."""
        world.limit_to(RateLimit(1, 10.0))
        permit = await world.account.rate_limiter.take_now()
        assert permit is not None
        (await waiting_charge(world)).cancel()
        permit.release_unused()
        assert await world.relay.background.finish(5) == 0
        assert (await world.operation()).state is State.SUCCEEDED
