"""Pauses: the accounts on which an operator allows no new operations or checkouts."""

import msgspec


class Pause(msgspec.Struct, frozen=True, kw_only=True):
    """The pause of an account: since when (milliseconds since 1970, UTC), why, and by which operator."""

    account: str
    since_ms: int
    reason: str
    operator: str
