"""The rate limit of a gateway account, as the settings have it."""

import re
from typing import Final

import msgspec

CALLS_MIN: Final = 1
"""One is enough: the access token is fetched in one window, and the call that needs it is made in the next."""
CALLS_MAX: Final = 10_000
"""A permit is a row of the store; a gateway that allows more calls than this needs no budget (``off``)."""
WINDOW_S_MAX: Final = 3_600

_LIMIT: Final = re.compile(r"([0-9]{1,7})/([0-9]{1,4})s")
_OFF: Final = "off"


class RateLimit(msgspec.Struct, frozen=True):
    """At most ``calls`` in any window of ``window_s`` seconds."""

    calls: int
    window_s: float

    @classmethod
    def parse(cls, text: str) -> "RateLimit | None":
        """Reads a limit such as ``20/10s``; ``off`` is None, no limit. Raises ValueError that says what is wrong."""
        if text.strip().lower() == _OFF:
            return None
        match = _LIMIT.fullmatch(text.strip())
        if match is None:
            raise ValueError(f"must look like 20/10s (calls and seconds) or be off, not {text!r}")
        calls, window_s = int(match[1]), int(match[2])
        if not CALLS_MIN <= calls <= CALLS_MAX:
            raise ValueError(f"must allow {CALLS_MIN} to {CALLS_MAX} calls, not {calls}")
        if not 1 <= window_s <= WINDOW_S_MAX:
            raise ValueError(f"must have a window of 1 to {WINDOW_S_MAX} seconds, not {window_s}")
        return cls(calls, float(window_s))
