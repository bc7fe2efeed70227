"""Says whether an id that a database doesn't know may have been given out in commits that it has lost.

An id begins with the time at which it was made. So only ids of a lost window are in doubt, and only for as long as the
recovery lasts: afterwards nothing that was lost is expected back. What the database does know may lack its last change.
"""

import re
from typing import Final

from payrelay.core.database.incarnations import Incarnation

CLOCKS_MS: Final = 300_000
"""How far the clocks of the processes and of the database may be apart."""
_TIME: Final = re.compile(r"[a-z]+_([0-9a-f]{12})[0-9a-f]{20}")


def may_be_lost(id_: str | None, current: Incarnation, *, is_behind: bool) -> bool:
    """Tells whether an unknown id may have been lost; None stands for a name without a time, such as a client's key.

    While the database is behind and no recovery has begun, nobody knows since when commits are lost.
    """
    found = None if id_ is None else _TIME.fullmatch(id_)
    if id_ is not None and found is None:
        return False  # the service never gave out such an id
    if is_behind:
        return True
    if current.lost is None or not current.is_recovering:
        return False
    made_ms = None if found is None else int(found[1], 16)
    since_ms, until_ms = current.lost.since_ms - CLOCKS_MS, current.lost.until_ms + CLOCKS_MS
    return made_ms is None or since_ms <= made_ms <= until_ms


def may_lack_a_change(made_ms: int, current: Incarnation, *, is_behind: bool) -> bool:
    """Tells whether a change of something that was made then may have been lost; the same holds as for ids."""
    if is_behind:
        return True
    return current.lost is not None and current.is_recovering and made_ms <= current.lost.until_ms + CLOCKS_MS


def tries_lost_since_ms(principal: str, current: Incarnation, *, is_behind: bool) -> int | None:
    """Gives since when earlier tries of a principal's requests may be lost, in ms since 1970; None where none may be.

    While the database is behind and no recovery has begun, that may be ever since. A principal that has acknowledged
    the recovery repeats nothing.
    """
    if is_behind:
        return 0
    if current.lost is None or not current.is_recovering or principal in current.acknowledged:
        return None
    return current.lost.since_ms - CLOCKS_MS
