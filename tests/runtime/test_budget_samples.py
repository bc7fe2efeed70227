"""Budgets as one process saw them: bounded, and its own."""

import asyncio

from payrelay.clock import Clock
from payrelay.console.runtime.budget_samples import KEPT, BudgetSamples
from payrelay.core.gateways.permit_grants import BudgetSnapshot

SEEN = BudgetSnapshot(limit_calls=30, used=3, waiting=1, is_open=False, blocked_s=0)


def test_a_day_is_kept_and_no_more() -> None:
    """A process that runs for months takes no more memory for it."""
    samples = BudgetSamples(lambda: {"gateway": SEEN}, Clock())
    for _ in range(KEPT + 5):
        samples.look()

    assert len(samples.of("gateway")) == KEPT
    assert (samples.of("gateway")[0].used, samples.of("gateway")[0].waiting) == (3, 1)
    assert samples.of("other") == ()
    assert samples.now() == {"gateway": SEEN}


async def test_looks_begin_and_end_with_the_console() -> None:
    """The first look is at once; after the end there is none, and an end without a beginning is no error."""
    samples = BudgetSamples(lambda: {"gateway": SEEN}, Clock())
    await samples.end()
    samples.begin()
    await asyncio.sleep(0)
    assert len(samples.of("gateway")) == 1
    await samples.end()

    assert asyncio.all_tasks() == {asyncio.current_task()}
