"""Whom a recovery still concerns, and when it ends."""

from dataclasses import replace

import msgspec
import pytest
from tests.flows.world import START_MS, World, asked
from tests.identities import give_identity
from tests.relays import SEAL

from payrelay.core.answers import Answer
from payrelay.core.database.incarnations import Incarnation
from payrelay.core.payments.schedules import DAY_MS
from payrelay.errors import Code, Refusal
from payrelay.flows.database.begin_recovery import begin_recovery
from payrelay.recovery.flows.acknowledge import acknowledge, acknowledge_recovery, show_recovery
from payrelay.recovery.flows.end_recovery import end_recovery, end_recovery_when_over
from payrelay.recovery.flows.reports.show_status import recovery_status
from payrelay.runtime.database.lost_commits import LostCommits


async def recovering(world: World) -> Incarnation:
    """Begins a recovery of the last hour."""
    await give_identity(world.database, SEAL, 1)
    return await begun(world)


async def begun(world: World) -> Incarnation:
    """Begins a recovery of the last hour, on a database that has its identity."""
    since_ms = world.clock.now_ms() - 3_600_000
    return await begin_recovery(
        world.relay.database.identities, world.clock, lost_since_ms=since_ms, operator="ann", note="restored"
    )


def told(answer: Answer) -> dict[str, object]:
    """Gives the data of an answer."""
    envelope = msgspec.json.decode(answer.body)
    return dict(envelope["data"])


async def test_a_principal_reads_what_was_lost_and_acknowledges_it(world: World) -> None:
    """By the incarnation that it read; a repeat changes nothing, not even the time."""
    await recovering(world)
    shown = told(await show_recovery(world.relay, asked()))
    acknowledged = told(await acknowledge_recovery(world.relay, asked(), 2))
    world.clock.passed_ms = 5_000
    again = told(await acknowledge_recovery(world.relay, asked(), 2))

    assert (shown["incarnation"], shown["is_recovering"], shown["acknowledged_at"]) == (2, True, None)
    assert (shown["lost_since"], shown["lost_until"]) == ("2023-11-14T21:13:20.000Z", "2023-11-14T22:13:20.000Z")
    assert acknowledged["acknowledged_at"] == "2023-11-14T22:13:20.000Z"
    assert again == acknowledged
    assert (await world.relay.database.identities.read()).current.acknowledged == {"shop": START_MS}


async def test_an_acknowledgement_counts_for_its_own_recovery_alone(world: World) -> None:
    """A repeat that comes late must not free the requests of a later lost window."""
    await recovering(world)
    await acknowledge(world.relay.database.identities, world.clock, "shop", 2)
    await begun(world)
    with pytest.raises(Refusal) as refused:
        await acknowledge(world.relay.database.identities, world.clock, "shop", 2)

    assert refused.value.code is Code.CONFLICT
    assert (await world.relay.database.identities.read()).current.acknowledged == {}


async def test_nothing_is_acknowledged_where_nothing_was_lost(world: World) -> None:
    """There is no recovery to acknowledge."""
    await give_identity(world.database, SEAL, 1)
    with pytest.raises(Refusal):
        await acknowledge(world.relay.database.identities, world.clock, "shop", 1)
    with pytest.raises(Refusal):
        await end_recovery(world.relay)

    shown = told(await show_recovery(world.relay, asked()))
    assert shown == {
        "incarnation": 1,
        "is_recovering": False,
        "lost_since": None,
        "lost_until": None,
        "acknowledged_at": None,
    }


async def test_a_recovery_ends_by_itself_when_no_lost_request_can_come_again(world: World) -> None:
    """Thirty days after the window, as long as a client repeats with its key; and not one moment sooner."""
    await recovering(world)
    lost_commits = LostCommits(world.relay.database.identities.read, world.clock, world.relay.log)
    relay = replace(world.relay, database=replace(world.relay.database, lost_commits=lost_commits))
    world.clock.passed_ms = 30 * DAY_MS - 1
    assert await end_recovery_when_over(relay) is False
    world.clock.passed_ms = 30 * DAY_MS + 1_000
    assert await end_recovery_when_over(relay) is True
    current = (await relay.database.identities.read()).current

    assert (current.is_recovering, current.ended_recovery_at_ms) == (False, world.clock.now_ms())
    assert await end_recovery_when_over(relay) is False


async def test_the_status_names_who_has_not_acknowledged(world: World) -> None:
    """And when the recovery ends by itself."""
    await recovering(world)
    status = await recovery_status(world.relay)

    assert status.ends_at_ms == START_MS + 30 * DAY_MS
    assert (status.held, status.waiting_for) == ({}, [])
