"""What a row of the database becomes at the door of the store: a value, an instant, the bytes of a column."""

from typing import TypeVar

import msgspec

from payrelay.store.engine.database import Row, Statement, Unit, Value

StructT = TypeVar("StructT", bound=msgspec.Struct)


def struct_of(row: Row, kind: type[StructT]) -> StructT:
    """Makes a value of a row that has its members in their order.

    Raises ValueError for a row of another length, msgspec.ValidationError for one of other types.
    """
    return msgspec.convert(dict(zip(kind.__struct_fields__, row, strict=True)), kind)


def blob_of(value: Value) -> bytes:
    """Gives what a column of bytes holds, such as a sealed one; raises TypeError where it holds something else."""
    if not isinstance(value, bytes):
        raise TypeError("the column holds bytes, and this is something else")
    return value


def moment_in(statement: Statement) -> Unit[int | None]:
    """A unit of one statement that gives the moment in its only row, in milliseconds; None where it is null."""
    rows = yield statement
    at_ms = rows[0][0]
    return at_ms if isinstance(at_ms, int) else None
