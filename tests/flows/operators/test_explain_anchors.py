"""Tests that a clock's jump can be explained, and that no change or removal can."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.flows.world import World, asked, opened

from payrelay.core.payments.audit_chain import AnchorExplanation
from payrelay.errors import Refusal
from payrelay.flows.audit import audit
from payrelay.flows.audit.audit import FINAL_AFTER_MS, Audit, find_explainable
from payrelay.flows.payments.charge import charge
from payrelay.store.engine.database import Statement, all_rows
from payrelay.store.engine.queries import query

HOUR_MS = 3_600_000


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    """Gives a relay whose books a test may tamper with."""
    world = World(await opened(tmp_path / "payrelay.db"), tmp_path / "payrelay.db")
    yield world
    await world.relay.background.finish(0)
    await world.database.close()


def audit_of(world: World) -> Audit:
    """An audit of everything but other rows."""
    return Audit(world.journal.trail, 0, lambda *_: None)


async def findings(world: World) -> list[tuple[int | None, str | None]]:
    """What the audit finds: the anchor, and the operation."""
    return [(each.anchor, each.operation_id) async for each in audit_of(world).findings()]


async def went_back(world: World) -> None:
    """Charges, anchors, and charges once more with a clock that went back into what is anchored."""
    await charge(world.relay, asked("k-1"), world.charge_of(1))
    world.clock.passed_ms += FINAL_AFTER_MS + HOUR_MS
    assert await audit.keep_anchors(world.relay) == 1
    world.clock.passed_ms -= FINAL_AFTER_MS + HOUR_MS
    await charge(world.relay, asked("k-2"), world.charge_of(2))
    world.clock.passed_ms += FINAL_AFTER_MS + HOUR_MS


async def explanations(world: World, from_ms: int = 0) -> list[AnchorExplanation]:
    """The explanations of all that can be explained."""
    until_ms = world.clock.now_ms()
    return await find_explainable(
        audit_of(world),
        world.journal.trail,
        from_ms=from_ms,
        until_ms=until_ms,
        operator="ann",
        reason="the clock went back",
        at_ms=until_ms,
    )


async def explained(world: World) -> None:
    """Stores them."""
    for each in await explanations(world):
        assert await world.journal.trail.explain(each)


async def change(world: World, sql: str) -> None:
    """Changes the database behind the program's back."""
    await world.database.write(all_rows(Statement(query(sql), ())))


async def test_a_clock_that_went_back_is_explained_by_an_added_line(world: World) -> None:
    """Otherwise the audit would complain forever, and nobody would read what it finds later."""
    await went_back(world)
    before = [each async for each in world.journal.trail.anchors()]
    assert await findings(world) == [(1, None)]
    await explained(world)

    looked = audit_of(world)
    assert [each async for each in looked.findings()] == []
    [told] = looked.summary.explained
    assert (told.number, told.present_entries - told.entries, told.operator) == (1, 2, "ann")
    assert (looked.summary.is_verified, [each async for each in world.journal.trail.anchors()]) == (True, before)


async def test_what_comes_later_needs_an_explanation_of_its_own(world: World) -> None:
    """An explanation is no licence: it holds for the entries that somebody has looked at."""
    await went_back(world)
    await explained(world)
    world.clock.passed_ms -= FINAL_AFTER_MS + HOUR_MS
    await charge(world.relay, asked("k-3"), world.charge_of(3))

    assert await findings(world) == [(1, None)]
    await explained(world)
    assert await findings(world) == []


async def test_a_tampered_entry_is_never_explained(world: World) -> None:
    """Neither before nor after: its own chain shows it, whatever a person says of the clock."""
    await went_back(world)
    await change(world, "DROP TRIGGER history_is_not_changed")
    await change(world, "UPDATE history SET evidence = '{}', at_ms = at_ms + 1 WHERE version = 2")
    with pytest.raises(Refusal, match="the audit finds more"):
        await explanations(world)


async def test_a_tampered_entry_is_found_after_an_explanation(world: World) -> None:
    """The explanation covers nothing but what was there."""
    await went_back(world)
    await explained(world)
    await change(world, "DROP TRIGGER history_is_not_changed")
    await change(world, "UPDATE history SET at_ms = at_ms + 1 WHERE version = 2")
    found = await findings(world)
    assert (1, None) in found
    assert any(operation is not None for _, operation in found)


async def test_removed_entries_are_never_explained(world: World) -> None:
    """A clock adds entries at wrong times; it removes none."""
    await went_back(world)
    await change(world, "DROP TRIGGER history_is_not_removed")
    await change(world, "DELETE FROM history")
    await change(world, "DELETE FROM operations")
    with pytest.raises(Refusal, match="changed or removed"):
        await explanations(world)


async def test_a_removed_operation_hides_among_added_entries(world: World) -> None:
    """The limit of an explanation, which the docs tell: where more came than went, only the numbers show it."""
    await charge(world.relay, asked("k-0"), world.charge_of(9))
    await went_back(world)
    for number in (5, 6):
        world.clock.passed_ms -= FINAL_AFTER_MS + HOUR_MS
        await charge(world.relay, asked(f"k-{number}"), world.charge_of(number))
        world.clock.passed_ms += FINAL_AFTER_MS + HOUR_MS
    first = "(SELECT min(id) FROM operations)"
    await change(world, "DROP TRIGGER history_is_not_removed")
    await change(world, f"DELETE FROM history WHERE operation_id = {first}")  # noqa: S608 - our own words
    await change(world, f"DELETE FROM operations WHERE id = {first}")  # noqa: S608 - our own words
    [told] = await explanations(world)
    assert told.present_entries - told.entries == 6 - 2


async def test_another_time_than_the_one_that_was_named_is_not_explained(world: World) -> None:
    """Who knows when the clock was wrong explains that time, and is told of every other one."""
    await went_back(world)
    with pytest.raises(Refusal, match="outside of the time"):
        await explanations(world, from_ms=world.clock.now_ms() - 1)


@pytest.mark.parametrize("forgery", ["name = name || '0'", "value = CAST(replace(value, 'ann', 'bob') AS BLOB)"])
async def test_a_forged_explanation_is_a_finding(world: World, forgery: str) -> None:
    """Whoever writes into the database lacks the key that signs it."""
    await went_back(world)
    await explained(world)
    await change(world, f"UPDATE meta SET {forgery} WHERE name LIKE 'explained_anchor/%'")  # noqa: S608 - our own words
    assert [anchor for anchor, _ in await findings(world)] == [None, 1]
