from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest
from tests.flows.operators.test_decide import decision_on
from tests.flows.payments.test_capture import CAPTURE
from tests.flows.subscriptions.test_cancel_subscription import CANCEL
from tests.flows.world import CHARGE, Crash, Raising, World, asked, outcome_of
from tests.samples import OPERATION

from payrelay.clock import Clock
from payrelay.core.answers import Answer
from payrelay.core.outcomes import Evidence, Facts, OutcomeKind
from payrelay.core.payments.changes import Report
from payrelay.core.payments.operation import (
    FROZEN,
    OPEN_STATES,
    TRANSITIONS,
    Event,
    JournalEntry,
    Kind,
    Operation,
    State,
)
from payrelay.core.payments.proof import MatchResult
from payrelay.core.payments.schedules import DAY_MS
from payrelay.errors import IllegalTransition, Outdated, StoreUnavailable
from payrelay.flows.apply_change import ATTEMPTS_MAX, OverruledError, apply
from payrelay.flows.operators.decide import decide
from payrelay.flows.payments.capture import capture
from payrelay.flows.payments.charge import charge
from payrelay.flows.payments.recover_after_crash import recover
from payrelay.flows.relay import Relay
from payrelay.flows.resolution.resolve import resolve_due
from payrelay.flows.subscriptions.cancel_subscription import cancel_subscription
from payrelay.runtime.hooks import Hooks, OperationPoint
from payrelay.store import open_database
from payrelay.store.payments.journal import AcceptedOperation

ANSWER = Answer(http_status=200, body=b'{"status":1}')
LOST = Report(event=Event.LOST)
SUCCEEDED = Report(event=Event.SUCCEEDED, answer=ANSWER, is_firsthand=True)


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.postgresql)])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Gives the address of each of the databases, empty."""
    if request.param == "postgresql":
        return str(request.getfixturevalue("postgresql_url"))
    return f"sqlite:///{tmp_path / 'payrelay.db'}"


@pytest.fixture
async def stored_world(url: str, tmp_path: Path) -> AsyncIterator[World]:
    """Gives a world over each of the databases."""
    database = await open_database(url, clock=Clock(), owner=True)
    yield World(database, tmp_path)
    await database.close()


async def begun(world: World, number: int = 1, **members: object) -> Operation:
    """Stores an operation by its number, as it is named."""
    usual = {
        "id": f"op_{number:026}",
        "subject": f"order/{number}",
        "guard": f"order/{number}",
        "claim": f"key/k-{number}",
        "idempotency_key": f"k-{number}",
    }
    operation = msgspec.structs.replace(OPERATION, **(usual | members))
    entry = JournalEntry(version=1, at_ms=1_000, event=None, state=operation.state, evidence=Evidence())
    accepted = await world.journal.accept(operation, entry, CHARGE, conflicts_with=None, now_ms=1_000)
    assert isinstance(accepted, AcceptedOperation)
    return accepted.operation


def watching(world: World) -> tuple[Relay, list[object]]:
    """Gives a relay, and a list of what its hooks get."""
    heard: list[object] = []
    hooks = Hooks(reached=lambda crash_point, _: heard.append(crash_point), operation_changed=heard.append)
    return replace(world.relay, hooks=hooks), heard


async def test_what_is_announced_is_what_is_stored_of_every_step(stored_world: World) -> None:
    """Each step stores row, entry and answer in one commit, between two crash points; the hooks get the stored row."""
    relay, heard = watching(stored_world)
    for number, (state, event) in enumerate(TRANSITIONS):
        guard = f"order/{number}" if state in OPEN_STATES else None
        before = await begun(stored_world, number, state=state, guard=guard)
        heard.clear()
        try:
            change = await apply(relay, before, Report(event=event, answer=ANSWER))
        except IllegalTransition:
            assert event is Event.UNKNOWN
            assert heard == []
            continue
        assert await relay.journal.get(before.id) == change.operation
        assert (await relay.journal.history(before.id))[1:] == [change.entry]
        assert await relay.journal.answer_of(before.id) == (ANSWER if change.operation.state in FROZEN else None)
        assert heard == [OperationPoint.RECORDING, OperationPoint.RECORDED, change.operation]


async def test_a_first_hand_report_is_decided_anew_and_returns_what_came_before(stored_world: World) -> None:
    """Nobody else will ever report the reply; the caller goes on with the whole history."""
    relay = stored_world.relay
    sending = await begun(stored_world)
    await apply(relay, sending, LOST)
    change = await apply(relay, sending, msgspec.structs.replace(SUCCEEDED, facts=Facts(payment_id="320")))
    assert ([entry.event for entry in change.meanwhile], change.entry.event) == ([Event.LOST], Event.SUCCEEDED)
    assert change.operation == await relay.journal.get(sending.id)
    assert (change.operation.version, change.operation.payment_id) == (3, "320")


async def test_a_conclusion_from_a_row_is_void_once_the_row_has_changed(stored_world: World) -> None:
    """An inquiry that proved something did so by the history that it knew."""
    relay = stored_world.relay
    unknown = (await apply(relay, await begun(stored_world), LOST)).operation
    await apply(relay, unknown, Report(event=Event.INQUIRED_ABOUT))
    with pytest.raises(Outdated):
        await apply(relay, unknown, Report(event=Event.PROVED, answer=ANSWER))
    assert len(await relay.journal.history(unknown.id)) == 3


async def test_a_reopened_operation_takes_its_guard_unless_another_has_it(stored_world: World) -> None:
    """Until an operator has looked, a second charge of the order would be one too many; one under way stays."""
    relay, guards = stored_world.relay, []
    for number in (1, 2):
        failed = await begun(stored_world, number, state=State.FAILED, guard=None)
        if number == 2:
            await begun(stored_world, 3, guard=failed.subject)
        reopened = (await apply(relay, failed, Report(event=Event.REAPPEARED))).operation
        assert reopened == await relay.journal.get(failed.id)
        guards.append(reopened.guard)
    assert guards == ["order/1", None]


async def test_a_capture_of_a_captured_authorization_can_be_resolved(stored_world: World) -> None:
    """Another operation has the guard; without this rule the outcome could never be stored."""
    relay = stored_world.relay
    capture_of = {"kind": Kind.CAPTURE, "subject": "authorization/f", "state": State.UNKNOWN}
    first = await begun(stored_world, 1, **capture_of, guard="authorization/f")
    second = await begun(stored_world, 2, **capture_of, guard=None)
    decided = Report(event=Event.DECIDED_SUCCEEDED, answer=ANSWER)
    changes = [await apply(relay, each, decided) for each in (first, second)]
    assert [change.operation.guard for change in changes] == ["captured/authorization/f", None]


async def test_a_row_that_is_never_left_alone_is_given_up(world: World) -> None:
    """A report must not be decided anew for ever."""
    sending = await begun(world)
    world.steps.put("record", Raising(Outdated("changed")), times=ATTEMPTS_MAX)
    with pytest.raises(Outdated):
        await apply(world.relay, sending, SUCCEEDED)
    assert world.steps.passed.count("record") == ATTEMPTS_MAX


async def test_a_change_that_is_not_stored_is_not_announced(world: World) -> None:
    """A waiting client would get an answer that is not stored."""
    relay, heard = watching(world)
    world.steps.put("record", Raising(StoreUnavailable("down")))
    with pytest.raises(StoreUnavailable):
        await apply(relay, await begun(world), SUCCEEDED)
    assert heard == [OperationPoint.RECORDING]


@pytest.mark.parametrize(
    ("state", "report", "is_logged"),
    [
        (State.SUCCEEDED, SUCCEEDED, False),
        (State.DECLINED, SUCCEEDED, True),
        (
            State.SUCCEEDED,
            Report(event=Event.INQUIRED_ABOUT, evidence=Evidence(seen=MatchResult.ALREADY_DONE), is_firsthand=True),
            False,
        ),
        (State.NOT_SENT, Report(event=Event.GRANTED, is_firsthand=True), False),
        (State.DECLINED, Report(event=Event.PROVED, answer=ANSWER), False),
    ],
)
async def test_an_overruled_report_is_logged_where_it_contradicts_the_row(
    world: World, state: State, report: Report, *, is_logged: bool
) -> None:
    """Operators would look into an error that is none; one that is hidden costs money."""
    first = Report(event=Event(state.value), answer=ANSWER, is_firsthand=True)
    stands = (await apply(world.relay, await begun(world), first)).operation
    with pytest.raises(OverruledError) as caught:
        await apply(world.relay, stands, report)
    assert caught.value.operation == await world.journal.get(stands.id)
    assert ("reply_after_resolution" in world.log_events) is is_logged


async def test_a_missing_row_contradicts_nothing_where_its_commit_was_in_doubt(world: World) -> None:
    """An intent is withdrawn when its commit was in doubt; mostly there is nothing to withdraw."""
    with pytest.raises(OverruledError, match="gone from the store"):
        await apply(world.relay, OPERATION, Report(event=Event.NOT_SENT, is_firsthand=True))
    assert world.log_events == []


async def recovered(world: World, relay: Relay) -> None:
    """Recovers a charge whose process died."""
    world.steps.put("effect", Raising(Crash()))
    with pytest.raises(Crash):
        await charge(world.relay, asked(world.relay), CHARGE)
    await recover(relay, is_sole_owner=True)


async def decided(world: World, relay: Relay) -> None:
    """Decides a charge whose reply was lost."""
    world.account.script.append(outcome_of(OutcomeKind.UNKNOWN))
    await charge(world.relay, asked(world.relay), CHARGE)
    await decide(relay, decision_on(await world.operation()))


async def without_account(world: World, relay: Relay) -> None:
    """Leaves a charge to an operator whose account isn't configured any more."""
    world.account.script.append(outcome_of(OutcomeKind.UNKNOWN))
    await charge(world.relay, asked(world.relay), CHARGE)
    world.accounts.clear()
    world.clock.passed_ms += 8 * DAY_MS
    await resolve_due(relay)
    assert "operation_resolution" in world.log_events


@pytest.mark.parametrize("flow", [recovered, decided, without_account])
async def test_every_flow_announces_its_change_alike(
    world: World, flow: Callable[[World, Relay], Awaitable[None]]
) -> None:
    """No test could kill the process at a crash point that isn't announced; the hooks get the row as it is stored."""
    relay, heard = watching(world)
    await flow(world, relay)
    assert heard == [OperationPoint.RECORDING, OperationPoint.RECORDED, await world.operation()]


async def test_a_second_cancellation_that_is_refused_loses_against_a_third(world: World) -> None:
    """Another process took the resending for lost and made a third; that the second did nothing says nothing of it."""
    world.account.script.append(outcome_of(OutcomeKind.UNKNOWN))
    await cancel_subscription(world.relay, asked(world.relay), CANCEL)
    resending = (await apply(world.relay, await world.operation(), Report(event=Event.RESENT_TO_RESOLVE))).operation
    await apply(world.relay, resending, Report(event=Event.RESENT_TO_RESOLVE))
    with pytest.raises(OverruledError, match="sent once more"):
        await apply(world.relay, resending, Report(event=Event.REFUSED, answer=ANSWER, is_firsthand=True))


async def test_an_operator_can_decide_two_captures_of_one_authorization(world: World) -> None:
    """The first was decided to have failed, a second one was made, and then the first one showed itself."""
    world.account.script.append(outcome_of(OutcomeKind.SUCCEEDED, authorization_token="hold-token", payment_id="320"))
    await charge(world.relay, asked(world.relay, "k-0"), msgspec.structs.replace(CHARGE, authorize=True))
    world.account.script.append(outcome_of(OutcomeKind.UNKNOWN))
    await capture(world.relay, asked(world.relay, "k-1"), CAPTURE)
    first = await decide(world.relay, decision_on(await world.operation(), State.FAILED))
    await capture(world.relay, asked(world.relay, "k-2"), CAPTURE)
    reopened = (await apply(world.relay, first.operation, Report(event=Event.REAPPEARED))).operation
    made = await decide(world.relay, decision_on(reopened, State.SUCCEEDED))
    assert (made.operation.state, made.operation.guard) == (State.SUCCEEDED, None)
