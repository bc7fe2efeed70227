"""Puts what was measured into its own section of the page."""

import datetime as dt
import os
import sys
import time
from pathlib import Path
from typing import NamedTuple

import machine
import measure
from results import CALM_SHARE

PAGE = Path(__file__).parent.parent / "docs" / "benchmark.md"


class _Use(NamedTuple):
    """How long the machine's cores have been busy, and this program with all that it started, in seconds."""

    at_s: float
    machine_s: float
    ours_s: float

    @classmethod
    def now(cls) -> "_Use":
        return cls(time.monotonic(), measure.machine_busy_s(), measure.tree_cpu_s(os.getpid()))

    def foreign_share(self, until: "_Use") -> float:
        """Gives the share of all cores that others took between two moments."""
        foreign_s = (until.machine_s - self.machine_s) - (until.ours_s - self.ours_s)
        return max(0.0, foreign_s) / ((until.at_s - self.at_s) * (os.cpu_count() or 1))


_BEGAN = _Use.now()


def put(name: str, text: str, foreign_share: float, *, program: str) -> None:
    """Puts a text between the marks of a section; ValueError where the page lacks them.

    Leaves the section as it was where others took more than ``CALM_SHARE`` of the machine.
    """
    if foreign_share > CALM_SHARE:
        print(f"docs/ is left as it was: other work took {foreign_share:.0%} of the machine", file=sys.stderr)
        return
    begin, end = f"<!-- {name}: begin (written by bench/{program}.py) -->", f"<!-- {name}: end -->"
    page = PAGE.read_text()
    if begin not in page or end not in page:
        raise ValueError(f"{PAGE} lacks the marks that the results of {name} go between")
    before, rest = page.split(begin, 1)
    after = rest.split(end, 1)[1]
    PAGE.write_text(f"{before}{begin}\n\n{text}\n\n{end}{after}")
    print(f"written: {PAGE}")


def write(name: str, table: list[str], *, program: str) -> None:
    """Puts a table into a section, with what it was measured on since this program began."""
    foreign = _BEGAN.foreign_share(_Use.now())
    put(name, "\n".join([_circumstances(foreign), "", *table]), foreign, program=program)


def _circumstances(foreign: float) -> str:
    # By name: where the page is read, nobody cares from which folder the program was started.
    command = " ".join(["python", f"bench/{Path(sys.argv[0]).name}", *sys.argv[1:]])
    return (
        f"Measured {dt.datetime.now(dt.UTC):%Y-%m-%d %H:%M} UTC with `{command}` at commit {machine.commit()},\n"
        f"on {machine.processor()} with {os.cpu_count()} cores, of which other work took {foreign:.1%}."
    )
