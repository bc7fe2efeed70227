"""Compares what is locked with a list of advisories where there is one that is young enough.

``python release/advisories.py LIST`` takes OSV's export for PyPI: ``all.zip``, or a folder with its files. How old it
is, its newest advisory tells, and not the file's date. It ends with 1 where something that is locked is known to be
vulnerable, and with 0 otherwise: then it prints either how much was compared, or ``not checked`` and why. Nothing that
wasn't compared is called clean.
"""

import json
import re
import sys
import zipfile
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion, Version

ROOT: Final = Path(__file__).parent.parent
AGE_MAX: Final = timedelta(days=90)
_locked_in: Final = re.compile(r"^([A-Za-z0-9._-]+)(?:\[[^\]]+\])?==([^\s;\\]+)", re.MULTILINE).findall
Advisory = dict[str, Any]


class NotChecked(Exception):
    """There is no list that could be compared with; the text says why."""


def locked(folder: Path) -> dict[tuple[str, str], list[str]]:
    """Gives each package and version that is locked, with the names of the files that lock it."""
    found: dict[tuple[str, str], list[str]] = {}
    for path in sorted(folder.glob("*.lock")):
        for name, version in _locked_in(path.read_text()):
            found.setdefault((canonicalize_name(name), version), []).append(path.name)
    return found


def read(name: str) -> list[Advisory]:
    """Reads the advisories of a file or a folder. Raises NotChecked for none, and for what can't be read."""
    path = Path(name)
    if not name or not path.exists():
        raise NotChecked("there is no list of advisories here")
    try:
        advisories = [json.loads(text) for text in _texts(path)]
        if not advisories or not all(isinstance(each["modified"], str) for each in advisories):
            raise NotChecked("the list has no advisories")
    except (OSError, ValueError, KeyError, TypeError, zipfile.BadZipFile) as error:
        raise NotChecked(f"the list can't be read ({type(error).__name__})") from None
    return advisories


def require_young(advisories: Iterable[Advisory], now: datetime) -> str:
    """Gives the day of the newest advisory. Raises NotChecked where the list is older than AGE_MAX."""
    # Of one length, they are compared as texts.
    newest = str(max(each["modified"][:19] for each in advisories))
    try:
        moment = datetime.fromisoformat(newest).replace(tzinfo=UTC)
    except ValueError:
        raise NotChecked("the list doesn't say of when its advisories are") from None
    if now - moment > AGE_MAX:
        raise NotChecked(f"the newest advisory of the list is of {newest[:10]}, over {AGE_MAX.days} days ago")
    return newest[:10]


def hits(advisories: Iterable[Advisory], versions: Iterable[tuple[str, str]]) -> Iterator[tuple[str, str, str]]:
    """Finds the packages and versions that an advisory is about, with its id."""
    by_name: dict[str, list[str]] = {}
    for name, version in versions:
        by_name.setdefault(name, []).append(version)
    for advisory in advisories:
        if advisory.get("withdrawn"):
            continue
        for affected in advisory.get("affected", ()):
            package = affected.get("package", {})
            name = canonicalize_name(package.get("name", ""))
            if package.get("ecosystem") == "PyPI":
                yield from (
                    (name, each, advisory["id"]) for each in by_name.get(name, ()) if _is_affected(affected, each)
                )


def _is_affected(affected: Advisory, version: str) -> bool:
    """True where a version is listed, or lies in a range. One that can't be read counts as affected: a person looks."""
    if version in affected.get("versions", ()):
        return True
    ranges = [each for each in affected.get("ranges", ()) if each.get("type") == "ECOSYSTEM"]
    try:
        return any(_lies_in(each.get("events", ()), Version(version)) for each in ranges)
    except InvalidVersion:
        return True


def _lies_in(events: Iterable[dict[str, str]], version: Version) -> bool:
    is_inside = False
    moments = [(Version(text), kind) for event in events for kind, text in event.items() if kind != "limit"]
    for at, kind in sorted(moments, key=lambda each: each[0]):
        if kind == "introduced" and version >= at:
            is_inside = True
        elif (kind == "fixed" and version >= at) or (kind == "last_affected" and version > at):
            is_inside = False
    return is_inside


def _texts(path: Path) -> Iterator[bytes]:
    if path.is_dir():
        yield from (each.read_bytes() for each in sorted(path.glob("*.json")))
        return
    with zipfile.ZipFile(path) as archive:
        yield from (archive.read(name) for name in archive.namelist() if name.endswith(".json"))


def main(arguments: list[str]) -> int:
    """Compares, and prints what came of it."""
    versions = locked(ROOT / "requirements")
    try:
        advisories = read(arguments[0] if arguments else "")
        newest = require_young(advisories, datetime.now(UTC))
    except NotChecked as error:
        print(f"advisories: not checked: {error}")
        return 0
    found = sorted(set(hits(advisories, versions)))
    for name, version, id_ in found:
        print(f"advisories: {id_}: {name} {version}, in {', '.join(versions[name, version])}")
    compared = f"{len(versions)} versions compared with {len(advisories)} advisories up to {newest}"
    print(f"advisories: {compared}: {len(found)} hits")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
