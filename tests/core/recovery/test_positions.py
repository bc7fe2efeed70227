"""The ranges of positions: no incarnation gives a position that another one gave, and today's positions stay."""

from typing import Final

from payrelay.core.database.incarnations import Beginning, DatabaseIdentity, Incarnation, LostWindow
from payrelay.core.events.positions import RANGE, before_first, incarnation_of, lost_after

LOST: Final = LostWindow(since_ms=10, until_ms=20)
FIRST: Final = Incarnation(number=1, reason=Beginning.CREATED, began_at_ms=0)
COPIED: Final = Incarnation(number=2, reason=Beginning.COPIED, began_at_ms=5)
RECOVERED: Final = Incarnation(number=3, reason=Beginning.RECOVERED, began_at_ms=20, lost=LOST)


def test_a_position_tells_its_incarnation() -> None:
    """Those of the first one are those that clients have today."""
    assert [before_first(number) for number in (1, 2, 3)] == [0, RANGE, 2 * RANGE]
    assert [incarnation_of(position) for position in (0, 1, RANGE - 1, RANGE, RANGE + 1)] == [1, 1, 1, 2, 2]


def test_a_position_may_be_lost_where_commits_were_lost_after_it_was_given() -> None:
    """A copy loses nothing, and what the newest incarnation gave is there."""
    identity = DatabaseIdentity(id="1", incarnations=(FIRST, COPIED, RECOVERED))

    assert [lost_after(before_first(number) + 7, identity) for number in (1, 2, 3, 4)] == [LOST, LOST, None, None]
    assert lost_after(7, DatabaseIdentity(id="1", incarnations=(FIRST, COPIED))) is None
