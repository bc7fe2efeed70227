"""Deliveries: which events an endpoint gets, when a failed attempt is repeated, and when an endpoint is stopped.

The schedule is the one that Standard Webhooks recommends: ten attempts over a little more than three days.
"""

import email.utils
import re
from datetime import UTC
from enum import StrEnum
from http import HTTPStatus
from typing import Final
from urllib.parse import urlsplit

import msgspec

from payrelay.core.events.event import TYPES
from payrelay.core.payments.schedules import DAY_MS, HOUR_MS
from payrelay.core.secret import MaskedRepr

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
"""The delays after the first failed attempt, after the second, …; then the delivery is given up."""
ATTEMPTS_MAX: Final = len(DELAYS_MS) + 1
JITTER: Final = 0.2
"""The largest part of a delay that chance adds, so that deliveries that failed together aren't repeated together."""
STOPPED_AFTER_MS: Final = 3 * DAY_MS
"""An endpoint that accepts nothing for so long is stopped."""
RETRY_AFTER_MS_MAX: Final = HOUR_MS
"""The longest wait that a receiver may ask for; a longer one is cut to this."""
RETRY_AFTER_LENGTH_MAX: Final = 64
"""Of a Retry-After; a date has 29 characters. A year of thousands of digits takes time with the square of them."""
OLDER_SECRET_MS: Final = DAY_MS
"""How long after a rotation webhooks are signed with the older secret too."""
PATTERNS_MAX: Final = 20
"""The most patterns of one endpoint; there are hardly more types."""
LABEL_LENGTH_MAX: Final = 100
URL_LENGTH_MAX: Final = 2_000

_ALL: Final = "*"
_NOUNS: Final = frozenset(type_.partition(".")[0] for type_ in TYPES)
PATTERNS: Final = (_ALL, *(f"{noun}.*" for noun in sorted(_NOUNS)), *sorted(TYPES))
"""Every pattern that there is."""
_seconds: Final = re.compile(r"[0-9]{1,9}").fullmatch


class EndpointState(StrEnum):
    """The state of an endpoint."""

    ACTIVE = "active"
    """Events are sent."""
    PAUSED = "paused"
    """Events wait."""
    STOPPED = "stopped"
    """Events are not queued; a person or a program must start the endpoint again."""


class DeliveryState(StrEnum):
    """The state of a delivery."""

    WAITING = "waiting"
    """It is due, is being attempted, or is attempted again later."""
    DELIVERED = "delivered"
    GIVEN_UP = "given_up"
    """Every attempt failed, or the endpoint was stopped; the event can be replayed."""


class PatternError(ValueError):
    """The text is no pattern of event types; the message fits behind the field's name."""


class Pattern(msgspec.Struct, frozen=True):
    """The types that match: those whose first ``compared`` characters are equal to ``beginning``."""

    beginning: str
    compared: int

    @property
    def text(self) -> str:
        """The text that ``pattern_of`` reads as this."""
        is_whole = self.compared > len(self.beginning)
        return self.beginning if is_whole else f"{self.beginning}{_ALL}"

    def fits(self, type_: str) -> bool:
        """True where the type matches."""
        return type_[: self.compared] == self.beginning


def pattern_of(text: str) -> Pattern:
    """Reads ``*``, ``operation.*`` or a whole type such as ``operation.succeeded``; raises PatternError."""
    if text == _ALL:
        return Pattern("", 0)
    noun, _, what = text.partition(".")
    if what == _ALL and noun in _NOUNS:
        return Pattern(f"{noun}.", len(noun) + 1)
    if text in TYPES:
        # One character more than the type has, so that a longer type doesn't match.
        return Pattern(text, len(text) + 1)
    nouns = ", ".join(f"{known}.*" for known in sorted(_NOUNS))
    raise PatternError(f"must be *, one of {nouns}, or a type of event such as operation.succeeded")


class Endpoint(MaskedRepr, frozen=True, kw_only=True):
    """An address to which events are sent.

    Attributes:
        id: ``end_…``.
        account, merchant, principal: the owner who registered it, and whose events it gets.
        url: the address, whose path may be a secret; only its host is ever logged.
        types: patterns; see ``pattern_of``.
        label: free text for people.
        state: whether events are sent.
        reason: why they are not sent; None while they are.
        older_ends_at_ms: until when the secret before the last rotation is used too; None where there is none.
        failing_since_ms: when an attempt first failed since the last success; None while attempts succeed.
        deferred_until_ms: nothing is sent before this time, because the receiver asked for that.
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

    @property
    def host(self) -> str:
        """The part of the address that is no secret."""
        return urlsplit(self.url).hostname or ""

    def wants(self, type_: str) -> bool:
        """True where an event of this type is sent to the endpoint."""
        return any(pattern_of(pattern).fits(type_) for pattern in self.types)


class AttemptResult(msgspec.Struct, frozen=True, kw_only=True):
    """The result of one attempt.

    Attributes:
        status: the HTTP status of the answer; None where there was no answer.
        failure: why the attempt failed, without any text of the receiver's; None where the event is delivered.
        retry_after_s: the wait that the receiver asked for, in seconds; None where it asked for none.
    """

    status: int | None = None
    failure: str | None = None
    retry_after_s: int | None = None

    @property
    def is_delivered(self) -> bool:
        """True where the receiver accepted the event."""
        return self.failure is None

    @property
    def is_gone(self) -> bool:
        """True where the receiver answered that it is gone for good."""
        return self.status == HTTPStatus.GONE


def judged(status: int, retry_after: str | None, now_ms: int) -> AttemptResult:
    """Gives the result of an answer: 2xx is delivered, everything else a failure, a redirect too."""
    if HTTPStatus.OK <= status < HTTPStatus.MULTIPLE_CHOICES:
        return AttemptResult(status=status)
    may_defer = status in {HTTPStatus.TOO_MANY_REQUESTS, HTTPStatus.SERVICE_UNAVAILABLE}
    retry_after_s = retry_after_seconds(retry_after, now_ms) if may_defer and retry_after is not None else None
    return AttemptResult(status=status, failure=f"answered with HTTP {status}", retry_after_s=retry_after_s)


def retry_after_seconds(text: str, now_ms: int) -> int | None:
    """Reads the value of a Retry-After header, seconds or a date; None where it can't be read."""
    if len(text) > RETRY_AFTER_LENGTH_MAX:
        return None
    if _seconds(text.strip()):
        return int(text)
    try:
        date = email.utils.parsedate_to_datetime(text)
        at_s = (date if date.tzinfo is not None else date.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError):
        return None
    return max(0, int(at_s - now_ms / 1000))


def next_try_ms(attempts: int, now_ms: int, *, retry_after_s: int | None, chance: float) -> int | None:
    """Gives when to try again after so many failed attempts; None where the delivery is given up.

    ``chance`` is at least 0 and below 1. A longer wait that the receiver asks for counts, up to RETRY_AFTER_MS_MAX.
    """
    if attempts >= ATTEMPTS_MAX:
        return None
    delay_ms = DELAYS_MS[attempts - 1]
    return now_ms + max(delay_ms + int(delay_ms * JITTER * chance), _deferral_ms(retry_after_s))


def deferred_until_ms(now_ms: int, result: AttemptResult) -> int:
    """Gives until when nothing is sent to an endpoint after an attempt; ``now_ms`` where that needs no pause."""
    return now_ms + _deferral_ms(result.retry_after_s)


def _deferral_ms(retry_after_s: int | None) -> int:
    return 0 if retry_after_s is None else min(retry_after_s * 1000, RETRY_AFTER_MS_MAX)


def is_to_be_stopped(failing_since_ms: int, now_ms: int) -> bool:
    """True where an endpoint has accepted nothing for too long."""
    return now_ms - failing_since_ms >= STOPPED_AFTER_MS
