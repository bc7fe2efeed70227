"""Many cells at once: each has a service, a database and a simulator to itself."""

import queue
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from contextlib import ExitStack
from pathlib import Path

from tests.matrix.cells import Cell
from tests.matrix.errand_cells import ErrandCell
from tests.matrix.gateway import Gateway, simulating
from tests.matrix.journey import live_through
from tests.matrix.recovery_cells import RecoveryCell
from tests.matrix.result import Result
from tests.matrix.stores import Store


def live_all(
    cells: Iterable[Cell | ErrandCell | RecoveryCell], stores: Mapping[str, Store], root: Path, *, at_once: int
) -> Iterator[Result]:
    """Lives through the cells, so many at once, and gives the results as they come.

    A cell that could not be lived through has failed, by the error: those beside it count all the same.
    """
    idle: queue.SimpleQueue[Gateway] = queue.SimpleQueue()

    def live_one(cell: Cell | ErrandCell | RecoveryCell) -> Result:
        gateway = idle.get()
        try:
            return live_through(cell, stores[cell.store], gateway, root)
        except Exception as error:  # noqa: BLE001  whatever it is, the cell has failed
            return Result(cell=cell, failures=[f"{type(error).__name__}: {error}"])
        finally:
            idle.put(gateway)

    with ExitStack() as stack:
        for _ in range(at_once):
            idle.put(stack.enter_context(simulating()))
        pool = stack.enter_context(ThreadPoolExecutor(at_once))
        futures: list[Future[Result]] = [pool.submit(live_one, cell) for cell in cells]
        try:
            for future in as_completed(futures):
                yield future.result()
        finally:
            pool.shutdown(cancel_futures=True)
