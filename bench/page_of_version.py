"""Tells whether every figure of docs/benchmark.md was measured with the sources of this version: a release needs that.

``python bench/page_of_version.py 0.1.0`` prints a line for each section that was not, and ends with 1 where there is
one. Git must know the commits that the page names. ``make bench`` on a quiet machine makes the page right.
"""

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "benchmark.md"
MEASURED = ("src", "requirements/runtime.lock")
"""What the figures depend on, and a release must have as they were measured."""

_sections = re.compile(r"<!-- (\w+): begin .*?-->(.*?)<!-- \1: end -->", re.DOTALL).finditer
_measured_at = re.compile(r"at commit ([0-9a-f]{7,40})(?: of version (\S*[^\s,.:]))?(, changed)?[,.:]").search


def faults(page: str, version: str) -> Iterator[str]:
    """Finds the sections of a page whose figures are not of a version, each with the reason."""
    names = []
    for section in _sections(page):
        name, text = section.groups()
        names.append(name)
        measured = _measured_at(text)
        if measured is None:
            yield f"{name}: not measured"
            continue
        commit, of_version, changed = measured.groups()
        if of_version != version:
            yield f"{name}: measured with version {of_version or 'unknown'}, and {version} is released"
        elif changed:
            yield f"{name}: measured with sources that differ from the commit {commit}"
        else:
            difference = _difference(commit)
            if difference:
                yield f"{name}: {difference}"
    if "results" not in names:
        yield "the page has no results"


def _difference(commit: str) -> str:
    """Says how the sources here differ from those of a commit; empty where they don't."""
    compared = subprocess.run(
        ["git", "-C", str(ROOT), "diff", "--quiet", commit, "--", *MEASURED], check=False, capture_output=True
    )
    if compared.returncode == 0:
        return ""
    if compared.returncode == 1:
        return f"measured at commit {commit}, and the sources have changed since"
    return f"measured at commit {commit}, which is not known here"


def main() -> int:
    """Prints what is wrong; returns 1 where something is."""
    found = list(faults(PAGE.read_text(), sys.argv[1]))
    print("\n".join(found) or f"every figure of {PAGE.name} is of version {sys.argv[1]}")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
