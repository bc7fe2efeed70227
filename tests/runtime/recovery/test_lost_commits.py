"""What a process that knows of lost commits lets take effect, and until when."""

import asyncio
from collections.abc import Callable
from typing import Final

import msgspec
import pytest
from tests.flows.world import World

from payrelay.core.database.incarnations import Beginning, DatabaseIdentity, Incarnation, LostWindow
from payrelay.errors import Code, Refusal, StoreUnavailable
from payrelay.runtime.database.lost_commits import IDENTITY_KEPT_MS, RETURN_MS, LostCommits

FIRST: Final = Incarnation(number=1, reason=Beginning.CREATED, began_at_ms=0)
SECOND: Final = Incarnation(
    number=2,
    reason=Beginning.RECOVERED,
    began_at_ms=20,
    lost=LostWindow(since_ms=10, until_ms=20),
    operator="dana",
)


class Identities:
    """Gives the incarnations that a test has put into it, and counts its reads."""

    def __init__(self) -> None:
        self.incarnations = [FIRST]
        self.reads = 0
        self.is_away = False
        self.copied_to = ""

    async def read(self) -> DatabaseIdentity:
        """Reads the identity."""
        self.reads += 1
        await asyncio.sleep(0)
        if self.is_away:
            raise StoreUnavailable("away")
        return DatabaseIdentity(id="one", incarnations=tuple(self.incarnations), copied_to=self.copied_to)

    async def change(self, changed: Callable[[DatabaseIdentity], DatabaseIdentity]) -> DatabaseIdentity:
        """Changes the identity."""
        identity = changed(await self.read())
        self.incarnations = list(identity.incarnations)
        return identity


async def test_nothing_takes_effect_on_a_database_that_is_behind_until_its_recovery_begins(world: World) -> None:
    """Whatever was lost may come again: without the recovery each repeat would be charged anew."""
    identities = Identities()
    lost = LostCommits(identities.read, world.clock, world.relay.log)
    assert await lost.require_effects_allowed() is None
    lost.fall_behind(1, "operation op_1 is missing")
    with pytest.raises(Refusal, match="operator must start its recovery") as refused:
        await lost.require_effects_allowed()
    assert (refused.value.code, lost.behind) == (Code.UNAVAILABLE, "operation op_1 is missing")

    identities.incarnations.append(SECOND)
    world.clock.passed_ms += IDENTITY_KEPT_MS
    assert await lost.require_effects_allowed() == SECOND
    assert lost.behind is None
    identities.incarnations[1] = msgspec.structs.replace(SECOND, ended_recovery_at_ms=99)
    world.clock.passed_ms += IDENTITY_KEPT_MS
    assert await lost.require_effects_allowed() is None
    assert world.log_events == ["database_behind", "recovery_under_way", "recovery_ended"]


async def test_nothing_takes_effect_on_a_database_whose_place_another_took(world: World) -> None:
    """The other one takes effects for the same orders, and neither would see what the other did."""
    identities = Identities()
    lost = LostCommits(identities.read, world.clock, world.relay.log)
    assert await lost.require_effects_allowed() is None
    identities.copied_to = "postgresql://db/payrelay"
    world.clock.passed_ms += IDENTITY_KEPT_MS

    with pytest.raises(Refusal, match="another database took the place"):
        await lost.require_effects_allowed()


async def test_a_recovery_that_had_begun_before_does_not_allow_what_is_lost_again(world: World) -> None:
    """A second restore, of a backup from within the recovery, needs a recovery of its own."""
    identities = Identities()
    identities.incarnations.append(SECOND)
    lost = LostCommits(identities.read, world.clock, world.relay.log)
    assert await lost.require_effects_allowed() == SECOND
    lost.fall_behind(2, "operation op_9 is missing")

    with pytest.raises(Refusal):
        await lost.require_effects_allowed()


async def test_those_who_ask_at_once_share_one_reading_and_a_failure_is_asked_again(world: World) -> None:
    """A storm of requests each second must not be a storm of reads; nothing is allowed while it can't be known."""
    identities = Identities()
    lost = LostCommits(identities.read, world.clock, world.relay.log)
    await asyncio.gather(*(lost.require_effects_allowed() for _ in range(20)))
    assert identities.reads == 1
    identities.is_away = True
    world.clock.passed_ms += IDENTITY_KEPT_MS
    for _ in range(2):
        with pytest.raises(StoreUnavailable):
            await lost.require_effects_allowed()

    assert identities.reads == 3


async def test_what_one_process_finds_stops_all_of_them(world: World) -> None:
    """The others may never have been told of what is missing, and would charge its repeats anew."""
    identities = Identities()
    one, other = (
        LostCommits(identities.read, world.clock, world.relay.log, change=identities.change) for _ in range(2)
    )
    await one.store_behind()
    assert (await other.is_behind(), identities.incarnations) == (False, [FIRST])
    one.fall_behind(1, "operation op_1 is missing")
    for _ in range(2):
        await one.store_behind()
    world.clock.passed_ms += IDENTITY_KEPT_MS
    assert await other.is_behind()
    assert (other.behind, world.log_events) == ("operation op_1 is missing", ["database_behind"] * 2)

    identities.incarnations.append(SECOND)
    await one.store_behind()  # it has not read the identity since, and must not stop the new incarnation
    assert identities.incarnations[1] == SECOND
    world.clock.passed_ms += IDENTITY_KEPT_MS
    assert await other.require_effects_allowed() == SECOND
    assert not await one.is_behind()


async def test_a_recovery_that_begins_meanwhile_is_not_stopped(world: World) -> None:
    """Otherwise the operator would have to begin it a second time, and would not know why."""
    identities = Identities()
    lost = LostCommits(identities.read, world.clock, world.relay.log, change=identities.change)
    await lost.identity()
    lost.fall_behind(1, "operation op_1 is missing")
    identities.incarnations.append(SECOND)
    await lost.store_behind()

    assert identities.incarnations == [FIRST, SECOND]


async def test_who_learns_of_a_recovery_by_storing_that_it_is_behind_waits_too(world: World) -> None:
    """Else it sends a repeat whose first try another process is just storing again, or anchors what isn't back yet."""
    identities = Identities()
    lost = LostCommits(identities.read, world.clock, world.relay.log, change=identities.change)
    lost.return_ms = RETURN_MS
    await lost.identity()
    lost.fall_behind(1, "operation op_1 is missing")
    identities.incarnations.append(msgspec.structs.replace(SECOND, began_at_ms=world.clock.now_ms()))
    await lost.store_behind()

    assert (lost.behind, lost.must_wait) == (None, True)


async def test_an_identity_that_lacks_an_incarnation_stops_the_effects(world: World) -> None:
    """A server from before a recovery was promoted: what that recovery accounted for would come again."""
    identities = Identities()
    identities.incarnations.append(SECOND)
    lost = LostCommits(identities.read, world.clock, world.relay.log)
    await lost.identity()
    del identities.incarnations[1]
    await lost.refresh()
    assert lost.behind == "it lacks its incarnation 2"
    identities.incarnations.append(msgspec.structs.replace(SECOND, began_at_ms=30))
    world.clock.passed_ms += IDENTITY_KEPT_MS

    assert await lost.require_effects_allowed() is not None


async def test_a_late_comparison_takes_back_nothing_that_was_found_after_a_recovery(world: World) -> None:
    """It began in the incarnation before, and the newer one is behind as well: effects stay refused."""
    identities = Identities()
    identities.incarnations.append(SECOND)
    lost = LostCommits(identities.read, world.clock, world.relay.log)
    await lost.identity()
    lost.fall_behind(2, "operation op_9 is missing")
    lost.fall_behind(1, "operation op_1 is missing")

    assert lost.behind == "operation op_9 is missing"


async def test_what_may_pass_with_a_restart_is_not_stored(world: World) -> None:
    """A file of another database's marks is removed by an operator: the next start must find nothing wrong."""
    identities = Identities()
    changed: list[object] = []

    async def change(changing: Callable[[DatabaseIdentity], DatabaseIdentity]) -> DatabaseIdentity:
        identity = changing(await identities.read())
        changed.append(identity)
        return identity

    lost = LostCommits(identities.read, world.clock, world.relay.log, change=change)
    lost.fall_behind(1, "a mark of another database", is_lasting=False)
    await lost.store_behind()
    assert (changed, lost.behind) == ([], "a mark of another database")
    lost.fall_behind(1, "operation op_1 is missing")
    await lost.store_behind()
    assert len(changed) == 1


async def test_only_the_beginning_of_a_recovery_keeps_requests_waiting_for_what_comes_back(world: World) -> None:
    """A process that starts later waits for nothing, nor does one whose clock is behind the one that began it."""
    identities, returning = Identities(), list[bool]()
    ahead = msgspec.structs.replace(SECOND, began_at_ms=world.clock.now_ms() + 60_000)
    identities.incarnations.append(ahead)
    lost = LostCommits(identities.read, world.clock, world.relay.log)
    lost.return_ms = RETURN_MS
    returning.append(lost.is_returning)
    await lost.identity()
    returning.append(lost.is_returning)
    world.clock.passed_ms += RETURN_MS
    returning.append(lost.is_returning)
    assert returning == [False, True, False]

    identities.incarnations[1] = msgspec.structs.replace(SECOND, began_at_ms=world.clock.now_ms() - RETURN_MS)
    for return_ms in (0, RETURN_MS):
        late = LostCommits(identities.read, world.clock, world.relay.log)
        late.return_ms = return_ms
        await late.identity()
        assert not late.is_returning
