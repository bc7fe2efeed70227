"""Deliveries: which events an endpoint wants, when a failed try is repeated, and when an endpoint is given up.

The schedule is the one that Standard Webhooks recommends: ten tries over a little more than three days.
"""

import email.utils
import re
from datetime import UTC
from enum import StrEnum
from http import HTTPStatus
from typing import Final

import msgspec

from payrelay.core.events.event import TYPES
from payrelay.core.payments.schedules import DAY_MS, HOUR_MS

DELAYS_MS: Final = (
    5_000,
    300_000,
    1_800_000,
    2 * HOUR_MS,
    5 * HOUR_MS,
    10 * HOUR_MS,
    14 * HOUR_MS,
    20 * HOUR_MS,
    24 * HOUR_MS,
)
"""After the first try that failed, the second, …; then it is given up."""
ATTEMPTS_MAX: Final = len(DELAYS_MS) + 1
JITTER: Final = 0.2
"""The part of a delay that chance adds at most: what failed together doesn't come back together."""
STOPPED_AFTER_MS: Final = 3 * DAY_MS
"""An endpoint that failed for so long, and took nothing meanwhile, is stopped."""
RETRY_AFTER_MS_MAX: Final = HOUR_MS
"""A receiver may put us off for so long; who asks for more is asked again all the same."""
OLDER_SECRET_MS: Final = DAY_MS
"""How long what is sent is signed with the secret before a rotation too."""
PATTERNS_MAX: Final = 20
"""Patterns of one endpoint; there are hardly more types."""
LABEL_LENGTH_MAX: Final = 100
URL_LENGTH_MAX: Final = 2_000

_ALL: Final = "*"
_NOUNS: Final = frozenset(type_.partition(".")[0] for type_ in TYPES)
PATTERNS: Final = (_ALL, *(f"{noun}.*" for noun in sorted(_NOUNS)), *sorted(TYPES))
"""Every pattern that there is."""
_seconds: Final = re.compile(r"[0-9]{1,9}").fullmatch


class EndpointState(StrEnum):
    """What becomes of events for an endpoint."""

    ACTIVE = "active"
    """They are sent."""
    PAUSED = "paused"
    """They wait."""
    STOPPED = "stopped"
    """They are not queued; a person or a program must start it again."""


class DeliveryState(StrEnum):
    """What became of an event for one endpoint."""

    WAITING = "waiting"
    """It is due, is being tried, or is tried again later."""
    DELIVERED = "delivered"
    GIVEN_UP = "given_up"
    """Every try failed, or the endpoint was stopped; it can be replayed."""


class PatternError(ValueError):
    """The text is no pattern of event types; the message fits behind the field's name."""


class Pattern(msgspec.Struct, frozen=True):
    """Which types are meant: those that begin with ``beginning`` when so many characters are compared."""

    beginning: str
    compared: int

    def fits(self, type_: str) -> bool:
        """True where an event of this type is meant."""
        return type_[: self.compared] == self.beginning


def pattern_of(text: str) -> Pattern:
    """Reads ``*``, ``operation.*`` or a whole type such as ``operation.succeeded``; raises PatternError."""
    if text == _ALL:
        return Pattern("", 0)
    noun, _, what = text.partition(".")
    if what == _ALL and noun in _NOUNS:
        return Pattern(f"{noun}.", len(noun) + 1)
    if text in TYPES:
        # One character more than the type has: a longer type is another.
        return Pattern(text, len(text) + 1)
    nouns = ", ".join(f"{known}.*" for known in sorted(_NOUNS))
    raise PatternError(f"must be *, one of {nouns}, or a type of event such as operation.succeeded")


class Endpoint(msgspec.Struct, frozen=True, kw_only=True):
    """Where events are sent.

    Attributes:
        id: ``end_…``.
        account, merchant, principal: who registered it, and so whose events it gets.
        url: the address; no part of it is ever logged but its host.
        types: patterns; see ``pattern_of``.
        label: free text for people.
        state: whether anything is sent.
        reason: why it is not; None while it is.
        older_ends_at_ms: until when the secret before the last rotation is used too; None where there is none.
        failing_since_ms: when a try failed for the first time since one succeeded; None while they succeed.
        deferred_until_ms: the receiver wants nothing before this time.
        created_at_ms, updated_at_ms: milliseconds since 1970, UTC.
    """

    id: str
    account: str
    merchant: str
    principal: str
    url: str
    types: tuple[str, ...]
    label: str | None
    state: EndpointState
    reason: str | None
    older_ends_at_ms: int | None
    failing_since_ms: int | None
    deferred_until_ms: int
    created_at_ms: int
    updated_at_ms: int

    def wants(self, type_: str) -> bool:
        """True where an event of this type is to be sent there."""
        return any(pattern_of(pattern).fits(type_) for pattern in self.types)


class AttemptResult(msgspec.Struct, frozen=True, kw_only=True):
    """What came of one try.

    Attributes:
        status: of the answer; None where there was none.
        failure: why it is none that counts, in words without anything of the receiver's; None where it is delivered.
        retry_after_s: what the receiver asked for, where it did.
    """

    status: int | None = None
    failure: str | None = None
    retry_after_s: int | None = None

    @property
    def is_delivered(self) -> bool:
        """True where the receiver has taken it."""
        return self.failure is None

    @property
    def is_gone(self) -> bool:
        """True where the receiver wants nothing ever again."""
        return self.status == HTTPStatus.GONE


def judged(status: int, retry_after: str | None, now_ms: int) -> AttemptResult:
    """Gives what an answer means: 2xx is delivered, everything else a failure, a redirect too."""
    if HTTPStatus.OK <= status < HTTPStatus.MULTIPLE_CHOICES:
        return AttemptResult(status=status)
    can_ask = status in {HTTPStatus.TOO_MANY_REQUESTS, HTTPStatus.SERVICE_UNAVAILABLE}
    retry_after_s = retry_after_seconds(retry_after, now_ms) if can_ask and retry_after is not None else None
    return AttemptResult(status=status, failure=f"answered with HTTP {status}", retry_after_s=retry_after_s)


def retry_after_seconds(text: str, now_ms: int) -> int | None:
    """Reads the value of a Retry-After header, seconds or a date; None where it can't be read."""
    if _seconds(text.strip()):
        return int(text)
    try:
        date = email.utils.parsedate_to_datetime(text)
        at_s = (date if date.tzinfo is not None else date.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError):
        return None
    return max(0, int(at_s - now_ms / 1000))


def next_try_ms(attempts: int, now_ms: int, *, retry_after_s: int | None, chance: float) -> int | None:
    """Gives when to try again after so many tries that failed; None where it is given up.

    ``chance`` is at least 0 and below 1. A receiver that asks for more patience gets it, up to RETRY_AFTER_MS_MAX.
    """
    if attempts >= ATTEMPTS_MAX:
        return None
    delay_ms = DELAYS_MS[attempts - 1]
    asked_ms = 0 if retry_after_s is None else min(retry_after_s * 1000, RETRY_AFTER_MS_MAX)
    return now_ms + max(delay_ms + int(delay_ms * JITTER * chance), asked_ms)


def deferred_until_ms(now_ms: int, tried: AttemptResult) -> int:
    """Gives until when nothing at all is sent to an endpoint after a try; the present where that needs no pause."""
    return now_ms if tried.retry_after_s is None else now_ms + min(tried.retry_after_s * 1000, RETRY_AFTER_MS_MAX)


def is_to_be_stopped(failing_since_ms: int, now_ms: int) -> bool:
    """True where an endpoint has taken nothing for too long."""
    return now_ms - failing_since_ms >= STOPPED_AFTER_MS
