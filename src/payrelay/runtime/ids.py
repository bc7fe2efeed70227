"""Makes ids: a prefix that names the kind, the time, and random bits."""

import os
from typing import Final

_RANDOM_BYTES: Final = 10
_TIME_BYTES: Final = 6


def new_id(prefix: str, now_ms: int) -> str:
    """Makes an id that sorts by time: the prefix, ``_`` and 32 hex digits, 48 bits of time and 80 random bits."""
    return f"{prefix}_{now_ms.to_bytes(_TIME_BYTES, 'big').hex()}{os.urandom(_RANDOM_BYTES).hex()}"
