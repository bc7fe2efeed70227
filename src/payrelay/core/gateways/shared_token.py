"""An access token that processes share, as the store gives it."""

from typing import NamedTuple


class SharedToken(NamedTuple):
    """A token in the store.

    Attributes:
        text: what is sent to the gateway.
        age_s: seconds since a process fetched it.
        left_s: seconds until it expires; negative after that.
    """

    text: str
    age_s: float
    left_s: float
