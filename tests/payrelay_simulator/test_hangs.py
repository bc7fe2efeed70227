import asyncio

from payrelay_simulator.hangs import Hangs


async def test_release_lets_everybody_go() -> None:
    """A hanging simulator ends at once when it is told to."""
    hangs = Hangs()
    waiting = [asyncio.create_task(hangs.wait(None)) for _ in range(3)]
    await asyncio.wait(waiting, timeout=0.001)
    hangs.release()
    await asyncio.gather(*waiting)

    assert len(hangs) == 0


async def test_wait_ends_by_itself() -> None:
    """A late answer comes in the end."""
    hangs = Hangs()
    await hangs.wait(0.001)

    assert len(hangs) == 0
