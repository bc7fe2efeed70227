"""Positions of events in the feed: each incarnation of the database has a range of its own, above all before it.

So no position is given twice, although the database has lost some, and a position tells in which incarnation it was
given. Those of the first incarnation begin at 1, as they always did.
"""

from typing import Final

from payrelay.core.database.incarnations import DatabaseIdentity, LostWindow

RANGE: Final = 10**13
"""Positions of one incarnation: more than any service gives, and 900 incarnations fit into a number of JavaScript."""


def before_first(incarnation: int) -> int:
    """Gives the position before the first one of an incarnation."""
    return (incarnation - 1) * RANGE


def incarnation_of(position: int) -> int:
    """Gives the number of the incarnation in which a position was given; also of the one before its first."""
    return position // RANGE + 1


def lost_after(position: int, identity: DatabaseIdentity) -> LostWindow | None:
    """Gives the first lost window since a position was given: the event there may be lost. None where there is none."""
    given_in = incarnation_of(position)
    return next((each.lost for each in identity.incarnations if each.number > given_in and each.lost is not None), None)
