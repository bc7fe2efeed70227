"""A value for what a change leaves as it is, because None removes."""

from enum import Enum
from typing import Final, Literal


class _Unchanged(Enum):
    UNCHANGED = "unchanged"

    def __repr__(self) -> str:
        return "UNCHANGED"


Unchanged = Literal[_Unchanged.UNCHANGED]
UNCHANGED: Final = _Unchanged.UNCHANGED


def changes(**members: object) -> dict[str, object]:
    """Gives the members that change."""
    return {name: value for name, value in members.items() if value is not UNCHANGED}
