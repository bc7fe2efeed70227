"""Waits for what other processes do, always with an end."""

import time
from collections.abc import Callable

POLL_S = 0.02  # short beside every time-out in these stories
DEADLINE_S = 15.0  # long enough for two busy cores, short enough to notice a hang


def until(condition: Callable[[], bool], what: str, *, deadline_s: float = DEADLINE_S) -> None:
    """Returns as soon as the condition holds; fails with `what` when it doesn't in time."""
    end = time.monotonic() + deadline_s
    while not condition():
        if time.monotonic() > end:
            raise AssertionError(f"not in {deadline_s} s: {what}")
        time.sleep(POLL_S)
