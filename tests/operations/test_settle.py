from tests.operations.test_cancel_subscription import CANCEL
from tests.operations.test_refund import PART
from tests.operations.world import CHARGE, KEYED_MS, World, asked, outcome_of

from payrelay.core.calls import Refund
from payrelay.core.operations import Event, State
from payrelay.core.outcomes import Evidence, Verdict
from payrelay.core.schedules import DAY_MS, REAPPEARANCE_MS
from payrelay.operations.cancel_subscription import cancel_subscription
from payrelay.operations.case import open_case
from payrelay.operations.charge import charge
from payrelay.operations.refund import refund
from payrelay.operations.send_for_proof import SENDINGS_MAX
from payrelay.operations.settle import settle_due
from payrelay.store.journal import HISTORY_LINES_MAX


async def failed_charge(world: World) -> None:
    """Loses the reply to a charge, which somebody then decides to have failed."""
    world.account.script.append(outcome_of(Verdict.UNKNOWN))
    await charge(world.relay, asked(), CHARGE)
    gateway, row = world.relay.accounts["gateway"], await world.operation()
    case = await open_case(world.relay, gateway, row, is_nudged=False, until_s=0)
    await case.disprove(Evidence())


async def test_what_failed_is_looked_for_until_its_month_is_over(world: World) -> None:
    """Without an end each failure would cost a call a day for ever, and outgrow what is read of its history."""
    await failed_charge(world)
    for _ in range(REAPPEARANCE_MS // DAY_MS):
        assert (await world.operation()).probe_at_ms is not None
        world.clock.passed_ms += DAY_MS
        assert await settle_due(world.relay) == 1
    assert ((await world.operation()).state, (await world.operation()).probe_at_ms) == (State.FAILED, None)


async def test_looking_for_what_failed_does_not_prolong_its_key(world: World) -> None:
    """A key is kept for a time from the final state on, and a look that shows nothing is no new one."""
    await failed_charge(world)
    ends_at_ms = world.clock.now_ms() + KEYED_MS
    world.clock.passed_ms += DAY_MS
    await settle_due(world.relay)
    assert (await world.operation()).claim_ends_at_ms == ends_at_ms


async def test_a_cancellation_that_is_turned_away_for_weeks_comes_to_a_person(world: World) -> None:
    """Its history must not outgrow what is read of it: nobody would ever look at it again, nor be told."""
    world.account.script.extend([outcome_of(Verdict.UNKNOWN), *[outcome_of(Verdict.NOT_EXECUTED)] * SENDINGS_MAX])
    await cancel_subscription(world.relay, asked(), CANCEL)
    for _ in range(SENDINGS_MAX + 1):
        world.clock.passed_ms += DAY_MS
        await settle_due(world.relay)
    history = await world.journal.history((await world.operation()).id)
    assert ((await world.operation()).state, history[-1].event) == (State.NEEDS_ATTENTION, Event.UNCLEAR)
    assert len(history) < HISTORY_LINES_MAX


async def test_a_zero_in_front_hides_no_other_refund_of_a_payment(world: World) -> None:
    """A refund that shows would else be taken for one of which the answer was lost."""
    await refund(world.relay, asked("k-1"), PART)
    await refund(world.relay, asked("k-2"), Refund(payment_id="0" + PART.payment_id, description="late"))
    row = await world.operation()
    assert row.payment_id == PART.payment_id
    assert await world.relay.settling.has_other_refund(row.merchant, PART.payment_id, row.id)
