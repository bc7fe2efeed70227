"""What a process makes of an identity that it reads again, perhaps from another server."""

from typing import Final

import msgspec
import pytest

from payrelay.core.database.incarnations import (
    MOVED,
    Beginning,
    DatabaseIdentity,
    Incarnation,
    LostWindow,
    is_recovered_since,
    lost_since,
)


def incarnation(number: int, reason: Beginning, *, began_at_ms: int) -> Incarnation:
    """Gives an incarnation; a recovery has its lost window."""
    lost = LostWindow(since_ms=0, until_ms=began_at_ms) if reason is Beginning.RECOVERED else None
    return Incarnation(number=number, reason=reason, began_at_ms=began_at_ms, lost=lost)


FIRST: Final = incarnation(1, Beginning.CREATED, began_at_ms=0)
RECOVERED: Final = incarnation(2, Beginning.RECOVERED, began_at_ms=10)
AGAIN: Final = incarnation(2, Beginning.RECOVERED, began_at_ms=20)
COPIED: Final = incarnation(2, Beginning.COPIED, began_at_ms=10)
ENDED: Final = msgspec.structs.replace(RECOVERED, ended_recovery_at_ms=30)


def identity(*incarnations: Incarnation, of: str = "one") -> DatabaseIdentity:
    """Gives the identity of a database."""
    return DatabaseIdentity(id=of, incarnations=incarnations)


@pytest.mark.parametrize(
    ("before", "now", "is_recovered", "lost"),
    [
        (identity(FIRST), identity(FIRST), False, None),
        (identity(FIRST), identity(FIRST, RECOVERED), True, None),
        (identity(FIRST), identity(FIRST, COPIED), False, None),
        (identity(FIRST, RECOVERED), identity(FIRST, ENDED), False, None),
        (identity(FIRST, RECOVERED), identity(FIRST), False, "it lacks its incarnation 2"),
        (identity(FIRST, COPIED), identity(FIRST), False, "it lacks its incarnation 2"),
        (identity(FIRST, RECOVERED), identity(FIRST, AGAIN), True, None),
        (identity(FIRST), identity(FIRST, of="two"), False, "it is another database than before"),
        (identity(FIRST), identity(FIRST, RECOVERED, of="two"), True, None),
    ],
)
def test_a_reading_that_lacks_something_is_another_database_until_a_recovery_begins(
    before: DatabaseIdentity,
    now: DatabaseIdentity,
    is_recovered: bool,  # noqa: FBT001, a column of the table
    lost: str | None,
) -> None:
    """An address that moved to another server may show itself here first; a recovery accounts for what is lost."""
    assert (is_recovered_since(before, now), lost_since(before, now)) == (is_recovered, lost)


def test_an_incarnation_is_behind_in_all_tables_but_those_in_which_it_began() -> None:
    """A dump takes along what the database is, and nothing of where it was."""
    here = identity(FIRST, msgspec.structs.replace(COPIED, place="here"))
    there = here.in_place("there")

    assert here.in_place("here") == here
    assert (there.current.is_moved, there.current.behind, here.current.is_moved) == (True, MOVED, False)
    assert there.incarnations[:-1] == here.incarnations[:-1]
