"""The schedule of status inquiries about an operation."""

from typing import Final

HOUR_MS: Final = 3_600_000
DAY_MS: Final = 24 * HOUR_MS
NEVER_MS: Final = 2**62
"""A time after every other one, which every database can hold."""

INQUIRIES_MS: Final = (
    2_000,
    10_000,
    30_000,
    120_000,
    300_000,
    900_000,
    HOUR_MS,
    6 * HOUR_MS,
    DAY_MS,
    2 * DAY_MS,
    3 * DAY_MS,
    4 * DAY_MS,
)
"""The times of the inquiries, from the loss of the outcome on; then one a day. They are dense at first, when an effect
shows and a client waits. They last four days, because the gateway gives one answer for *not yet* and *never*."""

UNSEEN_MS_MIN: Final = 5_000
UNSEEN_MS_MAX: Final = 900_000
"""The limits of the pause after an inquiry that failed; it is half of the time since the outcome was lost."""

REAPPEARANCE_MS: Final = 30 * DAY_MS
"""How long the service still searches for a failed operation, once a day."""


def next_inquiry_ms(open_since_ms: int, now_ms: int) -> int:
    """Gives the first time of the schedule after ``now_ms``."""
    elapsed_ms = now_ms - open_since_ms
    for inquiry_ms in INQUIRIES_MS:
        if inquiry_ms > elapsed_ms:
            return open_since_ms + inquiry_ms
    days = elapsed_ms // DAY_MS + 1
    return open_since_ms + days * DAY_MS


def next_try_ms(open_since_ms: int, now_ms: int) -> int:
    """Gives when to inquire again after an inquiry that failed: the schedule's next time, or sooner."""
    pause_ms = min(max((now_ms - open_since_ms) // 2, UNSEEN_MS_MIN), UNSEEN_MS_MAX)
    return min(now_ms + pause_ms, next_inquiry_ms(open_since_ms, now_ms))


def next_search_ms(failed_at_ms: int, now_ms: int) -> int | None:
    """Gives when to search again for a failed operation; None where REAPPEARANCE_MS would be over by then."""
    following_ms = now_ms + DAY_MS
    return following_ms if following_ms - failed_at_ms <= REAPPEARANCE_MS else None
