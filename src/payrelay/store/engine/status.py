"""The state of an engine, with the count of the units of work that it failed to carry out."""

from collections import Counter
from types import TracebackType
from typing import Self

from payrelay.core.database.store_status import StoreStatus
from payrelay.errors import Outdated, RowForged, StoreError, StoreFault

__all__ = ["FailureCount", "StoreStatus"]


class FailureCount:
    """Counts failed units by their fault: a context around each unit, which passes every exception on.

    A row that another unit wrote first, and a row that is forged, are no failure of the store.
    """

    def __init__(self) -> None:
        self.by_fault: Counter[StoreFault] = Counter()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, _: type[BaseException] | None, error: BaseException | None, __: TracebackType | None) -> None:
        if isinstance(error, StoreError) and not isinstance(error, Outdated | RowForged):
            self.by_fault[error.fault] += 1
