"""What is locked, as an installation reads it."""

import re
from importlib.metadata import PackageNotFoundError, requires
from pathlib import Path
from typing import Final

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

LOCK: Final = Path(__file__).parents[1] / "requirements" / "dev.lock"
LINE: Final = re.compile(r"^(?P<requirement>[A-Za-z0-9._-]+(?:\[[^\]]+\])?==\S+)", re.MULTILINE)


def locked() -> dict[str, frozenset[str]]:
    """Gives the extras of each package that the lock for development names."""
    requirements = (Requirement(match["requirement"]) for match in LINE.finditer(LOCK.read_text()))
    return {canonicalize_name(one.name): frozenset(one.extras) for one in requirements}


def wanted(name: str, extras: frozenset[str]) -> list[Requirement]:
    """Gives what an installed package asks for here, with these extras of it."""
    try:
        asked = [Requirement(text) for text in requires(name) or ()]
    except PackageNotFoundError:  # for another system
        return []
    return [
        one
        for one in asked
        if one.marker is None or any(one.marker.evaluate({"extra": extra}) for extra in {"", *extras})
    ]


def test_extras_are_locked_too() -> None:
    """Every extra that one package asks of another stands in the lock.

    Some versions of pip take the newest release of what is locked without its extra, and then refuse it as not locked.
    On the day of that release nobody could install this project any more.
    """
    lock = locked()

    missing = [
        f"{name} asks for {one}"
        for name, extras in lock.items()
        for one in wanted(name, extras)
        if not one.extras <= lock.get(canonicalize_name(one.name), one.extras)
    ]

    assert len(lock) > 50
    assert missing == []
