"""Pauses: the accounts on which an operator allows no new effects."""

import msgspec

from payrelay.core.explanations import printable
from payrelay.core.moments import spoken


class Pause(msgspec.Struct, frozen=True, kw_only=True):
    """An account is paused: since when, why and by whom."""

    account: str
    since_ms: int
    reason: str
    operator: str


def in_words(pause: Pause) -> str:
    """Tells since when, by whom and why, for an operator."""
    return f"since {spoken(pause.since_ms)} UTC by {printable(pause.operator)}, because “{printable(pause.reason)}”"
