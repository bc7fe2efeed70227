"""The things of the books that an operator acts on: days, months and differences."""

from collections.abc import Awaitable, Callable
from typing import Final

from payrelay.flows.operators.acting import ActTarget
from payrelay.flows.relay import Relay
from payrelay.reconciliation.acts.book_targets import DAY, DIFFERENCE, MONTH, SEEN_BY, read_day, read_difference
from payrelay.reconciliation.acts.month_target import read_month_target

__all__ = ["BOOK_READERS", "SEEN_BY"]

BOOK_READERS: Final[dict[str, Callable[[Relay, str], Awaitable[ActTarget | None]]]] = {
    DAY: read_day,
    MONTH: read_month_target,
    DIFFERENCE: read_difference,
}
"""By the noun in an address."""
