"""A noun's table: its columns, named once, and what follows from them for statements, digests and seals.

A table is data. Queries are written out where they stand, and take from here only what names all columns of a row.
"""

# ruff: noqa: S608 - only columns named in our own code are put into the texts; values are always parameters

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final, Generic, NamedTuple, get_args, get_type_hints

import msgspec

from payrelay.store.engine.database import Row, Value
from payrelay.store.engine.rows import StructT, struct_of

TIMING: Final = "it says only when the service turns to the row again"
"""Why a digest leaves a column out."""


class Binding(NamedTuple):
    """What binds a sealed value to its row, made of the values of the row's key.

    Attributes:
        context: gives the seal context.
        owner: for values that are sealed with data keys, gives the name of the data key's owner.
    """

    context: Callable[..., bytes]
    owner: Callable[..., str] | None = None


@dataclass(frozen=True, eq=False, kw_only=True)
class Table:
    """A table whose rows have digests, which is one for each name.

    Attributes:
        name: of the table.
        columns: those whose values make a row's digest, in the order in which it takes them; the key is first. Most
            nouns have a column for each member of their struct (``columns_for``).
        keys: how many columns the key has; most tables have an id.
        uncovered: columns that the digest leaves out, each with the reason; also such as aren't among ``columns``.
        sealed: the sealed columns, which aren't among ``columns``: each value is bound to its row by its seal.
        ended_by: the column that is set once a row grants nothing any more; None where rows don't end.
    """

    name: str
    columns: tuple[str, ...]
    keys: int = 1
    uncovered: Mapping[str, str] = field(default_factory=dict)
    sealed: Mapping[str, Binding] = field(default_factory=dict)
    ended_by: str | None = None

    @property
    def key(self) -> tuple[str, ...]:
        """The columns of the key."""
        return self.columns[: self.keys]

    @cached_property
    def covered(self) -> tuple[str | None, ...]:
        """The columns, with None in the place of one that the digest leaves out."""
        return tuple(None if column in self.uncovered else column for column in self.columns)

    def name_of(self, row: Row) -> str:
        """Names a row in alerts: its table and its key."""
        return "/".join([self.name, *map(str, row[: self.keys])])

    def members(self, row: Row) -> dict[str, Value]:
        """Gives the values of a row by their columns."""
        return dict(zip(self.columns, row, strict=True))

    @property
    def listed(self) -> str:
        """The columns, as SQL lists them."""
        return ", ".join(self.columns)

    @property
    def read(self) -> str:
        """The columns and the digest behind them: nothing is concluded from a row without its digest."""
        return f"{self.listed}, row_digest"

    @property
    def select(self) -> str:
        """Reads whole rows; a condition follows."""
        return f"SELECT {self.read} FROM {self.name}"

    def into(self, *more: str) -> str:
        """Begins a statement that adds rows: their columns, then ``more`` such as sealed ones, then the digest."""
        return f"INSERT INTO {self.name} ({', '.join((*self.columns, *more))}, row_digest)"

    def insert(self, *more: str) -> str:
        """Adds a row, whose values are the first parameters in the order of ``into``."""
        numbers = range(1, len(self.columns) + len(more) + 2)
        return f"{self.into(*more)} VALUES ({', '.join(f'${number}' for number in numbers)})"

    @property
    def replaced(self) -> str:
        """Sets every column behind the key, and the digest, to the parameters that ``insert`` takes."""
        changed = [f"{column} = ${number}" for number, column in enumerate((*self.columns, "row_digest"), 1)]
        return ", ".join(changed[self.keys :])

    @property
    def packed(self) -> str:
        """A row as one JSON array: the table's name, the columns, and the digest behind them.

        So one statement gives whole rows of several tables, and the digest of each can be checked
        (``store.statements.payments.packed_rows.unpacked``).
        """
        return f"json_build_array('{self.name}', {self.qualified}, {self.name}.row_digest)"

    @property
    def qualified(self) -> str:
        """The columns, each with the table's name before it."""
        return ", ".join(f"{self.name}.{column}" for column in self.columns)


@dataclass(frozen=True, eq=False, kw_only=True)
class StructTable(Table, Generic[StructT]):
    """A table that has a column for each member of a struct (``kind``), in their order."""

    kind: type[StructT]

    @cached_property
    def types(self) -> tuple[str, ...]:
        """PostgreSQL's types of the columns, for statements from which it can't tell them: an int is a bigint."""
        hints = get_type_hints(self.kind)
        allowed = [get_args(hints[member]) or (hints[member],) for member in self.kind.__struct_fields__]
        return tuple("bigint" if int in each else "text" for each in allowed)

    def value(self, row: Row) -> StructT:
        """Converts the columns of a row; raises msgspec.ValidationError for values that the struct can't have."""
        return struct_of(row, self.kind)

    def row(self, value: StructT) -> tuple[Value, ...]:
        """Gives the columns of a row, as a digest is over them."""
        return msgspec.structs.astuple(value)


def columns_for(kind: type[msgspec.Struct], **other_names: str) -> tuple[str, ...]:
    """Gives a column for each member of a struct, in their order; ``other_names`` are of members named otherwise."""
    return tuple(other_names.get(member, member) for member in kind.__struct_fields__)
