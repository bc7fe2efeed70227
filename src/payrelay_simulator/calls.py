"""The log of every call that arrived, rejected ones included, without a secret in it."""

from collections import deque
from datetime import datetime

import msgspec

# About fifty megabytes; the oldest go first, and the log says how many it has forgotten.
CALLS_KEPT_MAX = 100_000

PATH_LENGTH_MAX = 200  # a path is only logged to be recognised


class CallRecord(msgspec.Struct, frozen=True, kw_only=True):
    """One arrival. `http_status` is None where nothing was to be answered; `ledger_entries` says what it effected."""

    number: int
    at: datetime
    arrived_monotonic_s: float
    method: str
    path: str
    endpoint: str | None
    order_id: str | None
    is_budget_blocked: bool
    fault: str | None
    http_status: int | None
    ledger_entries: int


class CallLog:
    """Arrivals in their order, the newest `CALLS_KEPT_MAX` of them."""

    def __init__(self) -> None:
        self._records: deque[CallRecord] = deque(maxlen=CALLS_KEPT_MAX)
        self._arrived = 0

    def next_number(self) -> int:
        """Return the number of the call that arrives now, beginning with 1."""
        self._arrived += 1
        return self._arrived

    def record(self, record: CallRecord) -> None:
        """Keep the record of a call that has been dealt with."""
        self._records.append(record)

    def newest(self, count: int) -> "CallLog":
        """Return a log that goes on with these numbers, and has the newest records alone."""
        log = CallLog()
        log._arrived = self._arrived
        log._records.extend(list(self._records)[-count:])
        return log

    @property
    def arrived(self) -> int:
        """How many calls have arrived, forgotten ones included."""
        return self._arrived

    def records(self, *, after: int = 0, count: int | None = None) -> tuple[CallRecord, ...]:
        """Return the kept records numbered above `after`, at most `count` of them."""
        found = [record for record in self._records if record.number > after]
        return tuple(found[:count])
