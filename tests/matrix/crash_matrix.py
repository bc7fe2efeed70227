"""Lives through the whole crash matrix, or a part: ``make crash-matrix STORES=sqlite ONLY="charge, waiting"``."""

import argparse
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterable
from contextlib import ExitStack
from pathlib import Path
from typing import Final

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.table import Table
from tests.matrix.campaign import live_all
from tests.matrix.cells import Cell, Way, cells_of, rehearsals_of
from tests.matrix.deeds import DEEDS, Deed
from tests.matrix.errand_cells import ErrandCell, errand_cells_of, errand_rehearsals_of
from tests.matrix.errands import ERRANDS
from tests.matrix.recovery_cells import RecoveryCell, RecoveryWay, recovery_cells_of, recovery_rehearsals_of
from tests.matrix.result import Result
from tests.matrix.stores import Postgresql, Sqlite, Store
from tests.postgresql_server import running_postgresql

STORES: Final = ("sqlite", "postgresql")
AT_ONCE: Final = 8
"""Cells at once; most of the time each of them waits."""


def main() -> int:
    """Reads the arguments, lives through all, prints; 1 where anything failed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--stores", nargs="+", choices=STORES, default=STORES)
    parser.add_argument("--only", default="", help="only cells in whose name this occurs")
    parser.add_argument("--at-once", type=int, default=AT_ONCE)
    given = parser.parse_args()
    console = Console()
    began_s = time.monotonic()
    root = Path(tempfile.mkdtemp(prefix="payrelay-matrix-"))
    with ExitStack() as stack:
        stores: dict[str, Store] = {}
        if "sqlite" in given.stores:
            stores["sqlite"] = Sqlite(root)
        if "postgresql" in given.stores:
            stores["postgresql"] = Postgresql(root, stack.enter_context(running_postgresql()))
        cells = [cell for name in stores for cell in _all_on(name) if given.only in str(cell)]
        # Those that wait longest come first, so that nobody waits for them alone at the end.
        cells.sort(key=lambda cell: STORES.index(cell.store), reverse=True)
        results = _lived(cells, stores, root, given.at_once, console)
    _show(console, results, time.monotonic() - began_s)
    return 1 if any(result.failures for result in results) else 0


def _all_on(store: str) -> list[Cell | ErrandCell | RecoveryCell]:
    own = (*errand_rehearsals_of(store), *errand_cells_of(store))
    recovering = (*recovery_rehearsals_of(store), *recovery_cells_of(store))
    return [*rehearsals_of(store), *cells_of(store), *own, *recovering]


def _lived(
    cells: list[Cell | ErrandCell | RecoveryCell], stores: dict[str, Store], root: Path, at_once: int, console: Console
) -> list[Result]:
    bar = Progress(
        TextColumn("cells"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[failed]} failed"),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
        console=console,
    )
    results: list[Result] = []
    with bar:
        task = bar.add_task("cells", total=len(cells), failed=0)
        for result in live_all(cells, stores, root, at_once=at_once):
            results.append(result)
            bar.update(task, advance=1, failed=sum(bool(each.failures) for each in results))
            if result.failures:
                bar.console.print(f"{result.cell}: {'; '.join(result.failures)}", markup=False, style="red")
    return results


def _show(console: Console, results: list[Result], elapsed_s: float) -> None:
    deaths = [result for result in results if not result.cell.is_rehearsal]
    failed = sum(bool(result.failures) for result in results)
    title = f"{len(deaths)} deaths and {len(results) - len(deaths)} rehearsals in {elapsed_s:.0f} s, {failed} failed"
    table = Table("operation", *Way, title=title)
    for deed in DEEDS:
        row = [[result for result in deaths if _is_of(result, deed, way)] for way in Way]
        table.add_row(deed.name, *map(_summed, row))
    console.print(table)
    table = Table("errand", *STORES)
    for errand in ERRANDS:
        own = [each for each in deaths if isinstance(each.cell, ErrandCell) and each.cell.errand is errand]
        table.add_row(errand.name, *(_summed(each for each in own if each.cell.store == name) for name in STORES))
    console.print(table)
    table = Table("in a recovery", *STORES)
    for way in RecoveryWay:
        own = [each for each in deaths if isinstance(each.cell, RecoveryCell) and each.cell.way is way]
        table.add_row(way, *(_summed(each for each in own if each.cell.store == name) for name in STORES))
    console.print(table)


def _is_of(result: Result, deed: Deed, way: Way) -> bool:
    return isinstance(result.cell, Cell) and result.cell.deed is deed and result.cell.way is way


def _summed(results: Iterable[Result]) -> str:
    counted = Counter(f"FAILED ({result.state or '?'})" if result.failures else result.state for result in results)
    return "\n".join(f"{number} {state}" for state, number in sorted(counted.items()))


if __name__ == "__main__":
    sys.exit(main())
