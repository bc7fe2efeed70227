"""The budget of calls at the beginning of a recovery: nobody knows what the lost minutes used of it."""

from dataclasses import replace

import msgspec
from tests.flows.losing import Losing
from tests.flows.vault import MERCHANT
from tests.relays import SEAL

from payrelay.core.gateways.fair_shares import OURS
from payrelay.flows.alerts.alert import tell_behind
from payrelay.flows.database.begin_recovery import BUDGETS_WAIT_MS, begin_recovery
from payrelay.runtime.database.lost_commits import LostCommits
from payrelay.store.database.identity import IdentityStore
from payrelay.store.engine.database import Statement, all_rows
from payrelay.store.engine.queries import query
from payrelay.store.gateways.budget import StoredBudget
from payrelay.store.upgrades.begin import begin_store

ALERTED = query("SELECT row_name FROM row_alerts")
A_WAIT_AGO = query("UPDATE places SET free_at_ms = free_at_ms - $1")


async def test_no_permit_is_given_for_a_window_after_a_recovery_has_begun(losing: Losing) -> None:
    """The restored rows say that all permits are free; the gateway has just counted the calls of the lost minutes."""
    world = losing.world
    await begin_store(world.database, SEAL, world.clock)
    budget = StoredBudget(world.database, world.clock, MERCHANT, calls=2, window_s=10)
    assert len((await budget.take([OURS], 1)).grants) == 1
    await begin_recovery(IdentityStore(world.database, SEAL), world.clock, lost_since_ms=0, operator="dana", note="")

    refused = await budget.take([OURS], 1)
    assert refused.grants == ()
    assert refused.next_in_s is not None
    assert BUDGETS_WAIT_MS - 1_000 <= refused.next_in_s * 1000 <= BUDGETS_WAIT_MS


async def test_a_merchant_of_whom_no_row_is_left_waits_as_well(losing: Losing) -> None:
    """The copy was made before the first call; the gateway has counted those that came after it."""
    world = losing.world
    await begin_store(world.database, SEAL, world.clock)
    identities = IdentityStore(world.database, SEAL)
    await begin_recovery(identities, world.clock, lost_since_ms=0, operator="dana", note="", merchants={MERCHANT})

    assert (
        await StoredBudget(world.database, world.clock, MERCHANT, calls=2, window_s=10).take([OURS], 1)
    ).grants == ()


async def test_a_database_that_is_behind_gives_no_permit_before_anybody_begins_a_recovery(losing: Losing) -> None:
    """Clients go on reading at the gateway meanwhile, and it has counted the calls of the lost minutes."""
    world = losing.world
    await tell_behind(world.relay)
    budget = StoredBudget(world.database, world.clock, MERCHANT, calls=2, window_s=10)
    assert len((await budget.take([OURS], 1)).grants) == 1
    world.relay.database.lost_commits.fall_behind(1, "the mark is newer")
    await tell_behind(world.relay)

    assert (await budget.take([OURS], 1)).grants == ()


async def test_reads_go_on_a_minute_after_a_database_fell_behind_for_this_process_alone(losing: Losing) -> None:
    """Nothing of it is stored then, and the job that tells of it runs each second: it must not begin the wait anew."""
    world = losing.world
    budget = StoredBudget(world.database, world.clock, MERCHANT, calls=2, window_s=10)
    world.relay.database.lost_commits.fall_behind(1, "a mark of another database", is_lasting=False)
    await tell_behind(world.relay)
    # PostgreSQL has the time itself: the rows are put back in place of a wait.
    await world.database.write(all_rows(Statement(A_WAIT_AGO, (BUDGETS_WAIT_MS,))))
    await tell_behind(world.relay)

    assert len((await budget.take([OURS], 1)).grants) == 1


async def test_what_proves_to_be_for_good_is_told_all_the_same(losing: Losing) -> None:
    """Otherwise no other process would learn that it may let nothing take effect."""
    world = losing.world
    await begin_store(world.database, SEAL, world.clock)
    identities = IdentityStore(world.database, SEAL)
    lost_commits = LostCommits(identities.read, world.clock, world.relay.log, change=identities.change)
    relay = replace(world.relay, database=replace(world.relay.database, lost_commits=lost_commits))
    lost_commits.fall_behind(1, "a mark of another database", is_lasting=False)
    await tell_behind(relay)
    lost_commits.fall_behind(1, "the mark is newer")
    await tell_behind(relay)

    assert (await identities.read()).current.behind == "the mark is newer"


async def test_tables_that_are_made_anew_beneath_a_service_are_told_once(losing: Losing) -> None:
    """The place of the tables says that they are a copy, and nothing of it is stored: nobody would hear of it."""
    world = losing.world
    await begin_store(world.database, SEAL, world.clock)
    identities = IdentityStore(world.database, SEAL)
    await identities.change(lambda each: each.with_current(msgspec.structs.replace(each.current, place="elsewhere")))
    lost_commits = LostCommits(identities.read, world.clock, world.relay.log, change=identities.change)
    relay = replace(world.relay, database=replace(world.relay.database, lost_commits=lost_commits))
    budget = StoredBudget(world.database, world.clock, MERCHANT, calls=2, window_s=10)
    await tell_behind(relay)
    told = await world.database.read(all_rows(Statement(ALERTED, ())))
    assert (await budget.take([OURS], 1)).grants == ()
    await world.database.write(all_rows(Statement(A_WAIT_AGO, (BUDGETS_WAIT_MS,))))
    await tell_behind(relay)

    assert [str(row[0]) for row in told] == ["incarnations/1"]
    assert len((await budget.take([OURS], 1)).grants) == 1
