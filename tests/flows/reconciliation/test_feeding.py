"""Files from their text to the report: in whatever parts, order and number they come, the books say the same."""

import tempfile
from collections import Counter
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path
from random import Random
from typing import Final, NamedTuple

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.draws import examples
from tests.flows.reconciliation.test_day import ANN, DAY, Office, file_of
from tests.flows.world import CHARGE, World, asked, opened, outcome_of

from payrelay.core.outcomes import OutcomeKind
from payrelay.errors import Refusal
from payrelay.flows.payments.charge import charge
from payrelay.reconciliation.flows.close import close_day
from payrelay.reconciliation.flows.import_statement import Completeness, import_file
from payrelay.reconciliation.rules.changes import changes_between
from payrelay.reconciliation.rules.days import DayReport, Sum

NEXT: Final = DAY + timedelta(days=1)


class Planted(NamedTuple):
    """A payment as our books have it, and as the file has it; None where a side has none."""

    ours_minor: int | None
    theirs_minor: int | None
    status: str


PLANTS: Final = (
    Planted(500, 500, "RECEIVED"),
    Planted(500, None, ""),
    Planted(None, 700, "RECEIVED"),
    Planted(500, 501, "RECEIVED"),
    Planted(500, 500, "REFUNDED"),
    Planted(500, 500, "a word that nobody knows"),
)
days = st.lists(st.sampled_from(PLANTS), min_size=1, max_size=6)


class Desk(Office):
    """Somebody who has files of the planted payments to feed."""

    async def sell(self, planted: Sequence[Planted]) -> list[str]:
        """Makes the charges of our books, and gives the rows of the file."""
        rows = []
        for number, each in enumerate(planted):
            payment_id = f"32002500{number:04}"
            if each.ours_minor is not None:
                self.world.account.script.append(outcome_of(OutcomeKind.SUCCEEDED, payment_id=payment_id))
                call = msgspec.structs.replace(CHARGE, order_id=f"N-{number}", amount_minor=each.ours_minor)
                await charge(self.relay, asked(f"k-{number}"), call)
            if each.theirs_minor is not None:
                amount = f"{each.theirs_minor // 100}.{each.theirs_minor % 100:02}"
                rows.append(f"{payment_id},N-{number},{amount},LKR,{each.status},2023-11-15 03:43:30")
        return rows

    async def feed_all(self, files: Sequence[Sequence[str]]) -> None:
        """Feeds files that are one statement together."""
        imported = [
            await import_file(self.relay, self.scope, file_of(*rows, name=f"{number}.csv"), ANN)
            for number, rows in enumerate(files)
        ]
        await self.vouch(imported, Completeness(first=DAY, last=DAY))


async def reported(planted: Sequence[Planted], random: Random | None) -> DayReport:
    """Gives the report on a day; with a source of chance its file comes in parts, shuffled and doubled."""
    with tempfile.TemporaryDirectory() as folder:
        world = World(await opened(Path(folder) / "payrelay.db"), Path(folder) / "payrelay.db")
        desk = Desk(world)
        rows = await desk.sell(planted)
        files = [rows]
        if random is not None:
            files = [random.sample(rows, random.randint(0, len(rows))) for _ in range(3)]
            files.append(random.sample(rows, len(rows)))
            files[0] += random.sample(rows, len(rows) // 2)
            random.shuffle(files)
        await desk.feed_all(files)
        desk.wait(1)
        report = await desk.run()
        await world.database.close()
    return msgspec.structs.replace(report, rests_on=())


@settings(max_examples=examples(15), deadline=None)
@given(days, st.randoms(use_true_random=False))
async def test_parts_doubles_and_any_order_give_the_same_report(planted: list[Planted], random: Random) -> None:
    """The only thing that may differ is the sentence about what somebody said of how many lines."""
    assert changes_between(await reported(planted, None), await reported(planted, random)) == []


def booked(sums: Sequence[Sum]) -> Counter[str]:
    """Gives what both sides agree on, by movement."""
    made: Counter[str] = Counter()
    for each in sums:
        made[each.movement] += each.booked_minor
    return made


@settings(max_examples=examples(15), deadline=None)
@given(days, st.data())
async def test_what_a_cut_file_lacked_comes_late_and_is_never_lost(planted: list[Planted], data: st.DataObject) -> None:
    """A day and its corrections come to what the whole file would have made of it, whenever the rest is read."""
    whole = await reported(planted, None)
    with tempfile.TemporaryDirectory() as folder:
        world = World(await opened(Path(folder) / "payrelay.db"), Path(folder) / "payrelay.db")
        desk = Desk(world)
        rows = await desk.sell(planted)
        cut, between = (data.draw(st.integers(0, len(rows))) for _ in range(2))
        await desk.feed_all([rows[:cut]])
        desk.wait(1)
        await desk.run()
        await import_file(desk.relay, desk.scope, file_of(*rows[cut : max(cut, between)], name="between.csv"), ANN)
        desk.wait(1)
        closed = await closed_at_last(desk)
        desk.wait(1)
        await import_file(desk.relay, desk.scope, file_of(*rows, name="late.csv"), ANN)
        later = await desk.run(NEXT)
        await world.database.close()
    total = booked(closed.sums)
    total.subtract(booked(later.taken_back))
    total.update(booked(later.corrections))
    assert total == booked(whole.sums)
    found = {each.id: each.content for each in (*closed.listed, *later.listed)}
    wanted = {each.id: each.content for each in whole.listed if each.theirs is not None}
    assert {name: found.get(name) for name in wanted} == wanted


async def closed_at_last(desk: Desk) -> DayReport:
    """Closes the day, once more where the closing tells that something was read since it was compared."""
    try:
        return await close_day(desk.relay, desk.scope, DAY, ANN, "month end")
    except Refusal:
        return await close_day(desk.relay, desk.scope, DAY, ANN, "month end, seen")
