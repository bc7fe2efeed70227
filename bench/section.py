"""Puts what one of the smaller programs has measured into its own section of the docs."""

import datetime as dt
import os
import sys
from pathlib import Path

import machine

PAGE = Path(__file__).parent.parent / "docs" / "benchmark.md"


def write(name: str, table: list[str], *, program: str | None = None) -> None:
    """Puts a table between the marks of a section, with what it was measured on; ``program`` where it has several."""
    begin, end = f"<!-- {name}: begin (written by bench/{program or name}.py) -->", f"<!-- {name}: end -->"
    text = PAGE.read_text()
    if begin not in text or end not in text:
        raise ValueError(f"{PAGE} lacks the marks that the results of {name} go between")
    before, rest = text.split(begin, 1)
    after = rest.split(end, 1)[1]
    PAGE.write_text("\n".join([f"{before}{begin}\n", _circumstances(), "", *table, "", f"{end}{after}"]))
    print(f"written: {PAGE}")


def _circumstances() -> str:
    # By name: where the page is read, nobody cares from which folder the program was started.
    command = " ".join(["python", f"bench/{Path(sys.argv[0]).name}", *sys.argv[1:]])
    return (
        f"Measured {dt.datetime.now(dt.UTC):%Y-%m-%d %H:%M} UTC with `{command}` at commit {machine.commit()},\n"
        f"on {machine.processor()} with {os.cpu_count()} cores; load average at the end: {os.getloadavg()[0]:.2f}."
    )
