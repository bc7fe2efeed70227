"""Compares what is locked with a list of advisories where there is one that is young enough.

``python release/advisories.py LIST`` takes OSV's export for PyPI: ``all.zip``, or a folder with its files. Its newest
advisory for PyPI that isn't dated ahead tells how old it is, and not the file's date. It ends with 1 where something
that is locked is known to be vulnerable, and with 0 otherwise: then it prints either how much was compared, or
``not checked`` and why. Nothing that wasn't compared is called clean.
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
_locked_in: Final = re.compile(r"([A-Za-z0-9._-]+)(?:\[[^\]]+\])?==([^\s;\\=]+)").match
_begins_entry: Final = re.compile(r"[^\s#]").match
_COMPARED: Final = frozenset({"ECOSYSTEM", "SEMVER"})
"""The types of ranges that are of versions; in those of GIT are commits."""
_ANY: Final = "0"
"""What an advisory writes for a version before all others, also before ``0a1``."""
Advisory = dict[str, Any]


class NotChecked(Exception):
    """There is no list that could be compared with; the text says why."""


def locked(folder: Path) -> dict[tuple[str, str], list[str]]:
    """Gives each package and version that is locked, with the names of the files that lock it.

    Raises NotChecked where something is locked otherwise, such as by an address.
    """
    found: dict[tuple[str, str], list[str]] = {}
    for path in sorted(folder.glob("*.lock")):
        for line in filter(_begins_entry, path.read_text().splitlines()):
            entry = _locked_in(line)
            if entry is None:
                raise NotChecked(f"{path.name} has an entry without a version: {line}")
            found.setdefault((canonicalize_name(entry[1]), entry[2]), []).append(path.name)
    return found


def read(name: str) -> list[Advisory]:
    """Reads the advisories for PyPI of a file or a folder. Raises NotChecked for none, and for what can't be read."""
    path = Path(name)
    if not name or not path.exists():
        raise NotChecked("there is no list of advisories here")
    try:
        advisories = [each for each in map(json.loads, _texts(path)) if any(map(_is_ours, each.get("affected", ())))]
        if not advisories or not all(isinstance(each["modified"], str) for each in advisories):
            raise NotChecked("the list has no advisories for PyPI")
    except (OSError, ValueError, KeyError, TypeError, AttributeError, zipfile.BadZipFile) as error:
        raise NotChecked(f"the list can't be read ({type(error).__name__})") from None
    return advisories


def require_young(advisories: Iterable[Advisory], now: datetime) -> str:
    """Gives the day of the newest advisory. Raises NotChecked where the list is older than AGE_MAX."""
    try:
        moments = [datetime.fromisoformat(each["modified"][:19]).replace(tzinfo=UTC) for each in advisories]
    except ValueError:
        raise NotChecked("the list doesn't say of when its advisories are") from None
    newest = max((moment for moment in moments if moment <= now), default=None)
    if newest is None:
        raise NotChecked("all advisories of the list are dated ahead")
    if now - newest > AGE_MAX:
        raise NotChecked(f"the newest advisory of the list is of {newest:%Y-%m-%d}, over {AGE_MAX.days} days ago")
    return f"{newest:%Y-%m-%d}"


def hits(advisories: Iterable[Advisory], versions: Iterable[tuple[str, str]]) -> Iterator[tuple[str, str, str]]:
    """Finds the packages and versions that an advisory is about, with its id."""
    by_name: dict[str, list[str]] = {}
    for name, version in versions:
        by_name.setdefault(name, []).append(version)
    for advisory in advisories:
        if advisory.get("withdrawn"):
            continue
        for affected in advisory.get("affected", ()):
            name = canonicalize_name(affected.get("package", {}).get("name", ""))
            if _is_ours(affected):
                yield from (
                    (name, each, advisory["id"]) for each in by_name.get(name, ()) if _is_affected(affected, each)
                )


def _is_ours(affected: Advisory) -> bool:
    return bool(affected.get("package", {}).get("ecosystem") == "PyPI")


def _is_affected(affected: Advisory, version: str) -> bool:
    """True where a version is listed, or lies in a range.

    What can't be compared counts as affected, such as ranges of commits alone: a person looks.
    """
    listed = affected.get("versions", ())
    ranges = [each for each in affected.get("ranges", ()) if each.get("type") in _COMPARED]
    if version in listed or not (listed or ranges):
        return True
    try:
        at = Version(version)
        return any(at == Version(each) for each in listed) or any(
            _lies_in(each.get("events", ()), at) for each in ranges
        )
    except InvalidVersion:
        return True


def _lies_in(events: Iterable[dict[str, str]], version: Version) -> bool:
    moments = [(text, kind) for event in events for kind, text in event.items() if kind != "limit"]
    is_inside = (_ANY, "introduced") in moments
    later = [(Version(text), kind) for text, kind in moments if (text, kind) != (_ANY, "introduced")]
    # Where a version both ends a hole and has one, it has one.
    for at, kind in sorted(later, key=lambda each: (each[0], each[1] == "introduced")):
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
    try:
        versions = locked(ROOT / "requirements")
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
