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
    """Counts who waits."""

    def __init__(self, poll_every_s: float) -> None:
        super().__init__(poll_every_s=poll_every_s)
        self.is_held = asyncio.Event()

    @contextmanager
    def slot(self, operation_id: str) -> Iterator[HeldResponse | None]:
        """Gives the slot of its parent, and notes it."""
        with super().slot(operation_id) as held_response:
            self.is_held.set()
            yield held_response


class WaitingClient:
    """Makes requests whose responses are held for at most 30 s; other processes' changes are polled often."""

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
        request = asked(self.relay, key)
        story = partial(charge, self.relay, request, CHARGE)
        return asyncio.create_task(answer_when_known(self.relay, request, self.wait_preference(), story))

    def show(self, operation_id: str, principal: str = "shop") -> "asyncio.Task[Answer]":
        """Begins to read an operation."""
        request = asked(self.relay, principal=principal)
        return asyncio.create_task(show_when_final(self.relay, request, operation_id, self.wait_preference()))


@pytest.fixture
async def client(world: World) -> WaitingClient:
    """Gives the waiting client."""
    return WaitingClient(world)


async def open_charge(world: World) -> str:
    """Makes a charge whose outcome is open; gives its id."""
    world.account.script.append(outcome_of(OutcomeKind.UNKNOWN))
    await charge(world.relay, asked(world.relay), CHARGE)
    return (await world.operation()).id


async def running(world: World, kind: OutcomeKind = OutcomeKind.SUCCEEDED) -> tuple[Gate, "asyncio.Task[Answer]"]:
    """Begins a charge that stands at the gateway until the gate is opened."""
    gate = Gate()
    world.steps.put("effect", gate)
    world.account.script.append(outcome_of(kind))
    first = asyncio.create_task(charge(world.relay, asked(world.relay), CHARGE))
    await gate.reached.wait()
    return gate, first


async def test_an_outcome_that_is_known_is_answered_at_once(client: WaitingClient) -> None:
    """A client that would wait loses nothing by that."""
    answer = await client.ask()
    assert (answer.http_status, answer.headers[-1]) == (200, APPLIED)


@pytest.mark.parametrize("kind", [OutcomeKind.SUCCEEDED, OutcomeKind.DECLINED, OutcomeKind.REFUSED])
async def test_a_response_is_held_until_its_outcome_is_known(
    world: World, client: WaitingClient, kind: OutcomeKind
) -> None:
    """The client gets the finished answer byte for byte, not marked as a replay: nobody had it before."""
    world.account.script.append(outcome_of(OutcomeKind.UNKNOWN))
    task = client.ask()
    await client.held_responses.is_held.wait()
    await world.resolve(kind)
    answer, row = await task, await world.operation()
    kept = await world.journal.answer_of(row.id)
    assert kept is not None
    assert (answer.http_status, answer.body) == (kept.http_status, kept.body)
    assert answer.headers == (("Payrelay-Operation", row.id), APPLIED)
    assert len(world.account.ledger) == 1


async def test_a_change_by_this_process_ends_the_wait_at_once(world: World) -> None:
    """A change that this process makes needs no read of the store."""
    client = WaitingClient(world, poll_every_s=3600)
    world.account.script.append(outcome_of(OutcomeKind.UNKNOWN))
    task = client.ask()
    await client.held_responses.is_held.wait()
    await world.resolve(OutcomeKind.SUCCEEDED)
    client.relay.hooks.operation_changed(await world.operation())
    assert (await task).http_status == 200


@pytest.mark.parametrize("left_s", [0.05, 0, -1])
async def test_the_end_of_the_clients_time_ends_the_wait(world: World, client: WaitingClient, left_s: float) -> None:
    """The client gets 202 with Retry-After. Its seconds count from the request, so that none may be left."""
    client.left_s = left_s
    world.account.script.append(outcome_of(OutcomeKind.UNKNOWN))
    answer = await client.ask()
    assert (answer.http_status, answer.code, answer.retry_after_s) == (202, Code.OUTCOME_UNKNOWN, 10)
    assert APPLIED in answer.headers


async def test_an_operation_that_needs_an_operator_is_answered_at_once(world: World, client: WaitingClient) -> None:
    """No connection is held for an operator's decision, which may take hours."""
    world.account.script.append(outcome_of(OutcomeKind.DIFFERED))
    answer = await client.ask()
    assert (answer.http_status, answer.retry_after_s) == (202, 3600)


async def test_an_operation_that_comes_to_need_an_operator_ends_the_wait(world: World, client: WaitingClient) -> None:
    """An operator's decision is not awaited either where the need for it comes up during the wait."""
    world.account.script.append(outcome_of(OutcomeKind.UNKNOWN))
    task = client.ask()
    await client.held_responses.is_held.wait()
    await world.resolve(OutcomeKind.DIFFERED)
    assert ((await task).retry_after_s, (await world.operation()).state) == (3600, State.NEEDS_ATTENTION)


@pytest.mark.parametrize("kind", [OutcomeKind.SUCCEEDED, OutcomeKind.DECLINED])
async def test_a_repeat_waits_for_the_first(world: World, client: WaitingClient, kind: OutcomeKind) -> None:
    """Instead of 409 a repeat gets the first request's answer, marked as a replay; one call goes out."""
    gate, first = await running(world, kind)
    repeat = client.ask()
    await client.held_responses.is_held.wait()
    gate.opened.set()
    answer = await repeat
    assert answer.body == (await first).body
    assert REPLAYED in answer.headers
    assert len(world.account.sent) == 1


async def test_a_repeat_that_waited_in_vain_is_in_progress(world: World, client: WaitingClient) -> None:
    """The repeat gets 409, as without waiting, and the first request goes on."""
    gate, first = await running(world)
    client.left_s = 0.05
    with pytest.raises(StillRunning) as caught:
        await client.ask()
    assert APPLIED in caught.value.headers
    gate.opened.set()
    assert (await first).http_status == 200


async def test_a_repeat_of_an_open_operation_is_marked_as_a_replay(world: World, client: WaitingClient) -> None:
    """The first request had its answer, a 202; the repeat waits for an operation that it did not begin."""
    await open_charge(world)
    world.clock.passed_ms += 1000
    task = client.ask()
    await client.held_responses.is_held.wait()
    await world.resolve(OutcomeKind.SUCCEEDED)
    assert REPLAYED in (await task).headers


async def test_nothing_is_sent_anew_by_waiting(world: World, client: WaitingClient) -> None:
    """Where the first request was not sent, the repeat hears that nothing was done, and the client decides."""
    gate, first = await running(world, OutcomeKind.NOT_SENT)
    repeat = client.ask()
    await client.held_responses.is_held.wait()
    gate.opened.set()
    await first
    answer = await repeat
    assert (answer.http_status, answer.code) == (503, Code.UNAVAILABLE)
    assert len(world.account.sent) == 1


async def test_another_charge_of_the_order_is_refused_at_once(world: World, client: WaitingClient) -> None:
    """A client waits for the answer to its own request; it can't wait for another operation's guard."""
    await open_charge(world)
    with pytest.raises(Refusal) as caught:
        await client.ask(key="another")
    assert caught.value.code is Code.IN_PROGRESS
    assert not client.held_responses.is_held.is_set()


async def test_a_client_that_leaves_ends_the_wait_only(world: World, client: WaitingClient) -> None:
    """No slot stays taken for a client that has left, and the operation goes on."""
    world.account.script.append(outcome_of(OutcomeKind.UNKNOWN))
    task = client.ask()
    await client.held_responses.is_held.wait()
    client.gone.set()
    assert (await task).http_status == 202
    await world.resolve(OutcomeKind.SUCCEEDED)
    assert (await charge(world.relay, asked(world.relay), CHARGE)).http_status == 200


async def test_a_stop_ends_the_wait(world: World, client: WaitingClient) -> None:
    """A program that is about to stop answers with what it knows."""
    world.account.script.append(outcome_of(OutcomeKind.UNKNOWN))
    task = client.ask()
    await client.held_responses.is_held.wait()
    client.held_responses.close()
    assert (await task).http_status == 202


async def test_without_a_slot_no_preference_is_applied(world: World, client: WaitingClient) -> None:
    """A header that says that the service waited would be false."""
    client.held_responses.close()
    world.account.script.append(outcome_of(OutcomeKind.UNKNOWN))
    answer = await client.ask()
    assert (answer.http_status, APPLIED in answer.headers) == (202, False)


async def test_a_repeat_without_a_slot_is_in_progress(world: World, client: WaitingClient) -> None:
    """A 409 must not say either that the service waited."""
    gate, first = await running(world)
    client.held_responses.close()
    with pytest.raises(StillRunning) as caught:
        await client.ask()
    assert APPLIED not in caught.value.headers
    gate.opened.set()
    await first


async def test_a_store_that_is_away_for_a_moment_ends_no_wait(world: World, client: WaitingClient) -> None:
    """The next poll may find the store up again."""
    world.account.script.append(outcome_of(OutcomeKind.UNKNOWN))
    world.steps.put("get", Raising(StoreUnavailable("busy")), times=2)
    task = client.ask()
    await client.held_responses.is_held.wait()
    await world.resolve(OutcomeKind.SUCCEEDED)
    assert (await task).http_status == 200


async def test_a_store_that_is_away_at_the_end_leaves_the_first_answer(world: World, client: WaitingClient) -> None:
    """What was known before the wait is still true."""
    client.left_s = 0.05
    world.account.script.append(outcome_of(OutcomeKind.UNKNOWN))
    world.steps.put("get", Raising(StoreUnavailable("gone")), times=1_000)
    answer = await client.ask()
    assert (answer.http_status, answer.code) == (202, Code.OUTCOME_UNKNOWN)


async def test_our_own_mistake_ends_the_wait_and_is_logged(world: World, client: WaitingClient) -> None:
    """The operation has an answer already; a fault while waiting must not take it away."""
    world.account.script.append(outcome_of(OutcomeKind.UNKNOWN))
    world.steps.put("get", Raising(ZeroDivisionError()))
    assert (await client.ask()).http_status == 202
    assert "waiting_failed" in world.log_events


async def test_an_operation_is_shown_once_it_is_final(world: World, client: WaitingClient) -> None:
    """A client that reads an operation needn't ask again and again."""
    task = client.show(await open_charge(world))
    await client.held_responses.is_held.wait()
    await world.resolve(OutcomeKind.SUCCEEDED)
    answer = await task
    assert b'"state":"succeeded"' in answer.body
    assert APPLIED in answer.headers


async def test_without_a_slot_an_operation_is_shown_at_once(world: World, client: WaitingClient) -> None:
    """A client can read an operation whether or not it can wait."""
    client.held_responses.close()
    answer = await client.show(await open_charge(world))
    assert b'"state":"unknown"' in answer.body
    assert APPLIED not in answer.headers


async def test_no_client_waits_for_an_operation_that_it_may_not_see(world: World, client: WaitingClient) -> None:
    """Another principal's operation is not found, at once: the time of an answer must tell nothing."""
    operation_id = await open_charge(world)
    with pytest.raises(Refusal) as caught:
        await client.show(operation_id, principal="stranger")
    assert caught.value.code is Code.NOT_FOUND
    assert not client.held_responses.is_held.is_set()
