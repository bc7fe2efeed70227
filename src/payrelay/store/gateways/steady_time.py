"""The time of the embedded database's budget: the wall clock's at the start, and from there one that never jumps.

PostgreSQL has a clock of its own, which is one for all its clients.
"""

from collections.abc import Callable

from payrelay.clock import Clock


def steady_ms(clock: Clock) -> Callable[[], int]:
    """Gives a function for the milliseconds since 1970, as the wall clock counts them now, however it is set later."""
    begin_ms = clock.now_ms() - round(clock.boot_s() * 1000)
    return lambda: begin_ms + int(clock.boot_s() * 1000)
