"""What a program may change of a database's schema when it opens it."""

from collections.abc import Callable
from typing import Final, NamedTuple

Tell = Callable[[str], None]
"""Hears how a long change goes on, in one line each time."""


def tell_nobody(_: str) -> None:
    """Hears nothing."""


class SchemaChanges(NamedTuple):
    """What opening a database may change of it.

    Attributes:
        may_make: whether a missing database is made.
        may_upgrade: whether an old one is brought up to date.
        tell: hears how an upgrade goes on.
    """

    may_make: bool = True
    may_upgrade: bool = True
    tell: Tell = tell_nobody


AS_IT_IS: Final = SchemaChanges(may_make=False, may_upgrade=False)
"""A missing database and an old one are refused."""
MAKE: Final = SchemaChanges(may_upgrade=False)
"""A missing database is made; an old one is refused."""
ANY: Final = SchemaChanges()
"""Both are done."""
