"""What a client prefers of its answer: ``wait`` in Prefer (RFC 7240), ``no-cache`` in Cache-Control (RFC 9111).

A preference is no demand: a malformed or unknown one is ignored, and no request is refused for it.
"""

import re
from functools import partial
from typing import Final

from payrelay.api.http.incoming_request import Headers, Receive, disconnected
from payrelay.clock import Clock
from payrelay.flows.payments.await_outcome import WAIT_S_MAX, WaitPreference

_split: Final = re.compile(rb'(?:[^,"]++|"(?:[^"\\]++|\\.)*+"?)++').findall
"""Splits at commas outside quotes; no character is looked at twice."""
NO_CACHE: Final = b"no-cache"
_SECONDS_DIGITS_MAX: Final = len(str(WAIT_S_MAX))


def wait_preference_of(headers: Headers, receive: Receive, clock: Clock) -> WaitPreference | None:
    """Gives how long the client prefers to wait from now on; None where it doesn't."""
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
    """Gives the seconds for which the client prefers to wait, at most WAIT_S_MAX; 0 where it doesn't.

    Of several ``wait`` preferences the first counts, even where it is malformed.
    """
    values = headers.every(b"prefer")
    if not values:
        return 0
    for preference in _split(b",".join(values)):
        name, _, value = preference.partition(b";")[0].partition(b"=")
        if name.strip().lower() == b"wait":
            return _seconds(value.strip())
    return 0


def insists_on_new(headers: Headers) -> bool:
    """True where the client accepts no cached answer; every other directive is ignored."""
    values = headers.every(b"cache-control")
    return any(directive.strip().lower() == NO_CACHE for value in values for directive in _split(value))


def _seconds(value: bytes) -> int:
    if not value.isdigit():
        return 0
    digits = value.lstrip(b"0")
    return WAIT_S_MAX if len(digits) > _SECONDS_DIGITS_MAX else min(int(digits or b"0"), WAIT_S_MAX)
