"""Translates the driver's exceptions into ours; no other module names them to a caller."""

from types import TracebackType
from typing import Final

import asyncpg

from payrelay.errors import Outdated, StoreDoubtful, StoreError, StoreFault, StoreUnavailable

_UNAVAILABLE_CLASSES: Final = frozenset({"08", "28", "40", "53", "55", "57", "58"})
"""Classes of SQLSTATE that pass: connection, authorization (a password being changed), rollback by conflict, resources,
an object in use, operator intervention, system error."""
_UNAVAILABLE_STATES: Final = frozenset({"25006"})
"""A read-only transaction: the server has become a standby."""
_FAULTS: Final = {
    "53100": StoreFault.DISK_FULL,
    "25006": StoreFault.READ_ONLY,
    "57014": StoreFault.TIMEOUT,
    "08": StoreFault.UNREACHABLE,
    "57": StoreFault.UNREACHABLE,
    "28": StoreFault.LOGIN_REFUSED,
    "40": StoreFault.BUSY,
    "53": StoreFault.BUSY,
    "55": StoreFault.BUSY,
    "58": StoreFault.IO_ERROR,
    "XX": StoreFault.IO_ERROR,
}
"""By SQLSTATE, and else by its class."""
_UNIQUE_VIOLATION: Final = "23505"
_LOST: Final = ("08", "57P")
"""Of those that pass: the connection or the server was lost, perhaps at the commit."""

_OF_ONE_ROW: Final = frozenset({"22", "23", "40", "55"})
"""Classes of SQLSTATE: a value, a constraint, a rollback by a deadlock, a lock. Each other row alone may do better."""
_END_UNKNOWN: Final = "40003"
"""Of the class of rollbacks, and none."""

NO_ROOM: Final = (asyncpg.TooManyConnectionsError, asyncpg.CannotConnectNowError)
"""The server takes no more connections now, or not yet."""


class OtherServerError(Exception):
    """A connection leads to another server than the one that this process knows, or to one that can't be written to."""

    def __init__(self, text: str, *, fault: StoreFault = StoreFault.OTHER_SERVER) -> None:
        super().__init__(text)
        self.fault = fault


class translated:  # noqa: N801, a context without a state, as those of contextlib
    """Translates the driver's exceptions into those that ``Database`` promises, with their causes."""

    __slots__ = ()

    def __enter__(self) -> None:
        pass

    def __exit__(self, _: type[BaseException] | None, error: BaseException | None, __: TracebackType | None) -> None:
        if error is not None and (ours := translation_of(error)) is not None:
            raise ours from error


class in_doubt:  # noqa: N801, as above
    """Raises StoreDoubtful where the server was lost during a unit and may have committed it."""

    __slots__ = ()

    def __enter__(self) -> None:
        pass

    def __exit__(self, _: type[BaseException] | None, error: BaseException | None, __: TracebackType | None) -> None:
        if error is not None and _may_be_committed(error):
            raise StoreDoubtful(f"the database was lost: {first_line(error)}", fault=_fault_of(error)) from error


def translation_of(error: BaseException) -> StoreError | None:
    """Gives what ``Database`` promises in the place of an exception of the driver's; None for any other."""
    if isinstance(error, asyncpg.PostgresError):
        return _of_state(error)
    if isinstance(error, OtherServerError):
        return StoreUnavailable(str(error), fault=error.fault)
    if isinstance(error, OSError | TimeoutError):
        return StoreUnavailable(f"the database can't be reached: {first_line(error)}", fault=_fault_of(error))
    if isinstance(error, asyncpg.DataError):
        return StoreError(f"the database can't hold a value: {first_line(error)}")
    if isinstance(error, asyncpg.InterfaceError | asyncpg.InternalClientError):
        # Where a connection dies at a bad moment, the driver sometimes reports a fault of its own.
        msg = f"the database can't be used: {first_line(error)}"
        return StoreUnavailable(msg, fault=StoreFault.UNREACHABLE)
    return None


def _may_be_committed(error: BaseException) -> bool:
    if isinstance(error, asyncpg.PostgresError):
        return (error.sqlstate or "").startswith(_LOST)
    if isinstance(error, asyncpg.DataError):
        return False
    return isinstance(error, OSError | TimeoutError | asyncpg.InterfaceError | asyncpg.InternalClientError)


def is_of_one_row(error: asyncpg.PostgresError | asyncpg.DataError) -> bool:
    """True where the statement was surely undone, or never sent, because of a row of its own or a row's lock."""
    if isinstance(error, asyncpg.DataError):
        return True
    state: str = error.sqlstate or ""
    return state[:2] in _OF_ONE_ROW and state != _END_UNKNOWN


def _of_state(error: asyncpg.PostgresError) -> StoreError:
    state: str = error.sqlstate or ""
    if state == _UNIQUE_VIOLATION:
        return Outdated("another row took the place of this one")
    if state[:2] in _UNAVAILABLE_CLASSES or state in _UNAVAILABLE_STATES:
        return StoreUnavailable(f"the database can't be used: {first_line(error)}", fault=_fault_of(error))
    return StoreError(f"the database refused a statement: {first_line(error)}", fault=_fault_of(error))


def _fault_of(error: BaseException) -> StoreFault:
    if isinstance(error, asyncpg.PostgresError):
        state: str = error.sqlstate or ""
        return _FAULTS.get(state) or _FAULTS.get(state[:2], StoreFault.OTHER)
    return StoreFault.TIMEOUT if isinstance(error, TimeoutError) else StoreFault.UNREACHABLE


def first_line(error: BaseException) -> str:
    """Gives the message without the details that the server adds, which quote values."""
    return (str(error) or type(error).__name__).splitlines()[0]
