"""The simulated loop: time that nobody waits for, an order that chance decides, and deaths that nothing outlives."""

import asyncio
from contextlib import suppress
from random import Random

import pytest
from tests.simulation.loop import Crash, Endless, Owner, new_loop, wait_seconds


async def append_later(told: list[str], word: str, seconds: float) -> None:
    """Tells a word after a while."""
    await wait_seconds(seconds)
    told.append(word)


def test_a_week_passes_at_once() -> None:
    """Settling takes days, and a hundred thousand lives of it have to fit into an hour."""
    loop = new_loop(None)
    loop.run(wait_seconds(7 * 86_400))
    assert loop.time() == 7 * 86_400


def test_what_is_due_earlier_happens_earlier() -> None:
    """Time jumps to the next timer, whatever the order in which timers were set."""
    told: list[str] = []

    async def both() -> None:
        await asyncio.gather(append_later(told, "late", 2), append_later(told, "early", 1))

    new_loop(None).run(both())
    assert told == ["early", "late"]


def test_chance_decides_among_what_is_ready_and_repeats_itself() -> None:
    """Ten stories that begin at once are told in an order of the seed's own, and in the same one by the same seed."""

    def order(seed: int) -> list[str]:
        told: list[str] = []

        async def all_of_them() -> None:
            await asyncio.gather(*(append_later(told, str(number), 0) for number in range(10)))

        new_loop(Random(seed)).run(all_of_them())  # noqa: S311, it has to be the same each time
        return told

    assert order(1) == order(1)
    assert len({tuple(order(seed)) for seed in range(5)}) > 1


@pytest.mark.parametrize(("step", "words"), [(1, 0), (3, 0), (4, 1), (6, 2)])
def test_nothing_of_a_dead_owner_happens_any_more(step: int, words: int) -> None:
    """Not even what stands in a finally: kill -9 runs none."""
    loop = new_loop(None)
    owner = Owner("it")
    owner.dies_at_step = step
    loop.owners.append(owner)
    told: list[str] = []

    async def work() -> None:
        try:
            for _ in range(9):
                await append_later(told, "a step", 1)
        finally:
            await wait_seconds(1)
            told.append("an end")

    async def outside() -> None:
        loop.create_task(work(), context=owner.context())
        await wait_seconds(100)

    loop.run(outside())
    assert told == ["a step"] * words
    assert owner.is_dead


def test_a_point_kills_at_the_time_that_was_named() -> None:
    """A process is killed between two instructions, as well as between two steps."""
    owner = Owner("it")
    owner.dies_at = ("commit", 2)
    owner.reach("commit")
    with pytest.raises(Crash):
        owner.reach("commit")
    with pytest.raises(Crash):
        owner.reach("anything else")


def test_whoever_waits_for_ever_is_found_out() -> None:
    """A deadlock ends the run, with a failure, and not the patience of whoever looks on."""

    async def wait_for_nobody() -> None:
        with suppress(asyncio.CancelledError):
            await asyncio.get_running_loop().create_future()

    with pytest.raises(Endless, match="somebody else"):
        new_loop(None).run(wait_for_nobody())
