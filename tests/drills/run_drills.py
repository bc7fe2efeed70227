"""Runs the drills and prints their table: ``make drills [ONLY=name] [OPERATIONS=n]``."""

import argparse
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Final

from rich.console import Console
from tests.drills import backups, failovers, outages, restores, rollouts
from tests.drills.row import HEADINGS, Row, markdown
from tests.postgresql_server import ProgramsMissing

Drill = Callable[..., Row]
DRILLS: Final[dict[str, Drill]] = {
    "restore-sqlite": restores.restored_embedded,
    "restore-postgresql": restores.restored_postgresql,
    "failover-asynchronous": failovers.asynchronous,
    "failover-paused": failovers.paused,
    "failover-synchronous": failovers.synchronous,
    "moved-writable": failovers.moved_writable,
    "moved-read-only": failovers.moved_read_only,
    "kill-service": outages.killed_service,
    "kill-database": outages.killed_database,
    "pause-service": outages.paused_service,
    "pause-database": outages.paused_database,
    "disk-full": outages.full_disk,
    "connections": outages.exhausted_connections,
    "rolling-restart": rollouts.rolling_restart,
    "side-by-side": rollouts.side_by_side,
    "backup-sqlite": backups.of_embedded,
    "backup-postgresql": backups.of_postgresql,
}
OPERATIONS: Final = 100
DOCUMENT: Final = Path(__file__).parents[2] / "docs" / "drills.md"
BEGIN, END = "<!-- measured: drills -->\n", "<!-- end of drills -->\n"


def main() -> int:
    """Reads the arguments, runs the drills one after the other, prints; 1 where anything was not as it must be."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", help="drills in whose name this occurs")
    parser.add_argument("--operations", type=int, default=OPERATIONS, help="of each drill")
    parser.add_argument("--seed", type=int, default=1, help="what the operations are drawn from")
    parser.add_argument("--megabytes", type=int, default=0, help="in the database that is backed up, beforehand")
    parser.add_argument("--table", action="store_true", help="write the table into docs/drills.md")
    given = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # whoever ends it leaves no server behind
    console = Console(width=200 if not sys.stdout.isatty() else None)
    rows: list[Row] = []
    for name, drill in DRILLS.items():
        if given.only in name:
            rows.append(_run(name, drill, given))
            _tell(console, rows[-1])
    if given.table:
        _write(rows)
    return 0 if all(row.is_right for row in rows) else 1


def _run(name: str, drill: Drill, given: argparse.Namespace) -> Row:
    more = {"megabytes": given.megabytes} if name.startswith("backup") else {}
    try:
        return drill(given.operations, given.seed, **more)
    except ProgramsMissing as missing:
        return Row(name=name, skipped=str(missing))


def _tell(console: Console, row: Row) -> None:
    told = ", ".join(f"{heading} {cell}" for heading, cell in zip(HEADINGS[1:], row.cells()[1:], strict=True) if cell)
    console.print(f"[bold]{row.name}[/]: {told}", highlight=False)
    for each in row.complaints():
        console.print(f"  {each}", markup=False, highlight=False)


def _write(rows: list[Row]) -> None:
    """Puts the rows into the table of the page, between its two marks."""
    text = DOCUMENT.read_text(encoding="utf-8")
    before, _, rest = text.partition(BEGIN)
    earlier, _, after = rest.partition(END)
    table = markdown(rows, earlier, list(DRILLS))
    DOCUMENT.write_text(f"{before}{BEGIN}{table}{END}{after}", encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
