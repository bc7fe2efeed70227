"""The quota of a credential: at most so many requests in any window, counted in this process.

Every key has a window of its own, and so has every customer or order for which a key issues tokens, however many those
are. The tokens that one key has issued share another one, beside the key's. What they take from it is never the key's:
an app that asks without end can't keep its shop's server waiting.

The fields are those of the IETF draft "RateLimit header fields for HTTP" (draft-ietf-httpapi-ratelimit-headers):
``RateLimit-Policy: "default";q=100;w=60`` and ``RateLimit: "default";r=42;t=3``.
"""

import math
from collections import deque
from typing import Final

from payrelay.clock import Clock
from payrelay.core.access.credential import Credential, Rate, SharedRate
from payrelay.errors import Code, Refusal

MARKS_MAX: Final = 1024
"""Points in time that are kept of one window. Requests in the same 1024th of a window count as one point, the later
one: a caller may wait a thousandth of the window longer, and never gets more than the quota."""
CALLERS_MAX: Final = 10_000
"""Credentials whose windows are remembered; the one whose last request is oldest is forgotten first. Keys, tokens and
what tokens share are remembered apart, so that no number of tokens makes a key's window forgotten."""


Fields = tuple[tuple[str, str], tuple[str, str]]


class Quota:
    """Counts the requests of every credential that has a rate."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._of_keys = Windows(clock, CALLERS_MAX)
        self._of_tokens = Windows(clock, CALLERS_MAX)
        self._shared = Windows(clock, CALLERS_MAX, name="client-tokens")

    def take(self, credential: Credential) -> tuple[tuple[bytes, bytes], ...]:
        """Counts one request, and gives the header fields that show what is left; none where no rate is set.

        Raises Refusal (rate_limited), without counting the request, where nothing is left. A request that the
        credential's own rate refuses takes nothing from the rate that it shares, and the other way round.
        """
        rate, shared = credential.rate, credential.shared_rate
        if rate is None:
            return ()
        is_key = credential.bound is None
        whose, windows = ("this key", self._of_keys) if is_key else ("the tokens of this customer", self._of_tokens)
        own, now_s = windows.of(credential.counted_as, rate), self._clock.boot_s()
        if not own.has_left(now_s):
            raise _refusal(
                own, now_s, f"{whose} may make {rate.count} requests in {rate.window_s} s", own.reset_s(now_s)
            )
        if shared is not None:
            self._take_shared(shared, own, now_s)
        own.add(now_s)
        return tuple((name.lower().encode(), value.encode()) for name, value in own.fields(now_s))

    def _take_shared(self, shared: SharedRate, own: "Window", now_s: float) -> None:
        """Counts one request of whose window is ``own`` in what it shares; raises Refusal, without counting it."""
        common, first_count = self._shared.of(shared.name, shared.rate), shared.first_count
        is_first = own.count < first_count
        most = shared.whole_count if is_first else shared.rate.count
        if not common.has_left(now_s, most):
            msg = f"the tokens of its key together may make {most} requests in {shared.rate.window_s} s"
            wait_s = common.reset_s(now_s, most)
            if not is_first:
                msg = f"{msg}, and beyond that each customer its first {first_count}"
                wait_s = min(wait_s, own.reset_s(now_s, first_count))
            raise _refusal(common, now_s, msg, wait_s)
        common.add(now_s)


class Windows:
    """The windows of at most ``callers_max`` callers; the one whose last request is oldest is forgotten first."""

    def __init__(self, clock: Clock, callers_max: int, *, name: str = "default") -> None:
        self._clock = clock
        self._callers_max = callers_max
        self._name = name
        self._windows: dict[str, Window] = {}

    def take(self, caller: str, rate: Rate, msg: str) -> Fields:
        """Counts one request of a caller, and gives the header fields that show what is left.

        Raises Refusal (rate_limited) with ``msg``, without counting the request, where nothing is left.
        """
        window, now_s = self.of(caller, rate), self._clock.boot_s()
        if not window.has_left(now_s):
            raise _refusal(window, now_s, msg, window.reset_s(now_s))
        window.add(now_s)
        return window.fields(now_s)

    def of(self, caller: str, rate: Rate) -> "Window":
        """Gives the window of a caller, which counts as the newest from now on."""
        window = self._windows.pop(caller, None)
        if window is None or window.rate != rate:
            window = Window(rate, self._name)
        if len(self._windows) >= self._callers_max:
            del self._windows[next(iter(self._windows))]
        self._windows[caller] = window
        return window


class Window:
    """The requests of one caller in the window that ends now; ``name`` stands in the header fields."""

    __slots__ = ("_marks", "_name", "_policy", "count", "rate")

    def __init__(self, rate: Rate, name: str = "default") -> None:
        self.rate = rate
        self.count = 0
        self._name = name
        self._marks: deque[tuple[float, int]] = deque()
        self._policy = f'"{name}";q={rate.count};w={rate.window_s}'

    def has_left(self, now_s: float, most: int | None = None) -> bool:
        """Tells whether another request may be made now; ``most`` are allowed, or as many as the rate says.

        ``count`` is the number of requests in the window from then on.
        """
        while self._marks and self._marks[0][0] <= now_s - self.rate.window_s:
            self.count -= self._marks.popleft()[1]
        return self.count < (self.rate.count if most is None else most)

    def add(self, now_s: float) -> None:
        """Counts one request."""
        self.count += 1
        point_s = self.rate.window_s / MARKS_MAX
        if self._marks and int(self._marks[-1][0] / point_s) == int(now_s / point_s):
            self._marks[-1] = (now_s, self._marks[-1][1] + 1)
        else:
            self._marks.append((now_s, 1))

    def fields(self, now_s: float, wait_s: int | None = None) -> Fields:
        """Gives the header fields that show what is left, after at least one request.

        ``wait_s`` are the seconds until another one may be made; otherwise they are those of ``reset_s``.
        """
        left = max(0, self.rate.count - self.count)
        reset_s = self.reset_s(now_s) if wait_s is None else wait_s
        return ("RateLimit-Policy", self._policy), ("RateLimit", f'"{self._name}";r={left};t={reset_s}')

    def reset_s(self, now_s: float, most: int | None = None) -> int:
        """Gives the seconds, rounded up, until the window has fewer than ``most`` requests, or one fewer than now."""
        left, fewer_than = self.count, self.count if most is None else most
        for at_s, count in self._marks:
            left -= count
            if left < fewer_than:
                return max(1, math.ceil(at_s + self.rate.window_s - now_s))
        return 1


def _refusal(window: Window, now_s: float, msg: str, wait_s: int) -> Refusal:
    return Refusal(Code.RATE_LIMITED, msg, retry_after_s=wait_s, headers=window.fields(now_s, wait_s))
