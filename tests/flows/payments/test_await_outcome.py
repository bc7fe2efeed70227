import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial

import pytest
from tests.flows.world import CHARGE, Gate, Raising, World, asked, outcome_of

from payrelay.core.answers import REPLAYED, Answer
from payrelay.core.outcomes import OutcomeKind
from payrelay.core.payments.operation import State
from payrelay.errors import Code, Refusal, StillRunning, StoreUnavailable
from payrelay.flows.payments.await_outcome import WaitPreference, answer_when_known, show_when_final
from payrelay.flows.payments.charge import charge
from payrelay.runtime.held_responses import HeldResponse, HeldResponses

APPLIED = ("Preference-Applied", "wait=30")


class Announcing(HeldResponses):
    """Tells when somebody waits."""

    def __init__(self, poll_every_s: float) -> None:
        super().__init__(poll_every_s=poll_every_s)
        self.is_held = asyncio.Event()

    @contextmanager
    def slot(self, operation_id: str) -> Iterator[HeldResponse | None]:
        """Gives the same place, and tells of it."""
        with super().slot(operation_id) as held:
            self.is_held.set()
            yield held


class Door:
    """Where requests come in that are held for at most 30 s; what others change is seen soon."""

    def __init__(self, world: World, poll_every_s: float = 0.01) -> None:
        self.held_responses = Announcing(poll_every_s)
        hooks = world.relay.hooks.also_on_change(self.held_responses.notify)
        self.relay = replace(world.relay, held_responses=self.held_responses, hooks=hooks)
        self.gone = asyncio.Event()
        self.left_s = 30.0

    def wait_preference(self) -> WaitPreference:
        """Begins to count."""
        clock = self.relay.clock
        until_s = clock.boot_s() + self.left_s
        return WaitPreference(wait_s=30, arrived_ms=clock.now_ms(), until_s=until_s, gone=self.gone.wait)

    def ask(self, key: str = "k-1") -> "asyncio.Task[Answer]":
        """Begins a charge whose answer is held."""
        request = asked(key)
        story = partial(charge, self.relay, request, CHARGE)
        return asyncio.create_task(answer_when_known(self.relay, request, self.wait_preference(), story))

    def show(self, operation_id: str, principal: str = "shop") -> "asyncio.Task[Answer]":
        """Begins to read an operation."""
        request = asked(principal=principal)
        return asyncio.create_task(show_when_final(self.relay, request, operation_id, self.wait_preference()))


@pytest.fixture
async def door(world: World) -> Door:
    """Gives the door."""
    return Door(world)


async def open_charge(world: World) -> str:
    """Makes a charge whose outcome is open; its id."""
    world.account.script.append(outcome_of(OutcomeKind.UNKNOWN))
    await charge(world.relay, asked(), CHARGE)
    return (await world.operation()).id


async def running(world: World, verdict: OutcomeKind = OutcomeKind.SUCCEEDED) -> tuple[Gate, "asyncio.Task[Answer]"]:
    """Begins a charge that stands at the gateway until the gate is opened."""
    gate = Gate()
    world.steps.put("effect", gate)
    world.account.script.append(outcome_of(verdict))
    first = asyncio.create_task(charge(world.relay, asked(), CHARGE))
    await gate.reached.wait()
    return gate, first


async def test_what_is_known_at_once_is_told_at_once(door: Door) -> None:
    """A client that would wait loses nothing by that."""
    answer = await door.ask()
    assert (answer.http_status, answer.headers[-1]) == (200, APPLIED)


@pytest.mark.parametrize("verdict", [OutcomeKind.SUCCEEDED, OutcomeKind.DECLINED, OutcomeKind.REFUSED])
async def test_an_open_outcome_is_held_until_it_is_settled(world: World, door: Door, verdict: OutcomeKind) -> None:
    """The finished answer byte for byte, and not marked as a replay: nobody had it before."""
    world.account.script.append(outcome_of(OutcomeKind.UNKNOWN))
    task = door.ask()
    await door.held_responses.is_held.wait()
    await world.settle(verdict)
    answer, row = await task, await world.operation()
    kept = await world.journal.answer_of(row.id)
    assert kept is not None
    assert (answer.http_status, answer.body) == (kept.http_status, kept.body)
    assert answer.headers == (("Payrelay-Operation", row.id), APPLIED)
    assert len(world.account.ledger) == 1


async def test_our_own_news_is_heard_at_once(world: World) -> None:
    """What this process finds out needs no look at the store."""
    door = Door(world, poll_every_s=3600)
    world.account.script.append(outcome_of(OutcomeKind.UNKNOWN))
    task = door.ask()
    await door.held_responses.is_held.wait()
    await world.settle(OutcomeKind.SUCCEEDED)
    door.relay.hooks.operation_changed(await world.operation())
    assert (await task).http_status == 200


@pytest.mark.parametrize("left_s", [0.05, 0, -1])
async def test_patience_ends_with_what_is_known_then(world: World, door: Door, left_s: float) -> None:
    """202 with its advice, as without waiting; the seconds count from the request, so that none may be left."""
    door.left_s = left_s
    world.account.script.append(outcome_of(OutcomeKind.UNKNOWN))
    answer = await door.ask()
    assert (answer.http_status, answer.code, answer.retry_after_s) == (202, Code.OUTCOME_UNKNOWN, 10)
    assert APPLIED in answer.headers


async def test_what_needs_a_person_is_told_at_once(world: World, door: Door) -> None:
    """Nobody holds a connection for a person's decision."""
    world.account.script.append(outcome_of(OutcomeKind.DIFFERED))
    answer = await door.ask()
    assert (answer.http_status, answer.retry_after_s) == (202, 3600)


async def test_what_comes_to_need_a_person_ends_the_wait(world: World, door: Door) -> None:
    """The same when it turns out while somebody waits."""
    world.account.script.append(outcome_of(OutcomeKind.UNKNOWN))
    task = door.ask()
    await door.held_responses.is_held.wait()
    await world.settle(OutcomeKind.DIFFERED)
    assert ((await task).retry_after_s, (await world.operation()).state) == (3600, State.NEEDS_ATTENTION)


@pytest.mark.parametrize("verdict", [OutcomeKind.SUCCEEDED, OutcomeKind.DECLINED])
async def test_a_repeat_waits_for_the_first(world: World, door: Door, verdict: OutcomeKind) -> None:
    """Instead of 409 it gets the first one's answer, marked as a replay; one call goes out."""
    gate, first = await running(world, verdict)
    repeat = door.ask()
    await door.held_responses.is_held.wait()
    gate.opened.set()
    answer = await repeat
    assert answer.body == (await first).body
    assert REPLAYED in answer.headers
    assert len(world.account.sent) == 1


async def test_a_repeat_that_waited_in_vain_is_in_progress(world: World, door: Door) -> None:
    """409, as without waiting; the first goes on."""
    gate, first = await running(world)
    door.left_s = 0.05
    with pytest.raises(StillRunning) as caught:
        await door.ask()
    assert APPLIED in caught.value.headers
    gate.opened.set()
    assert (await first).http_status == 200


async def test_a_repeat_of_what_is_open_is_marked_as_a_replay(world: World, door: Door) -> None:
    """The first request had its answer, a 202; what the repeat waits for is the same operation's."""
    await open_charge(world)
    world.clock.passed_ms += 1000
    task = door.ask()
    await door.held_responses.is_held.wait()
    await world.settle(OutcomeKind.SUCCEEDED)
    assert REPLAYED in (await task).headers


async def test_nothing_is_sent_anew_by_waiting(world: World, door: Door) -> None:
    """The first one was turned away: its repeat hears that nothing was done, and decides itself."""
    gate, first = await running(world, OutcomeKind.NOT_SENT)
    repeat = door.ask()
    await door.held_responses.is_held.wait()
    gate.opened.set()
    await first
    answer = await repeat
    assert (answer.http_status, answer.code) == (503, Code.UNAVAILABLE)
    assert len(world.account.sent) == 1


async def test_another_wish_on_the_same_order_is_refused_at_once(world: World, door: Door) -> None:
    """Waiting is for one's own answer; a guard in the way is told as ever."""
    await open_charge(world)
    with pytest.raises(Refusal) as caught:
        await door.ask(key="another")
    assert caught.value.code is Code.IN_PROGRESS
    assert not door.held_responses.is_held.is_set()


async def test_a_client_that_leaves_ends_the_wait_only(world: World, door: Door) -> None:
    """Nothing is held for nobody, and the operation goes its way."""
    world.account.script.append(outcome_of(OutcomeKind.UNKNOWN))
    task = door.ask()
    await door.held_responses.is_held.wait()
    door.gone.set()
    assert (await task).http_status == 202
    await world.settle(OutcomeKind.SUCCEEDED)
    assert (await charge(world.relay, asked(), CHARGE)).http_status == 200


async def test_a_stop_ends_the_wait(world: World, door: Door) -> None:
    """A program that is to end tells what it knows."""
    world.account.script.append(outcome_of(OutcomeKind.UNKNOWN))
    task = door.ask()
    await door.held_responses.is_held.wait()
    door.held_responses.close()
    assert (await task).http_status == 202


async def test_where_there_is_no_room_nothing_is_promised(world: World, door: Door) -> None:
    """A header that says that we waited would be a lie."""
    door.held_responses.close()
    world.account.script.append(outcome_of(OutcomeKind.UNKNOWN))
    answer = await door.ask()
    assert (answer.http_status, APPLIED in answer.headers) == (202, False)


async def test_a_repeat_for_which_there_is_no_room_is_in_progress(world: World, door: Door) -> None:
    """The same for a 409."""
    gate, first = await running(world)
    door.held_responses.close()
    with pytest.raises(StillRunning) as caught:
        await door.ask()
    assert APPLIED not in caught.value.headers
    gate.opened.set()
    await first


async def test_a_store_that_is_away_for_a_moment_ends_no_wait(world: World, door: Door) -> None:
    """The next look may find it again."""
    world.account.script.append(outcome_of(OutcomeKind.UNKNOWN))
    world.steps.put("get", Raising(StoreUnavailable("busy")), times=2)
    task = door.ask()
    await door.held_responses.is_held.wait()
    await world.settle(OutcomeKind.SUCCEEDED)
    assert (await task).http_status == 200


async def test_a_store_that_is_away_at_the_end_leaves_the_first_answer(world: World, door: Door) -> None:
    """What was known before the wait is still true."""
    door.left_s = 0.05
    world.account.script.append(outcome_of(OutcomeKind.UNKNOWN))
    world.steps.put("get", Raising(StoreUnavailable("gone")), times=1_000)
    answer = await door.ask()
    assert (answer.http_status, answer.code) == (202, Code.OUTCOME_UNKNOWN)


async def test_our_own_mistake_ends_the_wait_and_is_logged(world: World, door: Door) -> None:
    """The operation has an answer already; a fault while waiting must not take it away."""
    world.account.script.append(outcome_of(OutcomeKind.UNKNOWN))
    world.steps.put("get", Raising(ZeroDivisionError()))
    assert (await door.ask()).http_status == 202
    assert "waiting_failed" in world.log_events


async def test_an_operation_is_shown_once_it_is_settled(world: World, door: Door) -> None:
    """Who reads it needn't ask again and again."""
    task = door.show(await open_charge(world))
    await door.held_responses.is_held.wait()
    await world.settle(OutcomeKind.SUCCEEDED)
    answer = await task
    assert b'"state":"succeeded"' in answer.body
    assert APPLIED in answer.headers


async def test_an_operation_is_shown_as_it_is_where_there_is_no_room(world: World, door: Door) -> None:
    """Reading works whether or not anybody can wait."""
    door.held_responses.close()
    answer = await door.show(await open_charge(world))
    assert b'"state":"unknown"' in answer.body
    assert APPLIED not in answer.headers


async def test_nobody_waits_for_what_he_may_not_see(world: World, door: Door) -> None:
    """Another's operation is not there, at once: the time that an answer takes must tell nothing."""
    operation_id = await open_charge(world)
    with pytest.raises(Refusal) as caught:
        await door.show(operation_id, principal="stranger")
    assert caught.value.code is Code.NOT_FOUND
    assert not door.held_responses.is_held.is_set()
