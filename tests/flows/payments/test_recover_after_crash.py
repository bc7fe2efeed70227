import asyncio

import msgspec
import pytest
from tests.flows.world import CHARGE, START_MS, Crash, Raising, ScriptedAccount, World, asked, outcome_of

from payrelay.core.outcomes import Evidence, OutcomeKind
from payrelay.core.payments.operation import SEND_WITHIN_S, Event, JournalEntry, State
from payrelay.errors import Outdated, StoreUnavailable
from payrelay.flows.payments.charge import charge
from payrelay.flows.payments.recover_after_crash import GRACE_MS, recover
from payrelay.store.payments.journal import STRANDED_MAX

STALE_MS = int((SEND_WITHIN_S + 30) * 1000) + GRACE_MS


async def crash_at(world: World, step: str) -> None:
    """Leaves the row that a process leaves which dies at this step."""
    world.steps.put(step, Raising(Crash()))
    with pytest.raises(Crash):
        await charge(world.relay, asked(world.relay), CHARGE)


async def test_an_operation_that_may_have_been_sent_is_unknown(world: World) -> None:
    """It keeps its guard and its claim until evidence comes."""
    await crash_at(world, "effect")
    assert await recover(world.relay, is_sole_owner=True) == 1
    row = await world.operation()
    assert (row.state, row.guard, row.claim) == (State.UNKNOWN, "order/A-1", "key/k-1")
    assert world.log_events == ["operation_recovered"]


async def test_an_operation_that_only_waited_was_not_sent(world: World) -> None:
    """An earlier build stored it before it had a permit, and died. Its key and its order are free again at once."""
    await crash_at(world, "accepted")
    of_order = {"order_id": "A-2", "subject": "order/A-2", "guard": "order/A-2", "claim": "key/k-2"}
    waiting = msgspec.structs.replace(await world.operation(), id="op_waiting", state=State.ACCEPTED, **of_order)
    entry = JournalEntry(version=1, at_ms=START_MS, event=None, state=State.ACCEPTED, evidence=Evidence())
    await world.journal.accept(waiting, entry, CHARGE, conflicts_with=None, now_ms=START_MS)
    await recover(world.relay, is_sole_owner=True)
    row = await world.journal.get(waiting.id)
    assert row is not None
    assert (row.state, row.guard, row.claim) == (State.NOT_SENT, None, None)
    assert [entry.event for entry in await world.journal.history(row.id)] == [None, Event.GAVE_UP]


async def test_recovering_twice_finds_nothing_more(world: World) -> None:
    """It may be repeated, by a worker or at the next start."""
    await crash_at(world, "effect")
    assert [await recover(world.relay, is_sole_owner=True) for _ in range(2)] == [1, 0]


@pytest.mark.parametrize("kind", OutcomeKind)
async def test_an_operation_with_an_outcome_is_left_alone(world: World, kind: OutcomeKind) -> None:
    """Only operations without a living process are recovered."""
    world.account.script.append(outcome_of(kind))
    await charge(world.relay, asked(world.relay), CHARGE)
    before = await world.operation()
    assert await recover(world.relay, is_sole_owner=True) == 0
    assert await world.operation() == before


@pytest.mark.parametrize(("passed_ms", "recovered"), [(STALE_MS, 0), (STALE_MS + 1, 1)])
async def test_beside_other_processes_only_overdue_operations_are_recovered(
    world: World, passed_ms: int, recovered: int
) -> None:
    """Another process may be sending a younger operation at this moment."""
    await crash_at(world, "effect")
    world.clock.passed_ms = passed_ms
    assert await recover(world.relay, is_sole_owner=False) == recovered


async def test_an_operation_waits_for_its_own_accounts_timeout(world: World) -> None:
    """One slow account must not keep the others' orders blocked; one quick account must not cut a slow one short."""
    await crash_at(world, "effect")
    quick = ScriptedAccount(world.clock, world.steps, world.journal)
    quick.timeout_s = 1.0
    world.accounts["quick"] = quick
    found = []
    for passed_ms in (STALE_MS, STALE_MS + 1):
        world.clock.passed_ms = passed_ms
        found.append(await recover(world.relay, is_sole_owner=False))
    assert found == [0, 1]


async def test_an_operation_that_changes_meanwhile_is_left_alone(world: World) -> None:
    """Two workers may find one operation, and one of them is quicker."""
    await crash_at(world, "effect")
    world.steps.put("record", Raising(Outdated("changed")))
    assert await recover(world.relay, is_sole_owner=True) == 0
    assert world.log_events == []


async def test_a_failing_store_is_reported(world: World) -> None:
    """A server that can't recover operations must not begin to answer requests."""
    await crash_at(world, "effect")
    world.steps.put("record", Raising(StoreUnavailable("down")))
    with pytest.raises(StoreUnavailable):
        await recover(world.relay, is_sole_owner=True)


async def test_more_operations_than_the_journal_returns_at_once_are_all_recovered(world: World) -> None:
    """A row that was forgotten at the start would hold its order until the next one."""
    world.journal.stranded_max = 2
    world.steps.put("effect", Raising(Crash()), times=5)
    charges = [charge(world.relay, asked(world.relay, f"k-{number}"), world.charge_of(number)) for number in range(5)]
    await asyncio.gather(*charges, return_exceptions=True)
    assert await recover(world.relay, is_sole_owner=True) == 5
    assert world.journal.stranded_max < STRANDED_MAX


async def test_without_accounts_there_is_still_something_to_recover(world: World) -> None:
    """The account may have been taken out of the settings since."""
    await crash_at(world, "effect")
    world.accounts.clear()
    assert await recover(world.relay, is_sole_owner=True) == 1
