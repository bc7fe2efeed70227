import asyncio

from payrelay.runtime.background import Background


async def test_a_clean_stop_waits_for_the_work() -> None:
    """An effect that is under way is carried to its end."""
    background, done = Background(), asyncio.Event()

    async def work() -> None:
        await asyncio.sleep(0)
        done.set()

    background.start(work())
    assert background.under_way == 1
    assert await background.finish(5) == 0
    assert (done.is_set(), background.under_way) == (True, 0)


async def test_a_clean_stop_also_waits_for_what_the_work_began() -> None:
    """An outcome that is stored later is begun by the effect itself, perhaps while we stop."""
    background, done = Background(), asyncio.Event()

    async def last() -> None:
        await asyncio.sleep(0)
        done.set()

    async def first() -> None:
        background.start(last())

    background.start(first())
    assert await background.finish(5) == 0
    assert done.is_set()


async def test_work_that_does_not_end_is_ended_and_counted() -> None:
    """A stop has a limit; the row says what may have happened."""
    background = Background()
    tasks = [background.start(asyncio.Event().wait()) for _ in range(3)]
    await asyncio.sleep(0)
    assert await background.finish(0) == 3
    assert all(task.cancelled() for task in tasks)


async def test_work_that_fails_does_not_fail_the_stop() -> None:
    """Whoever waited for it has been told."""
    background = Background()

    async def work() -> None:
        raise RuntimeError("broken")

    task = background.start(work())
    assert await background.finish(5) == 0
    assert isinstance(task.exception(), RuntimeError)
