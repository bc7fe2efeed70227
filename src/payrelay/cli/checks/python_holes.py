"""The known holes of CPython through which a stranger can do something to this service: a short table with a date.

A hole is named only where foreign text or a foreign connection gets at it here. Most holes of the standard library are
in what nothing here uses, such as archives, XML and cookies. For others we have our own rule in the library's place,
such as for the addresses that events may go to.
"""

from typing import Final, NamedTuple

DATE: Final = "2026-11-20"
"""The day of the newest record of the Python Software Foundation that was at hand."""
NOT_JUDGED: Final = ("CVE-2026-19552", "CVE-2026-19553")
"""Both are in ``ssl``; what they do was not at hand. So nothing is said of them but that."""
NEWEST: Final = {11: 18, 12: 16, 13: 18, 14: 10}
"""The newest patch release that was known on that day, of 3.11 and so on. The holes of later ones can't be known."""


class Hole(NamedTuple):
    """One hole.

    Attributes:
        name: its CVE number.
        effect: what somebody can do to this service through it, to stand in a sentence.
        fixed: by the minor version, the first patch release without it; a version that isn't named never had it.
    """

    name: str
    effect: str
    fixed: dict[int, int]


HOLES: Final = (
    Hole(
        "CVE-2026-115557",
        "whoever is on the way to the gateway, or to another server that Payrelay calls, can pose as it with a stolen"
        " key of the authority eMudhra, where this machine still trusts that authority",
        {11: 18, 12: 16, 13: 18, 14: 10},
    ),
)


def holes_of(minor: int, patch: int) -> tuple[Hole, ...] | None:
    """Gives the holes of CPython 3.minor.patch; None where the table doesn't know that release."""
    if patch > NEWEST.get(minor, -1):
        return None
    return tuple(hole for hole in HOLES if patch < hole.fixed.get(minor, 0))
