"""The check of the Python that runs this program: whether it has a known hole that concerns the service."""

import re
from typing import Final

from payrelay.cli.checks.python_holes import DATE, NEWEST, NOT_JUDGED, Hole, holes_of
from payrelay.gateways.gateway import CheckResult

# A release and nothing else: what stands behind the numbers of another build may be older than the release.
_release: Final = re.compile(r"3\.(\d{1,3})\.(\d{1,3})").fullmatch

_BY_TABLE: Final = f"by the table of {DATE}, which doesn't judge {' and '.join(NOT_JUDGED)} yet"


def of_python(implementation: str, version: str) -> CheckResult:
    """Warns of each known hole, with what follows from it and the release to take, and of a Python that isn't known.

    No hole is a failure: distributions close holes without another version number.

    Args:
        implementation: as ``platform.python_implementation()`` gives it.
        version: as ``platform.python_version()`` gives it.
    """
    release = _release(version) if implementation == "CPython" else None
    holes = None if release is None else holes_of(int(release[1]), int(release[2]))
    if release is None or holes is None:
        newest = ", ".join(f"3.{minor}.{patch}" for minor, patch in NEWEST.items())
        text = (
            f"{implementation} {version}: the table of {DATE} doesn't know its holes; it knows CPython up to {newest}"
        )
    elif holes:
        text = _of_holes(int(release[1]), version, holes)
    else:
        text = f"{version}: no hole is known that concerns Payrelay, {_BY_TABLE}"
    return CheckResult(subject="python", is_right=True, is_warning=holes is None or bool(holes), text=text)


def _of_holes(minor: int, version: str, holes: tuple[Hole, ...]) -> str:
    named = "; ".join(f"{hole.name}, fixed in 3.{minor}.{hole.fixed[minor]}: {hole.effect}" for hole in holes)
    safe = max(hole.fixed[minor] for hole in holes)
    advice = f"unless your distribution has closed them: take 3.{minor}.{safe} or later"
    return f"{version} has known holes, {advice}. {named}. This is {_BY_TABLE}"
