"""The machine's clocks, as one value that callers pass down, so that a test or a simulation can bring its own."""

import time


class Clock:
    """Tells the time, by a wall clock and by a clock that only ever runs forward."""

    def now_ms(self) -> int:
        """Gives the wall clock's milliseconds since 1970, UTC; it may jump when the machine's clock is set."""
        return time.time_ns() // 1_000_000

    def boot_s(self) -> float:
        """Gives seconds on a clock that never jumps and goes on while the machine is suspended."""
        return time.clock_gettime(time.CLOCK_BOOTTIME)
