from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Final

import msgspec
import pytest
from tests.flows.world import CHARGE, START_MS, World, asked, opened

from payrelay.core.payments.audit_chain import AnchoredSpan, ChainKey
from payrelay.flows.audit import audit
from payrelay.flows.audit.audit import (
    ANCHOR_EVERY_MS,
    ANCHORS_MAX,
    ENTRIES_MAX,
    FINAL_AFTER_MS,
    Audit,
    Phase,
    anchor,
)
from payrelay.flows.payments.charge import charge
from payrelay.store.engine.sealing import Seal
from payrelay.store.payments.audit import Anchor, Trail

HOUR_MS: Final = 3_600_000


async def charge_in(world: World, number: int, after_ms: int = 0) -> None:
    """Charges an order some time later; that leaves two journal entries."""
    world.clock.passed_ms += after_ms
    await charge(world.relay, asked(f"k-{number}"), world.charge_of(number))


async def spans(trail: Trail) -> Sequence[tuple[int, int, int]]:
    """Gives from when to when the anchors reach, and how many entries they have."""
    return [(each.from_ms, each.until_ms, each.entries) async for each in trail.anchors()]


async def test_the_first_anchor_begins_with_everything(world: World) -> None:
    """Nothing that was ever written is left out, whatever its date."""
    await charge_in(world, 1)
    world.clock.passed_ms += FINAL_AFTER_MS + 1

    assert await audit.keep_anchors(world.relay) == 1
    assert await spans(world.journal.trail) == [(0, START_MS + 1, 2)]
    assert world.log_events.count("history_anchored") == 1


async def test_young_entries_are_not_anchored_yet(world: World) -> None:
    """An entry is dated before it is stored: one that came into an anchored span would be taken for a forgery."""
    await charge_in(world, 1)
    world.clock.passed_ms += FINAL_AFTER_MS

    assert await audit.keep_anchors(world.relay) == 0


async def test_anchors_are_an_hour_apart(world: World) -> None:
    """The worker asks every minute; each further anchor begins where the last one ended."""
    await charge_in(world, 1)
    await charge_in(world, 2, HOUR_MS)
    await audit.keep_anchors(world.relay)
    await charge_in(world, 3, ANCHOR_EVERY_MS - 1)
    assert await audit.keep_anchors(world.relay) == 0
    world.clock.passed_ms += FINAL_AFTER_MS + 1
    assert await audit.keep_anchors(world.relay) == 1

    first_end = START_MS + HOUR_MS - FINAL_AFTER_MS
    assert await spans(world.journal.trail) == [
        (0, first_end, 2),
        (first_end, START_MS + 2 * HOUR_MS, 4),
    ]


async def test_an_idle_hour_leaves_no_anchor(world: World) -> None:
    """A program that nobody uses must not fill its database."""
    assert await audit.keep_anchors(world.relay) == 0
    await charge_in(world, 1)
    world.clock.passed_ms += HOUR_MS
    assert await audit.keep_anchors(world.relay) == 1
    world.clock.passed_ms += 100 * HOUR_MS
    assert await audit.keep_anchors(world.relay) == 0


class MuchTrail(Trail):
    """Has as many entries as a test says, and counts what is read of them."""

    entries_at_ms: Sequence[int] = ()

    async def time_of_entry(self, number: int, from_ms: int, until_ms: int) -> int | None:
        """Searches among them."""
        found = [at_ms for at_ms in self.entries_at_ms if from_ms <= at_ms < until_ms]
        return found[number] if number < len(found) else None

    async def anchor(self, previous: str, span: AnchoredSpan) -> Anchor:
        """Counts them."""
        empty = await super().anchor(previous, span)
        return empty._replace(entries=sum(span.from_ms <= at_ms < span.until_ms for at_ms in self.entries_at_ms))


@pytest.fixture
async def much(tmp_path: Path) -> AsyncIterator[MuchTrail]:
    """Gives such a trail over an empty database."""
    database = await opened(tmp_path / "much.db")
    yield MuchTrail(database, Seal((b"k" * 32,)), ChainKey(b"c" * 32))
    await database.close()


async def test_many_entries_come_into_several_anchors(much: MuchTrail) -> None:
    """After a day without a worker one call must not hold up the server, and a finding should name a short span."""
    much.entries_at_ms = range(2 * ENTRIES_MAX + 5)

    assert [each.entries for each in await anchor(much, START_MS)] == [ENTRIES_MAX, ENTRIES_MAX, 5]
    assert (await spans(much))[-1][1] == START_MS - FINAL_AFTER_MS


async def test_entries_of_one_moment_stay_together(much: MuchTrail) -> None:
    """An anchor ends between two moments; a moment with more entries than one should take still gets one anchor."""
    much.entries_at_ms = [7] * (ENTRIES_MAX + 3)

    assert [each.entries for each in await anchor(much, START_MS)] == [ENTRIES_MAX + 3]
    assert await spans(much) == [(0, 8, ENTRIES_MAX + 3)]


async def test_one_call_makes_so_many_and_the_next_goes_on(much: MuchTrail) -> None:
    """The first anchors over years of history are made bit by bit."""
    much.entries_at_ms = range(ENTRIES_MAX * (ANCHORS_MAX + 1))

    assert len(await anchor(much, START_MS)) == ANCHORS_MAX
    assert len(await anchor(much, START_MS)) == 1
    assert len(await anchor(much, START_MS)) == 0


class LateTrail(Trail):
    """Another process anchors while this one computes."""

    async def anchor(self, previous: str, span: AnchoredSpan) -> Anchor:
        """Is overtaken."""
        made = await super().anchor(previous, span)
        await self.add(made)
        return made


async def test_of_several_processes_one_anchors(world: World) -> None:
    """Both would write the same; what counts is that it is there once."""
    await charge_in(world, 1)
    trail = LateTrail(world.database, Seal((b"k" * 32,)), world.journal.trail.key)

    assert await anchor(trail, START_MS + HOUR_MS) == []
    assert len(await spans(trail)) == 1


async def test_the_summary_counts_what_was_checked(world: World) -> None:
    """A reader of an empty report must see how much was checked, and how far the anchors reach."""
    await charge_in(world, 1)
    await charge_in(world, 2, HOUR_MS)
    await audit.keep_anchors(world.relay)
    seen: list[tuple[Phase, int, int]] = []
    checking = Audit(world.journal.trail, START_MS, lambda *step: seen.append(step))

    assert [finding async for finding in checking.findings()] == []
    assert msgspec.structs.replace(checking.summary, newest_anchor="") == audit.Summary(
        chain_since_ms=START_MS,
        operations=2,
        entries=4,
        anchors=1,
        entries_unanchored=2,
        anchored_until_ms=START_MS + HOUR_MS - FINAL_AFTER_MS,
        newest_anchor="",
    )
    assert (checking.summary.newest_anchor or "").startswith("1:")
    assert seen == [(Phase.ANCHORS, 1, 1), (Phase.OPERATIONS, 1, 2), (Phase.OPERATIONS, 2, 2)]


async def test_every_change_by_a_flow_is_in_the_chain(world: World) -> None:
    """A flow that forgets to carry the chain along would be refused as outdated, and be slow for ever."""
    await charge(world.relay, asked(), CHARGE)

    assert world.steps.passed.count("get") == 0
    assert [finding async for finding in Audit(world.journal.trail, 0, lambda *_: None).findings()] == []
