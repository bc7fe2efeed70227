"""Pauses: the accounts on which an operator allows no new effects."""

import msgspec


class Pause(msgspec.Struct, frozen=True, kw_only=True):
    """An account is paused: since when, why and by whom."""

    account: str
    since_ms: int
    reason: str
    operator: str
