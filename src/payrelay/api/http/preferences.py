"""What a client would rather have (RFC 7240, the Prefer header); of that only ``wait`` is known here.

A preference is no demand: what is malformed or not known is passed over, and nothing is refused for it.
"""

import re
from functools import partial
from typing import Final

from payrelay.api.http.incoming_request import Headers, Receive, disconnected
from payrelay.clock import Clock
from payrelay.flows.payments.await_outcome import WAIT_S_MAX, WaitPreference

_preferences: Final = re.compile(rb'(?:[^,"]|"(?:[^"\\]|\\.)*"?)+').findall
"""Splits at the commas that don't stand in quotes."""
_SECONDS_DIGITS_MAX: Final = len(str(WAIT_S_MAX))


def wait_preference_of(headers: Headers, receive: Receive, clock: Clock) -> WaitPreference | None:
    """Gives how long the client would rather wait than ask again, from now on; None where it wouldn't."""
    wait_s = preferred_wait_s(headers)
    if not wait_s:
        return None
    return WaitPreference(
        wait_s=wait_s,
        arrived_ms=clock.now_ms(),
        until_s=clock.boot_s() + wait_s,
        gone=partial(disconnected, receive),
    )


def preferred_wait_s(headers: Headers) -> int:
    """Gives the seconds for which the client would rather wait than ask again, at most WAIT_S_MAX; 0 for none.

    Of several such preferences the first counts, even where it is malformed.
    """
    values = headers.every(b"prefer")
    if not values:
        return 0
    for preference in _preferences(b",".join(values)):
        name, _, value = preference.partition(b";")[0].partition(b"=")
        if name.strip().lower() == b"wait":
            return _seconds(value.strip())
    return 0


def _seconds(value: bytes) -> int:
    if not value.isdigit():
        return 0
    digits = value.lstrip(b"0")
    return WAIT_S_MAX if len(digits) > _SECONDS_DIGITS_MAX else min(int(digits or b"0"), WAIT_S_MAX)
