"""Puts what one of the smaller programs has measured into its own section of the docs."""

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


def write(name: str, table: list[str], *, program: str | None = None) -> None:
    """Puts a table between the marks of a section, with what it was measured on; ``program`` where it has several.

    Leaves the section as it was where others kept the machine busy since this program began.
    """
    foreign = _BEGAN.foreign_share(_Use.now())
    if foreign > CALM_SHARE:
        print(f"docs/ is left as it was: other work took {foreign:.0%} of the machine", file=sys.stderr)
        return
    begin, end = f"<!-- {name}: begin (written by bench/{program or name}.py) -->", f"<!-- {name}: end -->"
    text = PAGE.read_text()
    if begin not in text or end not in text:
        raise ValueError(f"{PAGE} lacks the marks that the results of {name} go between")
    before, rest = text.split(begin, 1)
    after = rest.split(end, 1)[1]
    PAGE.write_text("\n".join([f"{before}{begin}\n", _circumstances(foreign), "", *table, "", f"{end}{after}"]))
    print(f"written: {PAGE}")


def _circumstances(foreign: float) -> str:
    # By name: where the page is read, nobody cares from which folder the program was started.
    command = " ".join(["python", f"bench/{Path(sys.argv[0]).name}", *sys.argv[1:]])
    return (
        f"Measured {dt.datetime.now(dt.UTC):%Y-%m-%d %H:%M} UTC with `{command}` at commit {machine.commit()},\n"
        f"on {machine.processor()} with {os.cpu_count()} cores, of which other work took {foreign:.1%}."
    )
