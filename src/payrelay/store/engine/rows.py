"""Converts rows of the database to values: structs, times, and the bytes of a column."""

from typing import TypeVar

import msgspec

from payrelay.store.engine.database import Row, Statement, Unit, Value

StructT = TypeVar("StructT", bound=msgspec.Struct)


def struct_of(row: Row, kind: type[StructT]) -> StructT:
    """Makes a struct from a row that has its members in their order.

    Raises ValueError for a row of another length, msgspec.ValidationError for one of other types.
    """
    return msgspec.convert(dict(zip(kind.__struct_fields__, row, strict=True)), kind)


def blob_of(value: Value) -> bytes:
    """Gives the bytes in a column, such as a sealed value; raises TypeError where the column has another type."""
    if not isinstance(value, bytes):
        raise TypeError("the column holds bytes, and this is something else")
    return value


def moment_in(statement: Statement) -> Unit[int | None]:
    """A unit of one statement that gives the time in its only row, in milliseconds; None where it is null."""
    rows = yield statement
    at_ms = rows[0][0]
    return at_ms if isinstance(at_ms, int) else None
